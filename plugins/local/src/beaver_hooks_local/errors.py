"""The errors of the plugin; those of the memory are in `beaver_memory.errors`."""

from collections.abc import Sequence

from beaver_memory.errors import EngineError


class CommandRefused(EngineError):
    """The words of a command under `/memory local` are invalid."""


def damaged_text(ids: Sequence[int]) -> str:
    """Return the sentence about memories that fail their checksums, with the commands for the user."""
    named = " ".join(map(str, ids))
    one = len(ids) == 1
    which = f"Memory {named} is" if one else f"Memories {named} are"
    return (
        f"{which} damaged and not shown: `beaver memory export --damaged` writes {'its' if one else 'their'} readable"
        f" columns, and `beaver memory forget --damaged {named} --yes` erases {'it' if one else 'them'}."
    )


class MessagesLost(EngineError):
    """Messages of a session could not be stored, so a compaction of the session is not confirmed."""
