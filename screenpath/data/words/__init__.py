"""Labels, faults and tables in words."""
