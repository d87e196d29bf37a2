"""Regions that provably contain an optimum: ball, dome, lens, and the directions of a free intercept.

No data rows are here: a region knows vectors and numbers alone.
"""
