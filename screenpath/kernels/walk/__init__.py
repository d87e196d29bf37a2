"""Several grid points in one compiled call."""
