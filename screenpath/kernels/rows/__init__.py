"""Passes over stored values: products, sums, parsing; linear systems of rows."""
