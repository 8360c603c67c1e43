"""Bounds that settings and embedders share. Settings are read where nothing is embedded, so this imports nothing."""

MOST_DIMENSIONS = 8192
"""The longest embedding."""
