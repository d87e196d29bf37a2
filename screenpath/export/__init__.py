"""One step of a run as a file for other programs: LIBLINEAR, LIBSVM, JSON, NPZ, ONNX, skops.

A format is a file here. Nothing here computes a path.
"""
