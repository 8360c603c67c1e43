"""Checksums of messages: a message that fails its own is not shown, and the log names it once."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from beaver_hooks.agent.sessions.database import SQL
from beaver_hooks.audit.events import Facts
from beaver_hooks.log import make_log
from beaver_toolkit.row_checksums import row_checksum
from beaver_toolkit.sqlite.connections import integrity_problems

if TYPE_CHECKING:
    import apsw


class DamagedMessages:
    """The messages that were found damaged. Used by one thread.

    Attributes:
        told: receives the name and the facts of an event for each message that was not known, and for each session that
            lost messages. The log takes a warning in any case.
    """

    def __init__(self) -> None:
        self.told: Callable[[str, Facts], object] = _nothing
        self._log = make_log()
        self._known: set[tuple[str, int]] = set()

    def note(self, what: str, number: int) -> None:
        """Note a `message` that is damaged or a `session` that lost messages, by its number."""
        if (what, number) not in self._known:
            self._known.add((what, number))
            facts: Facts = {"number": number}
            self._log.warning(f"{what}_damaged", **facts, remedy="run `beaver doctor`")
            self.told(f"{what}_damaged", facts)


def _nothing(_name: str, _facts: Facts) -> None:
    """Receive nothing."""


def message_checksum(row: Sequence[Any]) -> int:
    """Return the checksum of a message, from the values that `is_whole` gets."""
    return row_checksum(*row)


def is_whole(row: Sequence[Any], checksum: int) -> bool:
    """Return whether a message has its checksum.

    Args:
        row: session, role, text, time, id and speaker, the texts as bytes.
        checksum: the stored checksum.
    """
    return message_checksum(row) == checksum


def faults(connection: "apsw.Connection") -> list[str]:
    """Return the faults that SQLite finds in the database, else the damaged messages and the miscounted sessions."""
    return integrity_problems(connection) or [*problems(connection)]


def problems(connection: "apsw.Connection") -> Iterator[str]:
    """Yield a sentence for each damaged message, and for each session that has fewer messages than were counted."""
    for number, checksum, name, *row in connection.execute(SQL["all_messages"]):
        if not is_whole(row, checksum):
            yield f"message {number} of session {_shown(name)} fails its checksum"
    for name, counted, there in connection.execute(SQL["miscounted_sessions"]):
        yield f"session {_shown(name)} has {there} of {counted} messages"


def _shown(name: bytes | None) -> str:
    return ascii((name or b"").decode(errors="backslashreplace"))
