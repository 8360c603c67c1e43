"""What comes first: pure functions of signals."""
