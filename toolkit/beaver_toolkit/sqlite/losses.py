"""Notices that acknowledged commits are missing from a database, and keeps a notice until the user accepts it.

Only the process that opens a database first can look, before anything writes to it. The evidence stays: a copy of the
damaged log, or the log itself where SQLite must not apply it.
"""

import glob
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from beaver_toolkit.files import replace
from beaver_toolkit.sqlite.commits import Commits, commits_file, lacks_pages, number_in_header, number_with_log, size_of
from beaver_toolkit.sqlite.connections import close_unchanged, connect
from beaver_toolkit.sqlite.errors import DatabaseError

_ENDING = ".losses"
_DAMAGED = "-wal.damaged-"
"""What stands between the name of a database and a number in the name of a damaged log."""


class Loss(NamedTuple):
    """Commits that were acknowledged, and that a database lacks.

    Attributes:
        acknowledged: the number of the last commit that was acknowledged.
        found: the number of the last commit that was found.
        log: the name of the file beside the database that holds the damaged log; empty if there is none.
        older: whether the database itself is older than what it once held, as a restored copy is.
    """

    acknowledged: int
    found: int
    log: str
    older: bool

    @property
    def commits(self) -> int:
        """How many commits are missing."""
        return self.acknowledged - self.found

    def __str__(self) -> str:
        count = self.commits
        which = "1 commit that was acknowledged is" if count == 1 else f"{count} commits that were acknowledged are"
        why = (
            "the database is older than what was acknowledged here, or another one"
            if self.older
            else "the end of the log was damaged or lost"
        )
        log = f" The damaged log is kept in {self.log}." if self.log else ""
        return f"{which} missing: {why}.{log}"


def remedy(path: Path) -> str:
    """Return what the user can do about the losses of a database."""
    return f"restore a backup, or accept the loss with `beaver doctor --accept-loss {shlex.quote(str(path))}`"


def databases_with_losses(folder: Path) -> Iterator[Path]:
    """Yield the databases in a folder whose losses the user has not accepted."""
    for notice in sorted(folder.glob(f"*{_ENDING}")):
        yield notice.with_name(notice.name.removesuffix(_ENDING))


def losses_of(path: Path) -> list[Loss]:
    """Return the losses of a database that the user has not accepted, oldest first."""
    try:
        return [_still_there(path, Loss(*each)) for each in json.loads(_notice(path).read_bytes())]
    except FileNotFoundError:
        return []
    except (OSError, TypeError, ValueError):
        # The notice itself is damaged.
        return [Loss(0, 0, "", older=False)]


def accept_losses(path: Path) -> list[Loss]:
    """Accept the losses of a database: delete their notice, and the damaged logs; return the losses.

    Without a notice nothing is deleted, and none are returned.
    """
    losses = losses_of(path) if _notice(path).is_file() else []
    if losses:
        _notice(path).unlink()
        for log in path.parent.glob(f"{glob.escape(path.name)}{_DAMAGED}*"):
            if log.name.rpartition("-")[2].isdecimal():
                log.unlink()
    return losses


def drop_damaged_logs(path: Path) -> None:
    """Delete the logs that were kept as evidence; they hold texts that were written to the database."""
    for log in path.parent.glob(f"{glob.escape(path.name)}-wal.*"):
        log.unlink(missing_ok=True)


def begin_anew(path: Path) -> None:
    """Forget the commits of a database of this name that is gone."""
    for file in (commits_file(path), _notice(path)):
        file.unlink(missing_ok=True)


def find_loss(path: Path, commits: Commits) -> None:
    """Note which acknowledged commits a database lacks, and set aside a log that does not belong to it.

    Args:
        path: the database; no process has it open.
        commits: those of the database.
    """
    mark, moved = commits.known()
    last, in_file = mark.number, number_in_header(path)
    if not last:
        return
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    # SQLite would mix an older database, or an older log, with later pages.
    is_older = in_file < moved
    found = in_file if is_older or not has_log else _number_with_log(path)
    is_foreign = has_log and (is_older or found < in_file <= last)
    found = in_file if is_foreign else found
    kept = _kept(log, last, move=is_foreign) if is_foreign or (has_log and found < last) else ""
    if found < last:
        _note(path, Loss(last, found, kept, is_older))
        commits.begin_at(found)


def _number_with_log(path: Path) -> int:
    connection = connect(path)
    try:
        number = number_with_log(connection)
        if lacks_pages(connection, size_of(path)):
            # SQLite refuses it only without a log.
            raise DatabaseError("corrupt")
        return number
    finally:
        close_unchanged(connection)


def _kept(log: Path, number: int, *, move: bool) -> str:
    """Keep a damaged log under another name; return the name."""
    kept = log.with_name(f"{log.name.removesuffix('-wal')}{_DAMAGED}{number}")
    if move:
        log.replace(kept)
    else:
        replace(kept, log.read_bytes())
    return kept.name


def _note(path: Path, loss: Loss) -> None:
    known = losses_of(path)
    replace(_notice(path), json.dumps([*known, loss]).encode())


def _still_there(path: Path, loss: Loss) -> Loss:
    return loss if loss.log and path.with_name(loss.log).exists() else loss._replace(log="")


def _notice(path: Path) -> Path:
    return path.with_name(f"{path.name}{_ENDING}")
