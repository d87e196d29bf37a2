"""The loop over the steps of a path, and the same contract compiled.

A step's certificate is the reference of the next step. This room knows no option and no file.
"""
