"""The last confirmed version of each configuration, so that a person can be shown the changes.

The folder `confirmed/` beside the record of confirmations has a file (0600) per configuration. It holds the settings in
their shown form, a secret by its name alone, and a salted digest of each.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.entries import Classes, Entry, entries_of
from beaver_toolkit.files import replace

FOLDER = "confirmed"
_VERSION = 1


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
