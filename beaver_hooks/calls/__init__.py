"""Runs hook implementations, each in a task of its own, and names the one that blocks the event loop."""
