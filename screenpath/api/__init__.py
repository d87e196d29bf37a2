"""The Python functions: one for each model, and those for run folders. No computation stands here."""
