"""One step of a run as a file for other programs: LIBLINEAR, LIBSVM, JSON, NPZ, ONNX, skops.

Nothing here computes a path.
"""
