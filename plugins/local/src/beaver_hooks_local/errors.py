"""The errors of the plugin; those of the memory are in `beaver_memory.errors`."""

from beaver_memory.errors import EngineError


class CommandRefused(EngineError):
    """The words of a command under `/memory local` are invalid."""


class MessagesLost(EngineError):
    """Messages of a session could not be stored, so a compaction of the session is not confirmed."""
