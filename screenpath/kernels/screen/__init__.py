"""What regions decide of rows and features."""
