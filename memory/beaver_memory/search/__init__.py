"""Finds and ranks memories, with caches of the store that are rebuilt when they cannot be trusted."""
