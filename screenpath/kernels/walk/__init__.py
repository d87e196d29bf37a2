"""Several steps of a path in one compiled call."""
