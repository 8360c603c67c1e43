"""The record of the configurations that the user has confirmed: one file per user, outside every project.

`$XDG_STATE_HOME/beaver-hooks/trusted.json`, or below `~/.local/state`. It holds a fingerprint per real path.
It is changed under a lock, by a new file that replaces the old one. An unreadable record is an error.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.files import replace, sweep
from beaver_toolkit.locks import LocksMissing, locked

_VERSION = 1

Fingerprints = dict[str, str]


def record_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the record."""
    base = Path(environment.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the XDG specification: ignore a relative path
        base = Path(environment.get("HOME") or Path.home()) / ".local" / "state"
    return base / "beaver-hooks" / "trusted.json"


def read_record(path: Path) -> Fingerprints:
    """Return the fingerprints by real path; none without a record.

    Raises:
        ConfigurationError: the record cannot be read, so no configuration is trusted.
    """
    try:
        return _checked(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        pass  # raised below, so that the error is not chained to one that holds the file's text
    raise _fault(f"the record {printable(str(path))} cannot be read, so nothing is trusted; repair it or move it away")


def change_record(path: Path, change: Callable[[Fingerprints], None]) -> None:
    """Apply `change` to the record, atomically, also if other processes change it at the same time.

    Raises:
        ConfigurationError: the record cannot be read or written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(path.with_name("trusted.json.lock")):
            fingerprints = read_record(path)
            change(fingerprints)
            # Under the lock no other process writes, so every temporary file is left from a killed process.
            sweep(path, older_than=0)
            replace(path, _serialised(fingerprints))
            return
    except LocksMissing:
        problem = "a confirmation needs file locks, which this system lacks; name the file in BEAVER_CONFIG instead"
    except OSError as error:
        why = f"cannot be written ({error.strerror}); check the permissions of its folder, or set XDG_STATE_HOME"
        problem = f"the record {printable(str(path))} {why}"
    raise _fault(problem)


def _serialised(fingerprints: Fingerprints) -> bytes:
    return json.dumps({"version": _VERSION, "trusted": fingerprints}, indent=2).encode("ascii")


def _checked(value: object) -> Fingerprints:
    trusted = value.get("trusted") if isinstance(value, dict) and value.get("version") == _VERSION else None
    if not isinstance(trusted, dict) or not all(isinstance(each, str) for each in trusted.values()):
        raise ValueError("not a record")
    return trusted


def _fault(problem: str) -> ConfigurationError:
    return ConfigurationError("", problem)
