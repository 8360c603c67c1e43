"""The record of configurations somebody has confirmed: one file per user, outside every project.

`$XDG_STATE_HOME/beaver-hooks/trusted.json`, or below `~/.local/state`. It holds a fingerprint per real path.
Changed under a lock, by a new file that takes the old one's place; unreadable is not empty.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError

_VERSION = 1
_STRAY = ".trusted.json.*.tmp"

Fingerprints = dict[str, str]


def record_path(environment: Mapping[str, str]) -> Path:
    """Return where the record is kept."""
    base = Path(environment.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the XDG specification: a relative path is to be ignored
        base = Path(environment.get("HOME") or Path.home()) / ".local" / "state"
    return base / "beaver-hooks" / "trusted.json"


def read_record(path: Path) -> Fingerprints:
    """Return the fingerprints by real path; none when there is no record yet.

    Raises:
        ConfigurationError: there is a record and it cannot be read, so that nothing is trusted.
    """
    try:
        return _checked(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        pass  # raised below, so that the error is not chained to one that holds the file
    raise _fault(f"the record {printable(str(path))} cannot be read, so nothing is trusted; repair it or move it away")


def change_record(path: Path, change: Callable[[Fingerprints], None]) -> None:
    """Apply `change` to the record, whole or not at all, whatever other processes do at the same time.

    Raises:
        ConfigurationError: the record cannot be read or written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path.with_name("trusted.json.lock")):
            fingerprints = read_record(path)
            change(fingerprints)
            _sweep(path.parent)
            _replace(path, _serialised(fingerprints))
            return
    except OSError as error:
        why = error.strerror
    raise _fault(f"the record {printable(str(path))} cannot be written ({why}); see its folder, or set XDG_STATE_HOME")


def _serialised(fingerprints: Fingerprints) -> bytes:
    return json.dumps({"version": _VERSION, "trusted": fingerprints}, indent=2).encode("ascii")


def _checked(value: object) -> Fingerprints:
    trusted = value.get("trusted") if isinstance(value, dict) and value.get("version") == _VERSION else None
    if not isinstance(trusted, dict) or not all(isinstance(each, str) for each in trusted.values()):
        raise ValueError("not a record")
    return trusted


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        import fcntl  # noqa: PLC0415 - there is none on Windows, where everything but this works
    except ImportError:
        fcntl = None  # type: ignore[assignment]
    if fcntl is None:
        raise _fault("recording a confirmation needs file locks, which this system lacks; set BEAVER_CONFIG instead")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(folder: Path) -> None:
    # Under the lock nobody else is writing one: these are what a killed process left.
    for stray in folder.glob(_STRAY):
        stray.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".trusted.json.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _fault(problem: str) -> ConfigurationError:
    return ConfigurationError("", problem)
