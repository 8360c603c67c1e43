"""`migrate`: copies the whole memory to a PostgreSQL database."""

import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import attrs
import click

from beaver_hooks_local.cli.options import Word, debug_option, json_option
from beaver_hooks_local.cli.output import counted, say, say_json
from beaver_hooks_local.cli.plugin_calls import ask_long
from beaver_hooks_local.settings import PostgresSettings
from beaver_hostspecs import Secret, Shell
from beaver_hostspecs.settings import Unfit
from beaver_memory.runtime.profile import PostgresLocation
from beaver_toolkit.postgres_urls import parsed

VARIABLE, STDIN = "env:", "-"
DIFFERENT = 1
"""The exit code if the copy differs from the memory."""


@click.command()
@click.option(
    "--to",
    "given",
    metavar="ADDRESS",
    required=True,
    help="The database: env:NAME for a variable, - for a line of stdin, or an address without a password.",
)
@click.option("--tenant", type=Word(), metavar="NAME", required=True, help="The tenant that gets the memories.")
@click.option("--project", type=Word(), metavar="NAME", help="The name that memories of this project get.")
@click.option("--schema", metavar="NAME", default="beaver_memory", show_default=True, help="The schema of the tables.")
@click.option("--allow-unencrypted", is_flag=True, help="Allow a server on another machine without TLS.")
@click.option("--dry-run", "dry", is_flag=True, help="Count what would be copied, and copy nothing.")
@json_option
@debug_option
@click.pass_context
def migrate(
    ctx: click.Context, /, *, given: str, project: str | None, dry: bool, as_json: bool, **settings: Any
) -> None:
    """Copy all memories to a PostgreSQL database, with ids, versions, history and embeddings.

    The memories here stay. An interrupted copy continues when the command is run again; later runs copy what has
    changed since. At the end every memory is read from both and compared; the exit code is 1 if a difference is left.
    """
    store = _settings(Secret(_address(given, os.environ, sys.stdin)), **settings)
    target = _location(ctx.obj, store, project)
    report = ask_long(
        ctx.obj,
        lambda memory, bar: memory.operations.migrate(target, bar, dry_run=dry),
        shown=not as_json,
    )
    if as_json:
        say_json({"dry_run": dry, **attrs.asdict(report)})
    else:
        say(_told(report, dry=dry))
    if report.differences:
        ctx.exit(DIFFERENT)


def _address(given: str, environment: Mapping[str, str], stdin: TextIO) -> str:
    """Return the address that `--to` names.

    Raises:
        click.UsageError: it holds a password, or is missing.
    """
    if given == STDIN:
        return stdin.readline().strip()
    if given.startswith(VARIABLE):
        name = given.removeprefix(VARIABLE)
        if not environment.get(name):
            raise click.UsageError("The variable that --to names is not set.")
        return environment[name]
    address = parsed(given)
    if address is not None and address.has_password:
        # The text is not repeated: it holds the password.
        raise click.UsageError(
            "Other users can read a password on the command line; write --to env:NAME or --to -, which reads stdin."
        )
    return given


def _settings(url: Secret, **settings: Any) -> PostgresSettings:
    """Return the settings of the database, checked as those in the configuration are.

    Raises:
        click.UsageError: they do not fit.
    """
    try:
        return PostgresSettings(url=url, **settings)
    except Unfit as unfit:
        raise click.UsageError(f"An option does not fit: {unfit}.") from None


def _location(shell: Shell, store: PostgresSettings, project: str | None) -> PostgresLocation:
    return PostgresLocation(
        url=store.url,
        tenant=store.tenant,
        project=project,
        schema=store.schema,
        connections=store.connections,
        connect_seconds=store.connect_seconds,
        state_folder=shell.folder(),
    )


def _told(report: Any, *, dry: bool) -> str:
    held = [
        f"{counted(report.memories, 'memory')} of {counted(report.owners, 'owner')}",
        f"{report.forgotten:,} forgotten",
        *(f"{counted(count, 'embedding')} by {model}" for model, count in report.embeddings.items()),
        counted(report.summaries, "summary"),
    ]
    lines = [f"This memory holds {', '.join(held)}."]
    if dry:
        return "\n".join([*lines, f"Nothing was copied; without --dry-run {counted(report.copied, 'row')} would be."])
    lines.append(f"Copied {counted(report.copied, 'row')}.")
    if report.differences:
        return "\n".join([*lines, *report.differences, "Run the command again while no program uses this memory."])
    return "\n".join([*lines, "Every memory was read from both stores: there is no difference."])
