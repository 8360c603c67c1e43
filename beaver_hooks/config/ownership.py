"""Whether a file with a random secret was made by this user, and not brought along by somebody's folder.

Its digest is kept in the record of confirmations, outside every project, under the file's real path. Nobody can bring
a file that fits: its content was random when it was made here.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from beaver_hooks.config.trust import record_trust, recorded_fingerprint


def record_made(path: Path, secret: bytes, environment: Mapping[str, str]) -> None:
    """Record that the file at `path`, which holds `secret`, is this user's.

    Raises:
        ConfigurationError: the record cannot be read or written.
    """
    record_trust(path, _digest(secret), environment)


def was_made_here(path: Path, secret: bytes, environment: Mapping[str, str]) -> bool:
    """Whether that was recorded of the file as it is.

    Raises:
        ConfigurationError: the record cannot be read.
    """
    return recorded_fingerprint(path, environment) == _digest(secret)


def _digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()
