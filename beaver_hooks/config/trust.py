"""Checks that the user has confirmed a configuration that was found and not named by the caller.

A configuration can name programs, addresses and environment variables, and a foreign folder may contain one. So
a found configuration takes effect only after a confirmation, recorded per real path for everything in the file
that is not a number: a changed number needs no new confirmation, a changed key, text, switch or structure does.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from beaver_hooks.config.confirmations import Fingerprints, change_record, read_record, record_path
from beaver_hooks.config.entries import NO_CLASSES, Classes
from beaver_hooks.config.parser import read_json
from beaver_hooks.config.summaries import Summary, summarise
from beaver_hooks.config.versions import drop_version, keep_version, kept_version


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


def _drop(record: Path, key: str, fingerprints: Fingerprints) -> None:
    drop_version(record, key)
    fingerprints.pop(key, None)


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _environment(given: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if given is None else given
