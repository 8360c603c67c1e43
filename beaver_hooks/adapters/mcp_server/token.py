"""The bearer token of the HTTP server: from the environment, else from a file of its own in the state folder.

A repository may contain a state folder, and its author would know a token in it. So only a file that was made on this
machine counts.
"""

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

import attrs

from beaver_hooks.config.ownership import record_made, was_made_here
from beaver_hooks.config.paths import printable
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import ConfigurationError, Secret
from beaver_toolkit.files import create_once, open_regular, sweep

VARIABLE = "BEAVER_MCP_TOKEN"
FILE = "mcp.token"
_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")
"""The form of a bearer token; an attacker could guess a shorter one."""


@attrs.frozen(kw_only=True)
class Token:
    """The token, and its source in words."""

    secret: Secret
    source: str


def find_token(state_folder: Path, environment: Mapping[str, str]) -> Token:
    """Return the token; make one unless it exists.

    Raises:
        ConfigurationError: it cannot be read or made, has the wrong form, or was not made on this machine.
        AuditUnavailable: the state folder cannot be used.
    """
    if given := environment.get(VARIABLE, "").strip():
        return Token(secret=_checked(given, VARIABLE), source=f"the one in {VARIABLE}")
    path = make_state_folder(state_folder) / FILE
    where = printable(str(path))
    try:
        sweep(path)
        made = create_once(path, f"{secrets.token_urlsafe(_BYTES)}\n".encode("ascii"))
        found = _read(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigurationError(
            where, f"cannot be used ({why}); remove it, and the next start writes a new one"
        ) from None
    secret = _checked(found, where)
    if made:
        record_made(path, found.encode("ascii"), environment)
    elif not was_made_here(path, found.encode("ascii"), environment):
        raise ConfigurationError(
            where,
            "was not written on this machine, so other people may know it; remove it, and the next start writes a new"
            " one",
        )
    return Token(secret=secret, source=f"in {where}")


def _read(path: Path) -> str:
    """Return the content of the file; tighten a mode that lets others read it."""
    with open_regular(path, follow_links=False) as file:
        if os.fstat(file.fileno()).st_mode & 0o077 and os.name != "nt":
            os.fchmod(file.fileno(), 0o600)
        return file.read(1024).decode("ascii").strip()


def _checked(token: str, where: str) -> Secret:
    if not _TOKEN.fullmatch(token):
        raise ConfigurationError(where, "a token has 16 to 512 letters, digits and `-._~+/=`")
    return Secret(token)
