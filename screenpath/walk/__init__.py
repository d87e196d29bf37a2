"""The loop over the grid points of a path, and the same contract compiled.

A step's certificate is the reference of the next step. No option and no file is known here.
"""
