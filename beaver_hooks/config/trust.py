"""Checks that the user has confirmed a configuration that was found and not named by the caller.

A configuration can name programs, addresses and environment variables, and a foreign folder may contain one. So
a found configuration takes effect only after a confirmation, recorded per real path for everything in the file
that is not a number: a changed number needs no new confirmation, a changed key, text, switch or structure does.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.entries import NO_CLASSES, Classes, Entry, entries_of
from beaver_hooks.config.parser import read_json
from beaver_hooks.config.paths import printable
from beaver_hooks.config.summaries import Summary, summarise
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.files import replace, sweep
from beaver_toolkit.locks import LocksMissing, locked

FOLDER = "confirmed"
"""The folder beside the record with a file (0600) per configuration: its settings in their shown form, a secret by its
name alone, and a salted digest of each. So a person can be shown the changes."""

_VERSION = 1

Fingerprints = dict[str, str]


def trust_config(path: Path, *, environment: Mapping[str, str] | None = None) -> None:
    """Record that the present configuration at `path` may take effect.

    Raises:
        ConfigurationError: it cannot be read, or the record cannot be written.
    """
    confirm(path, read_json(path), _environment(environment))


def is_trusted(path: Path, *, environment: Mapping[str, str] | None = None) -> bool:
    """Whether the user has confirmed the present configuration at `path`.

    Raises:
        ConfigurationError: the file or the record cannot be read.
    """
    known = recorded_fingerprint(path, _environment(environment))
    return known == fingerprint(read_json(path))


def forget_trust(path: Path, *, environment: Mapping[str, str] | None = None) -> bool:
    """Remove a confirmation, and return whether it existed. The file itself need not exist any more.

    Raises:
        ConfigurationError: the record cannot be read or written.
    """
    where = record_path(_environment(environment))
    if _key(path) not in read_record(where):
        return False
    change_record(where, partial(_drop, where, _key(path)))
    return True


def confirm(path: Path, raw: Mapping[str, Any], environment: Mapping[str, str], classes: Classes = NO_CLASSES) -> None:
    """Record that the configuration at `path`, which holds `raw`, may take effect, and keep the confirmed version.

    Raises:
        ConfigurationError: the record cannot be read or written.
    """
    record, key, current = record_path(environment), _key(path), fingerprint(raw)

    def keep(fingerprints: Fingerprints) -> None:
        keep_version(record, key, raw, current, classes)
        fingerprints[key] = current

    change_record(record, keep)


def review(
    path: Path, raw: Mapping[str, Any], environment: Mapping[str, str], classes: Classes = NO_CLASSES
) -> Summary:
    """Return the summary of the configuration at `path`: its changes since the confirmed one, if that is kept."""
    known = recorded_fingerprint(path, environment)
    before = kept_version(record_path(environment), _key(path), known)
    changed = known is not None and known != fingerprint(raw)
    return summarise(
        raw,
        Path(_key(path)),
        changed=changed,
        previous=before.entries if before is not None and changed else None,
        salt=before.salt if before is not None else "",
        classes=classes,
    )


def record_trust(path: Path, of: str, environment: Mapping[str, str]) -> None:
    """Record the confirmation of the configuration that has the given fingerprint."""
    change_record(record_path(environment), lambda fingerprints: fingerprints.update({_key(path): of}))


def recorded_fingerprint(path: Path, environment: Mapping[str, str]) -> str | None:
    """Return the fingerprint that was confirmed for `path`, or `None`."""
    return read_record(record_path(environment)).get(_key(path))


def fingerprint(raw: Mapping[str, Any]) -> str:
    """Return a digest of a configuration without its numbers."""
    canonical = json.dumps(_shape(raw), separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _shape(value: object) -> object:
    """Return `value` without its numbers, in a form that distinguishes all kinds of values."""
    if isinstance(value, Mapping):
        return {"object": [[key, _shape(value[key])] for key in sorted(value)]}
    if isinstance(value, list):
        return {"list": [_shape(each) for each in value]}
    if isinstance(value, bool) or value is None:
        return value
    return {"text": value} if isinstance(value, str) else {"number": None}


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


def _drop(record: Path, key: str, fingerprints: Fingerprints) -> None:
    drop_version(record, key)
    fingerprints.pop(key, None)


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _environment(given: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if given is None else given


def record_made(path: Path, secret: bytes, environment: Mapping[str, str]) -> None:
    """Record that this user made the file at `path`, which holds `secret`.

    Raises:
        ConfigurationError: the record cannot be read or written.
    """
    record_trust(path, _digest(secret), environment)


def was_made_here(path: Path, secret: bytes, environment: Mapping[str, str]) -> bool:
    """Whether the record says that this user made the file at `path` with its present `secret`.

    Raises:
        ConfigurationError: the record cannot be read.
    """
    return recorded_fingerprint(path, environment) == _digest(secret)


def _digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


@attrs.frozen(kw_only=True)
class Confirmed:
    """The confirmed settings of a configuration.

    Attributes:
        fingerprint: the fingerprint of the configuration.
        salt: the salt of the entries' digests.
        entries: the settings.
    """

    fingerprint: str
    salt: str
    entries: tuple[Entry, ...]


def keep_version(record: Path, path: str, raw: Mapping[str, Any], fingerprint: str, classes: Classes) -> None:
    """Keep the confirmed version of the configuration at `path`.

    Raises:
        OSError: it cannot be written.
    """
    file, salt = _file(record, path), secrets.token_hex(16)
    entries = [attrs.asdict(each) for each in entries_of(raw, salt=salt, classes=classes)]
    body = {"version": _VERSION, "path": path, "fingerprint": fingerprint, "salt": salt, "entries": entries}
    file.parent.mkdir(mode=0o700, exist_ok=True)
    replace(file, json.dumps(body, indent=2).encode("ascii"))


def kept_version(record: Path, path: str, fingerprint: str | None) -> Confirmed | None:
    """Return the confirmed version of `path`, or `None` if it was not kept or does not match `fingerprint`."""
    try:
        confirmed = _confirmed(json.loads(_file(record, path).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None  # the person is shown all settings then, as for a configuration that is new
    return confirmed if confirmed.fingerprint == fingerprint else None


def drop_version(record: Path, path: str) -> None:
    """Remove the kept version of `path`.

    Raises:
        OSError: it cannot be removed.
    """
    _file(record, path).unlink(missing_ok=True)


def _confirmed(body: Any) -> Confirmed:
    if body["version"] != _VERSION:
        raise ValueError("of another version")
    entries = tuple(Entry(**each) for each in body["entries"])
    texts = [body["fingerprint"], body["salt"], *(text for each in entries for text in attrs.astuple(each))]
    if not all(isinstance(text, str) or text is None for text in texts):
        raise TypeError("not what is written here")
    return Confirmed(fingerprint=body["fingerprint"], salt=body["salt"], entries=entries)


def _file(record: Path, path: str) -> Path:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    return record.parent / FOLDER / f"{name}.json"
