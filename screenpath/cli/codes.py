"""The exit codes of commands, and the name under which a command finds when it began."""

BEGAN = "began"  # of the context's object: the time.monotonic() value at which the command began
DONE, ERROR, USAGE, UNCERTIFIED = 0, 1, 2, 3  # and 128 + signal number when stopped by a signal
