"""Checks that a file with a random secret was made by this user, and did not come with a foreign folder.

The record of confirmations, outside every project, holds the file's digest under its real path. A foreign file cannot
match the digest, as the content is random.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from beaver_hooks.config.trust import record_trust, recorded_fingerprint


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
