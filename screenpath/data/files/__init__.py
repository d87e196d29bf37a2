"""Readers and writers of data files: LIBSVM text, CSV, Parquet, arrays and frames."""
