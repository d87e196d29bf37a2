"""Certified regularization paths of large-margin models with safe screening."""
