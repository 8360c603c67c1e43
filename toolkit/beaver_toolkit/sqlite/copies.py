"""Copies a database as it is at one moment while other processes write to it, and puts a copy in its place again."""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from beaver_toolkit.files import publish, sync
from beaver_toolkit.locks import PRIVATE
from beaver_toolkit.sqlite.connections import connect
from beaver_toolkit.sqlite.errors import DatabaseError, translated
from beaver_toolkit.sqlite.lease_lock import is_leased, reserved
from beaver_toolkit.sqlite.losses import begin_anew

if TYPE_CHECKING:
    import apsw

ENDINGS = ("-wal", "-shm", "-journal")
"""The files of SQLite beside a database."""


def copy_moment(source: "apsw.Connection", path: Path) -> None:
    """Copy a database, as it is at one moment, to a new private file without a log.

    Args:
        source: a connection outside a transaction. Other processes may write meanwhile, and are not kept waiting.
        path: the copy, which must not exist.

    Raises:
        DatabaseError: it cannot be copied; there is no copy then.
    """
    with translated():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
        copy = connect(path)
    try:
        with translated(copy):
            # In one step, so that it is one moment: readers keep no writer waiting.
            with copy.backup("main", source, "main") as backup:
                backup.step()
            # A copy with a log could not be read where its folder cannot be written.
            copy.pragma("journal_mode", "DELETE")
    except BaseException:
        copy.close()
        for ending in ("", *ENDINGS):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        raise
    copy.close()


def check_free(path: Path) -> None:
    """Raise unless a copy can be put at a path; makes no file.

    Raises:
        DatabaseError: see `put_in_place`.
    """
    _refuse_taken(path)
    if is_leased(path):
        raise DatabaseError("in_use")


def put_in_place(copy: Path, path: Path) -> None:
    """Put a closed copy of a database at a free path, private, whole or not at all.

    Raises:
        DatabaseError: `exists`: the database or its log is there; `in_use`: a process has a database open that lost
            this name; or it cannot be written.
    """
    _refuse_taken(path)
    with translated(), reserved(path):
        _refuse_taken(path)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        try:
            _copied(copy, draft)
            # It has fewer commits than the database that had the name before, as it should.
            begin_anew(path)
            if not publish(draft, path):
                raise DatabaseError("exists")
        finally:
            draft.unlink(missing_ok=True)


def _refuse_taken(path: Path) -> None:
    if any(os.path.lexists(path.with_name(path.name + ending)) for ending in ("", *ENDINGS)):
        raise DatabaseError("exists")


def _copied(source: Path, target: Path) -> None:
    with (
        source.open("rb") as content,
        os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "wb") as file,
    ):
        while block := content.read(1024 * 1024):
            file.write(block)
    sync(target)
