"""The run folder: record, step table, coefficients, certificate, and where a command may write.

What is read back is checked before it is believed. Nothing here walks or solves.
"""
