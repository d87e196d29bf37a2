"""Rounding bounds, doubled precision and small helpers for sparse arrays."""
