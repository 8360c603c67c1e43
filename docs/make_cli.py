#!/usr/bin/env python3
"""Writes `docs/reference/cli.md` from the help texts of `beaver`. Run it with `make docs`."""

from collections.abc import Iterator
from pathlib import Path

import click

from beaver_hooks.cli.app import COMMANDS, EXIT_CODES, beaver

PAGE = Path(__file__).parent / "reference" / "cli.md"
WIDTH = 80
INTRODUCTION = """\
`beaver` runs an agent whose memory is plugins, and looks after what it keeps. It works at once, with no network and no
key: without a configuration the provider is `offline`, which answers from what it is given and says from where.

`make docs` makes this page from what `--help` prints. A plugin can add a group of commands under its own name; see
[Writing a plugin](../tutorial/writing-a-plugin.md)."""
BEFORE_CODES = """\
## Exit codes

Errors are one sentence and a remedy on stderr; `--debug` shows where they happened."""
VARIABLES = """\
## Environment

| variable | what it does |
|---|---|
| `BEAVER_CONFIG` | names the configuration file; naming it is trusting it |
| `BEAVER_LOG_LEVEL` | how much is logged to stderr: `debug`, `info`, `warning` (the default), `error` or `critical` |
| `NO_COLOR` | any value: no colour on a terminal either |
| `XDG_STATE_HOME` | where confirmations of configurations are recorded, `~/.local/state` unless set |"""


def page() -> str:
    """Return the text of the page."""
    codes = "\n".join(line.strip() for line in EXIT_CODES.splitlines() if line.strip()[:1].isdigit())
    parts = ["# The command `beaver`", INTRODUCTION, *_sections(), BEFORE_CODES, _block(codes), VARIABLES]
    return "\n\n".join(parts) + "\n"


def _sections() -> Iterator[str]:
    root = click.Context(beaver, info_name="beaver", terminal_width=WIDTH, **beaver.context_settings)
    for name in COMMANDS:
        yield from _of(_found(beaver, root, name), name, root, level=2)


def _of(command: click.Command, name: str, parent: click.Context, *, level: int) -> Iterator[str]:
    # Ignores the plugins and the configuration of this machine.
    context = click.Context(
        command, info_name=name, parent=parent, max_content_width=WIDTH, terminal_width=WIDTH, resilient_parsing=True
    )
    yield f"{'#' * level} {context.command_path}\n\n{_block(command.get_help(context))}"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _of(_found(command, context, each), each, context, level=level + 1)


def _found(group: click.Group, context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    if command is None:
        raise LookupError(f"{context.command_path} lists {name} and does not have it")
    return command


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
