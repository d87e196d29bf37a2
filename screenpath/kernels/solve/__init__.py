"""Sweeps, faces and Newton steps."""
