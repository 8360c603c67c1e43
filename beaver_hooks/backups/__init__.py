"""Copies the stored state of the host and its plugins into one archive, verifies it, and brings it back."""
