"""Command-line agents that run commands at events: one package for each, over one resident process."""
