"""Whether a file in a state folder may be believed: what git's index lists, and which contents were recorded here."""

from beaver_hooks.file_trust.state_files import StateFiles

__all__ = ["StateFiles"]
