"""The page about the local memory is true."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import attrs
import click
import pytest

from beaver_hooks.config.type_hints import key_of
from beaver_hooks_local import commands
from beaver_hooks_local.cli import group
from beaver_hooks_local.cli.explain import REASONS
from beaver_hooks_local.settings import LocalSettings
from beaver_hooks_local.tools.schemas import SCHEMAS
from beaver_hooks_local.trust import VISIBLE
from beaver_memory.embedding.catalog import KNOWN
from beaver_memory.search.formulas import Weights

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "local.md").read_text("utf-8")


def part(title):
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(title):
    """Return the rows of the tables in a section: the names in the first cell, and the other cells."""
    found = [line.strip("| ").split(" | ") for line in part(title).splitlines() if line.startswith("| ")]
    return [(re.findall(r"`([^`]+)`", first), rest) for first, *rest in found]


def settings_of(cls, prefix=""):
    for field in attrs.fields(cls):
        name = f"{prefix}{key_of(field)}"
        if attrs.has(type(field.default)):
            yield from settings_of(type(field.default), f"{name}.")
        else:
            yield name, field.default


def shown(default):
    if default is None or isinstance(default, bool):
        return {None: "`null`", True: "`true`", False: "`false`"}[default]
    if default == ():
        return "`[]`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def test_every_setting_is_documented():
    """The table has exactly the settings with their defaults."""
    documented = {name: rest[0] for names, rest in rows("Settings") for name in names}

    assert {name: shown(default) for name, default in settings_of(LocalSettings)} == documented


def test_trust_tools_and_signals():
    """The tables of trust, tools and signals hold exactly the levels, tools and weights of the code."""
    trust = {names[0]: rest[0] for names, rest in rows("Who sees what") if names}

    assert {
        level.value: ", ".join(f"`{each.value}`" for each in seen) or "none" for level, seen in VISIBLE.items()
    } == trust
    assert [*SCHEMAS] == [names[0] for names, _ in rows("Tools") if names]
    assert [*attrs.fields_dict(Weights)] == sorted(
        (name for names, _ in rows("How memories are ranked") for name in names),
        key=[*attrs.fields_dict(Weights)].index,
    )


def test_every_command_is_documented():
    """Each command of the command line and of conversations, and each filter option, is named."""
    named = {each.split()[0] for names, _ in rows("From the command line") for each in names}
    below = {name for names, _ in rows("From the command line") for name in names if names[0].startswith("embedder")}
    listed = [option.opts[0] for option in group.commands["export"].params if isinstance(option, click.Option)]
    embedder = group.commands["embedder"].commands

    shown = {name for name, each in group.commands.items() if not each.hidden}
    assert shown == named - {*embedder} | ({*embedder} & {*group.commands})
    assert {*embedder} == {each.split()[-1] for each in below}
    assert [] == [each for each in listed if each not in {"-o", "--force", "--debug"} and f"`{each}`" not in PAGE]
    assert [] == [each.name for each in commands.offered(None) if f"`{each.name}" not in part("In a conversation")]


def test_every_reason_of_the_gate_has_its_words():
    """`explain` has a sentence for each reason that the page lists, except those of a running session."""
    reasons = {name for _, rest in rows("What happens in a turn") for name in re.findall(r"`(\w+)`", rest[0])}

    assert {"memory_changed", "stale", "window_over", "tool_turn", "trust"} == reasons - {*REASONS}
    assert set() == {*REASONS} - reasons


def test_what_a_model_costs():
    """The page gives the sizes in megabytes of the pinned packages and files."""
    known = KNOWN["e5-small"]
    fetched = sum(piece.wheel_bytes for piece in known.pieces) / 1_000_000

    assert f"{fetched:.0f} MB are fetched once, {known.size / 1_000_000:.0f} MB kept" in PAGE


@pytest.mark.campaign
def test_the_commands_run(tmp_path):
    """Every `beaver` line of the page runs in order in an empty folder, with the answer that the page shows."""
    (tmp_path / "beaver").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m beaver_hooks.cli "$@"\n')
    (tmp_path / "beaver").chmod(0o700)
    folder = tmp_path / "work"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER", "COV"))}
    environment = {
        **kept,
        "PATH": f"{tmp_path}:{kept['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "xdg"),
        "HOME": str(tmp_path),
    }
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if "beaver " in line]
    outs = []
    for line in lines:
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        outs.append(done.stdout)
    (answer,) = re.findall(r"^```text\n(.*?)^```$", part("In two minutes"), re.MULTILINE | re.DOTALL)

    assert answer == outs[2]
    assert (19, 4) == (len(lines), len((folder / "memories.jsonl").read_text().splitlines()) + 1)
