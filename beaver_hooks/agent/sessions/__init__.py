"""Stored conversations: listed, searched, exported and deleted for good.

Import from the modules: `store` (the store), `records` (its results), `events` (a sink that keeps the host's audit
events as hidden events of their sessions).
"""
