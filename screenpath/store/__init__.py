"""The run folder: record, step table, coefficients, certificate, and where a command may write.

Everything read back is checked before use. Nothing here walks or solves.
"""
