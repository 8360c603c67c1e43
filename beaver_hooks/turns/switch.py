"""Switches memory off and on again, per user and session, for every process that shares a state folder.

The switch is one small file in the state folder, `memory-off.json`. It names users and sessions by their keyed hashes.
Each question costs one `stat`; the file is read again only when it has changed. A file that cannot be read, or that was
written with another key, counts as off for every caller: what a user has switched off stays off.
"""

import json
from pathlib import Path

import attrs

from beaver_hooks.receipts.recorder import HOST, SWITCH, Recorder
from beaver_hostspecs import AuditUnavailable
from beaver_toolkit.files import replace
from beaver_toolkit.locks import locked

FILE = "memory-off.json"
VERSION = 1

Stamp = tuple[int, int, int]
EVERYONE = None
"""Stands for every caller, as the file cannot be read."""


@attrs.define(eq=False)
class MemorySwitch:
    """The users and sessions whose memory is off. `is_off` is for any thread; `turn` waits for the disk.

    Args:
        path: the file.
        recorder: makes the keyed hashes; keeps the host's fault while the file cannot be read.
    """

    _path: Path
    _recorder: Recorder
    _stamp: Stamp | None = attrs.field(default=None, init=False)
    _off: frozenset[str] | None = attrs.field(default=frozenset(), init=False)

    def is_off(self, user: str | None, session: str | None) -> bool:
        """Whether memory is off for a user in a session, or in all sessions of the user."""
        off = self._known()
        if not off:
            return off is EVERYONE
        return not off.isdisjoint({self._hash(user, None), self._hash(user, session)})

    def review(self) -> None:
        """Read the file once, so that the health is right, also if an earlier host left the fault in it."""
        if self._known() is not EVERYONE and self._recorder.health.is_at_fault(HOST, SWITCH):
            self._recorder.succeeded(HOST, source=SWITCH)

    def turn(self, user: str | None, session: str | None, *, off: bool) -> None:
        """Switch memory off or on in a session of a user; in all sessions if `session` is `None`.

        Raises:
            AuditUnavailable: the switch cannot be written.
        """
        key = self._hash(user, session)
        try:
            with locked(self._path.with_name(f".{self._path.name}.lock")):
                known = self._read()
                changed = known | {key} if off else known - {key}
                if changed != known:
                    replace(self._path, self._written(changed))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise AuditUnavailable(
                f"memory cannot be switched on or off: {self._path} cannot be used ({why}); make it readable and"
                " writable, or remove it, which switches memory on for every user"
            ) from error

    def _known(self) -> frozenset[str] | None:
        off: frozenset[str] | None
        try:
            stamp = self._stamp_now()
            if stamp == self._stamp and self._off is not EVERYONE:
                return self._off
            off = self._read()
        except (OSError, ValueError):
            stamp, off = None, EVERYONE
        news = (off is EVERYONE) != (self._off is EVERYONE)
        self._stamp, self._off = stamp, off
        if news:
            self._record(off)
        return off

    def _record(self, off: frozenset[str] | None) -> None:
        if off is EVERYONE:
            self._recorder.degraded(HOST, source=SWITCH, category="unreadable")
        else:
            self._recorder.succeeded(HOST, source=SWITCH)

    def _stamp_now(self) -> Stamp | None:
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> frozenset[str]:
        """Return the hashes of the users and sessions whose memory is off; none without a file."""
        try:
            content = json.loads(self._path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        known = isinstance(content, dict) and content.get("version") == VERSION
        off = content.get("off") if known else None
        if not isinstance(off, list) or not all(isinstance(each, str) for each in off):
            raise ValueError("it does not hold the memory switch")
        if content.get("key") != self._recorder.identify(FILE):
            raise ValueError("it was written with another audit.key")
        return frozenset(off)

    def _written(self, off: frozenset[str]) -> bytes:
        content = {"version": VERSION, "key": self._recorder.identify(FILE), "off": sorted(off)}
        return json.dumps(content, indent=2).encode("ascii")

    def _hash(self, user: str | None, session: str | None) -> str:
        return self._recorder.identify(json.dumps([FILE, user, session]))
