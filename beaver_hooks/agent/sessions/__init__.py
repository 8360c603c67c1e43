"""Conversations that outlive the process: stored, listed, searched, exported and really forgotten.

Import what you need from the modules: `store` (the store), `records` (what it answers), `events` (a sink that
keeps the host's audit events as hidden events of their sessions).
"""
