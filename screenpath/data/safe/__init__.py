"""Safe writing, limits of memory, and what a value that is read back may be."""
