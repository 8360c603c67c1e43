"""Examination of stored files: access by other users, and files that do not belong there."""

import os
import shlex
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs

from beaver_hooks.agent.sessions.database import DATABASE as SESSIONS
from beaver_hooks.audit.database import DATABASE as TRAIL
from beaver_hooks.audit.key import KEY_FILE
from beaver_hooks.cli.checks.findings import Finding, ok, problem, warning
from beaver_hooks.cli.state import is_there
from beaver_hooks.cli.terminal import counted
from beaver_hooks.config.paths import printable
from beaver_toolkit.files import STRAY_AFTER

MEBIBYTE = 2**20
LITTLE, HARDLY_ANY = 512 * MEBIBYTE, 32 * MEBIBYTE
"""Bytes of free space below which writing fails soon, or at any moment."""

NAMED = 3
"""The most files that a finding names; it counts the rest."""

PLUGINS = "plugins"
_PRIVATE = frozenset({KEY_FILE, *(f"{name}{end}" for name in (TRAIL, SESSIONS) for end in ("", "-wal", "-shm"))})


@attrs.frozen(kw_only=True)
class Entry:
    """A file or folder.

    Attributes:
        path: its path.
        found: its `lstat` result.
        private: whether only its owner may read it.
        shut: whether it is in a folder that other users cannot enter, so that they cannot read it with any mode.
    """

    path: Path
    found: os.stat_result
    private: bool
    shut: bool = False

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.found.st_mode)


def entries(folder: Path, *, private: bool = False) -> Iterator[Entry]:
    """Yield a state folder and its content; in a `private` one every entry is private.

    No link is followed. Entries that vanish meanwhile or cannot be examined are left out.
    """
    yield from entry(folder, private=True)
    shut = {folder: _is_shut(folder)}
    for where, folders, names in os.walk(folder):
        here = Path(where)
        if here != folder:
            shut[here] = shut[here.parent] or _is_shut(here)
        within = private or PLUGINS in here.relative_to(folder).parts[:1]
        for name in sorted((*folders, *names)):
            top = here == folder and (name in _PRIVATE or name == PLUGINS)
            yield from entry(here / name, private=within or top, shut=shut[here])


def entry(path: Path, *, private: bool, shut: bool = False) -> Iterator[Entry]:
    """Yield one file, if it can be examined."""
    try:
        yield Entry(path=path, found=path.lstat(), private=private, shut=shut)
    except OSError:
        return


def examine(found: Iterable[Entry], *, what: str, root: Path) -> list[Finding]:
    """Return findings about the owners and modes of these files, and about stray files.

    Args:
        found: the files.
        what: their kind, in a word or two.
        root: their folder, which the remedies name.
    """
    there = list(found)
    subject, folder = f"files of {what}", shlex.quote(printable(str(root)))
    wrong = [
        problem(subject, f"{text}: {_names(faulty)}", remedy.format(folder=folder))
        for text, remedy, is_so in _FAULTS
        if (faulty := [each.path for each in there if is_so(each)])
    ]
    if strays := [each.path for each in there if _is_stray(each)]:
        remedy = "remove them while no `beaver` process runs; the next start removes most of them"
        wrong.append(warning(subject, f"a process that was killed left temporary files: {_names(strays)}", remedy))
    return wrong or [ok(subject, f"{counted(len(there), 'file')}, private")]


def free_space(folder: Path) -> Finding:
    """Return whether the disk of a folder, which need not exist, has room."""
    there = next(each for each in (folder, *folder.parents) if is_folder(each))
    return free_bytes(shutil.disk_usage(there).free)


def free_bytes(free: int) -> Finding:
    """Return whether this number of free bytes is enough."""
    subject, text = "free space", f"{free // MEBIBYTE:,} MiB"
    if free >= LITTLE:
        return ok(subject, text)
    return (problem if free < HARDLY_ANY else warning)(subject, text, "make room on the disk of the state folder")


def is_folder(path: Path) -> bool:
    """Whether a folder exists. One that cannot be examined counts as missing."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def folder_fault(folder: Path) -> Finding | None:
    """Return why a state folder cannot be examined; `None` if it can."""
    subject, name = "state folder", printable(str(folder))
    if not is_there(folder):
        return ok(subject, f"{name} does not exist yet: nothing is stored")
    try:
        mode = folder.lstat().st_mode
    except OSError as error:
        text = f"{name} cannot be examined ({error.strerror})"
        return problem(subject, text, "check the permissions of the folders above it")
    if stat.S_ISLNK(mode):
        return problem(subject, f"{name} is a symbolic link", "set `host.stateFolder` to its target instead")
    if not stat.S_ISDIR(mode):
        return problem(subject, f"{name} is not a folder", "move it away, or set `host.stateFolder` to another folder")
    return None


def _is_shut(folder: Path) -> bool:
    """Whether other users cannot enter a folder, and so cannot reach its content."""
    try:
        return os.name == "posix" and not stat.S_IMODE(folder.lstat().st_mode) & 0o011
    except OSError:
        return False


def _is_foreign(entry: Entry) -> bool:
    """Whether another user owns it. A file that is only read may belong to the system."""
    if not hasattr(os, "geteuid"):
        return False  # the system has no owners to compare
    return entry.found.st_uid not in ({os.geteuid()} if entry.private else {os.geteuid(), 0})


def _is_out_of_place(entry: Entry) -> bool:
    return entry.private and entry.is_link


def _is_changeable(entry: Entry) -> bool:
    # A group's right to change a configuration is intended.
    return _is_mode(entry, 0o022 if entry.private else 0o002)


def _is_readable(entry: Entry) -> bool:
    # In a folder that only its owner can enter, a file's own mode does not matter, except for the key.
    reached = not (entry.shut and stat.S_ISREG(entry.found.st_mode)) or entry.path.name == KEY_FILE
    return entry.private and reached and _is_mode(entry, 0o055)


def _is_mode(entry: Entry, others: int) -> bool:
    # The permissions of a link have no meaning, nor do any permissions on Windows.
    return os.name == "posix" and not entry.is_link and bool(stat.S_IMODE(entry.found.st_mode) & others)


def _is_unreadable(entry: Entry) -> bool:
    return not entry.is_link and not os.access(entry.path, os.R_OK)


def _is_stray(entry: Entry) -> bool:
    name = entry.path.name
    return name.startswith(".") and name.endswith(".tmp") and time.time() - entry.found.st_mtime >= STRAY_AFTER


_FAULTS: tuple[tuple[str, str, Callable[[Entry], bool]], ...] = (
    ("they are symbolic links", "replace them with the files themselves", _is_out_of_place),
    ("they belong to another user", "run `beaver` as that user, or change the owner with chown", _is_foreign),
    ("other users can change them", "run: chmod -R go-w {folder}", _is_changeable),
    ("other users can read them", "run: chmod -R go= {folder}", _is_readable),
    ("you cannot read them", "run: chmod -R u+rwX {folder}", _is_unreadable),
)


def _names(paths: list[Path]) -> str:
    named = ", ".join(printable(str(each)) for each in paths[:NAMED])
    return f"{named} and {len(paths) - NAMED} more" if len(paths) > NAMED else named
