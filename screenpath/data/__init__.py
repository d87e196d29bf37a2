"""Bytes to numbers and back: files, shards, safe writing, and the words for labels and faults.

No model is known here.
"""
