"""The exit codes. `EXIT_CODES` of `app` says what they mean."""

FOUND, USAGE, CONFIGURATION, PROVIDER, STORAGE, PLUGIN, INTERRUPTED = 1, 2, 3, 4, 5, 6, 130
SIGNALLED = 128
"""What is added to the number of the signal that ended a command."""
