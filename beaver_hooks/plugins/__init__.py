"""Finds, checks, loads and registers plugins, calls their hooks, and suspends those that keep failing."""
