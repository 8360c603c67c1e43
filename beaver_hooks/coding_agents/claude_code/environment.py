"""Whether a session has another environment than the resident: a credential may be set meanwhile, or be another one."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from beaver_hooks.coding_agents.claude_code.client import digests
from beaver_hooks.config.parser import read_json
from beaver_hostspecs import ConfigurationError

USUAL = "_API_KEY"
"""How the names end under which plugins look where the configuration names none."""


def differs(given: bytes, config: Path) -> bool:
    """Whether a variable that matters differs from ours.

    Args:
        given: the digests of the session's environment, as the client makes them; nothing if it has sent none.
        config: the configuration: every variable matters whose name is one of its texts.
    """
    theirs, ours = _parsed(given), _parsed(digests(os.environ))
    named = set(_texts(config))
    changed = {name for name, _ in theirs.items() ^ ours.items()} if given else set()
    return any(name in named or name.endswith(USUAL) for name in changed)


def _parsed(lines: bytes) -> dict[str, str]:
    pairs = (each.partition(" ") for each in os.fsdecode(lines).split("\n"))
    return {name: digest for digest, _, name in pairs}


def _texts(config: Path) -> Iterator[str]:
    try:
        yield from _within(read_json(config))
    except (ConfigurationError, OSError):
        return  # nothing is used of it


def _within(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _within(each)
