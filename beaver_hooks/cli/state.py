"""Opens the files of a state folder, for commands that need no plugin. Reading a folder makes no file in it."""

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from beaver_hooks.agent.errors import SessionError, UnknownSession
from beaver_hooks.agent.sessions.database import DATABASE as SESSIONS
from beaver_hooks.agent.sessions.database import refuse_listed
from beaver_hooks.agent.sessions.store import MOST_ROWS, SessionStore
from beaver_hooks.audit.chain import identifier_key, identify
from beaver_hooks.audit.database import DATABASE as TRAIL
from beaver_hooks.audit.key import KEY_FILE, read_key
from beaver_hooks.cli.text_format import counted
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.turns.fields import is_ours
from beaver_hostspecs import AuditUnavailable

MOST_CANDIDATES = 8
"""The most ids that the error about an ambiguous beginning names."""


def nothing_yet(folder: Path) -> str:
    """Return the sentence for a folder without stored state."""
    return f"Nothing is stored yet; `beaver run` will store sessions in {printable(str(folder))}."


def has_sessions(folder: Path) -> bool:
    """Whether sessions are stored in a folder."""
    return is_there(folder / SESSIONS)


def has_trail(folder: Path) -> bool:
    """Whether a folder has an audit trail, or a part of one: one of the two files alone is worth an error."""
    return is_there(folder / TRAIL) or is_there(folder / KEY_FILE)


def is_there(path: Path) -> bool:
    """Whether a file exists. One that cannot be examined counts as present: opening it will report the fault."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


@asynccontextmanager
async def sessions_in(folder: Path, *, store_secrets: bool = False) -> AsyncIterator[SessionStore]:
    """Yield the open store of sessions in a folder, and close it."""
    refuse_listed(folder, StateFiles(folder, os.environ))
    store = SessionStore.open(folder, store_secrets=store_secrets)
    try:
        yield store
    finally:
        await store.close()


async def session_named(store: SessionStore, given: str) -> str:
    """Return the id of the named session: exactly this id, else the one that begins with it.

    Raises:
        UnknownSession: no session matches.
        SessionError: several sessions match, or this is no id.
    """
    with suppress(UnknownSession):
        await store.history(given, 0)
        return given
    found = [each.id for each in await store.list(MOST_ROWS) if each.id.startswith(given)]
    if not found:
        raise UnknownSession(f"There is no session `{printable(given)}`; `beaver sessions list` lists the stored ones.")
    if len(found) > 1:
        raise SessionError(ambiguous(given, found, "session"))
    return found[0]


def ambiguous(given: str, found: Iterable[str], noun: str) -> str:
    """Return the sentence for a beginning of several ids; it names some of them."""
    ids = [printable(each) for each in found]
    more = f", and {len(ids) - MOST_CANDIDATES} more" if len(ids) > MOST_CANDIDATES else ""
    named = ", ".join(ids[:MOST_CANDIDATES])
    return f"`{printable(given)}` is the beginning of {counted(len(ids), noun)}: {named}{more}; write more of the id."


def recorded_turns(folder: Path, given: str) -> tuple[str, ...]:
    """Return the names under which a turn may be recorded: its id, and the keyed hash of a foreign id."""
    return (given,) if is_ours(given) else (given, *keyed_hashes(folder, given))


def keyed_hashes(folder: Path, given: str) -> tuple[str, ...]:
    """Return the keyed hash of an id in the trail of a folder; none without a usable key."""
    with suppress(AuditUnavailable):
        if (key := read_key(folder)) is not None:
            return (identify(identifier_key(key.secret), given),)
    return ()
