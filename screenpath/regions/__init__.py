"""Regions that provably contain an optimum: ball, dome, lens, and the directions of a free intercept.

A region knows only vectors and numbers, no data rows.
"""
