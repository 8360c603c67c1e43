"""The exit codes. `EXIT_CODES` of `app` explains them."""

FOUND, USAGE, CONFIGURATION, PROVIDER, STORAGE, PLUGIN, INTERRUPTED = 1, 2, 3, 4, 5, 6, 130
SIGNALLED = 128
"""The offset of the exit code of a signal: its number is added."""
