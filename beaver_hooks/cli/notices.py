"""Notices shown once per state folder: plugins that are left out, and the notices of the others."""

import hashlib
import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beaver_hooks.cli.terminal import show
from beaver_hostspecs import scrub
from beaver_toolkit.files import create_once

if TYPE_CHECKING:
    # A client of `beaver mcp` waits for the imports before its first answer.
    from beaver_hooks.receipts.health import Health

FOLDER = "notices"
"""The folder in the state folder with one empty file for each shown notice."""

ONCE = "This line is shown once; `beaver check` repeats it."

_OPTED_OUT = re.compile(r"event=beaver_hooks\.plugin_unavailable plugin=\S+ error=PluginUnavailable ")


def is_news(record: logging.LogRecord) -> bool:
    """Whether a log record says more than `tell_once`, which reports plugins that opt out."""
    return not _OPTED_OUT.match(record.getMessage())


def tell_once(status: "Mapping[str, Health]", notices: Mapping[str, Sequence[str]], folder: Path) -> None:
    """Show on stderr the plugins that are left out and the notices of the others, each once per state folder."""
    for name, health in status.items():
        if health.state == "unavailable" and _is_first(folder, name, health.reason):
            show(f"{name} is left out: {health.reason}. {ONCE}", err=True)
    for name, texts in notices.items():
        for text in texts:
            if _is_first(folder, name, text):
                show(scrub(f"{name}: {text}. {ONCE}"), err=True)


def _is_first(state_folder: Path, name: str, reason: str | None) -> bool:
    folder = state_folder / FOLDER
    path = folder / f"{name}-{hashlib.sha256(str(reason).encode()).hexdigest()[:16]}"
    if os.path.lexists(path):
        return False
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        create_once(path, b"")
    except OSError:
        return True  # shown again, rather than never
    return True
