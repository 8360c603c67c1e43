"""Capture in a host: keeps what a session said until it is enough, and tells the receipt how each write ended."""
