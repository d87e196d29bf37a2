"""The Python functions: one for each model, and those for runs. Each states its options' names and hands them on."""
