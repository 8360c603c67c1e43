"""Comparison of a session's environment with the resident's: a credential may have been added or changed."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from beaver_hooks.coding_agents.claude_code.client import digests
from beaver_hooks.config.parser import read_json
from beaver_hostspecs import ConfigurationError

USUAL = "_API_KEY"
"""The suffix of the variables that plugins read if the configuration names none."""


def differs(given: bytes, config: Path) -> bool:
    """Whether a relevant variable differs from this process's.

    Args:
        given: the digests of the session's environment, as the client makes them; empty if the client sent none.
        config: the configuration; a variable is relevant if one of its texts is the variable's name.
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
        return  # an invalid configuration names no variable


def _within(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _within(each)
