"""What the command line says once per state folder: which plugins are left out, in their own words."""

import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from beaver_hooks.cli.terminal import show
from beaver_toolkit.files import create_once

if TYPE_CHECKING:
    # A client of `beaver mcp` waits for what is imported before it is answered.
    from beaver_hooks.record.health import Health

FOLDER = "notices"
"""The folder in the state folder with one empty file for each thing that was said."""

_LEFT_OUT = "event=beaver_hooks.plugin_unavailable "
_OWN_WORDS = "error=PluginUnavailable"


def is_news(record: logging.LogRecord) -> bool:
    """Whether a log record says more than `tell_left_out` does: a plugin that asks to be left out is told there."""
    text = record.getMessage()
    return not (text.startswith(_LEFT_OUT) and text.endswith(_OWN_WORDS))


def tell_left_out(status: "Mapping[str, Health]", folder: Path) -> None:
    """Say on stderr which plugins are left out, each reason once per state folder; `beaver check` always says it."""
    for name, health in status.items():
        if health.state == "unavailable" and _is_first(folder, name, health.reason):
            show(f"{name} is left out: {health.reason}. This is said once; `beaver check` repeats it.", err=True)


def _is_first(state_folder: Path, name: str, reason: str | None) -> bool:
    folder = state_folder / FOLDER
    path = folder / f"{name}-{hashlib.sha256(str(reason).encode()).hexdigest()[:16]}"
    if os.path.lexists(path):
        return False
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        create_once(path, b"")
    except OSError:
        return True  # said again, rather than never
    return True
