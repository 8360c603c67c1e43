"""Decides whether a file in a state folder is trusted, by git's index and by the contents recorded here."""

from beaver_hooks.file_trust.state_files import StateFiles

__all__ = ["StateFiles"]
