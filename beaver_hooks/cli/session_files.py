"""`beaver sessions export` and `import`: sessions to and from JSON lines."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from beaver_hooks.agent.errors import SessionError, StorageError, UnknownSession
from beaver_hooks.agent.sessions.records import ImportReport
from beaver_hooks.agent.sessions.store import MOST_ROWS
from beaver_hooks.agent.sessions.transfer import Incoming, read_lines
from beaver_hooks.cli.common import common, configured, in_loop
from beaver_hooks.cli.session_texts import import_text
from beaver_hooks.cli.state import has_sessions, nothing_yet, session_named, sessions_in
from beaver_hooks.cli.terminal import counted, show, waiting
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.paths import printable
from beaver_toolkit.files import create_once, replace

STANDARD = Path("-")
"""Stands for stdin and stdout."""

BEGINNING = '{"type": "session"'
"""The beginning of each session's first line; see `transfer`."""

file_type = click.Path(dir_okay=False, path_type=Path)


@click.command(name="export", short_help="Export sessions as JSON lines.")
@click.argument("session", metavar="[SESSION]", required=False)
@click.option(
    "-o", "--output", metavar="FILE", type=file_type, default=STANDARD, help="The file to write, instead of stdout."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@common
def export_command(session: str | None, *, output: Path, force: bool, config: Path | None) -> None:
    """Export one session, or all of them, as JSON lines, with their hidden events.

    The file is written completely or not at all, and only you can read it.
    """
    folder = configured(config).state_folder
    if not has_sessions(folder):
        if session is not None:
            raise UnknownSession(nothing_yet(folder))
        show(nothing_yet(folder), err=True)
    elif output == STANDARD:
        in_loop(_export(folder, session, show))
    else:
        _export_to(output, folder, session, force=force)


@click.command(name="import")
@click.argument("file", type=file_type)
@click.option("--replace", "replacing", is_flag=True, help="Replace the sessions that are stored already.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@common
def import_command(file: Path, *, replacing: bool, dry_run: bool, config: Path | None) -> None:
    """Import sessions from an exported file; `-` reads stdin.

    Sessions that are stored already are skipped. If a line of the file is wrong, nothing is imported. Secrets in the
    messages are masked, unless `agent.storeSecrets` keeps them.
    """
    loaded = configured(config)
    folder = loaded.state_folder
    lines = _lines(file)
    with waiting("Importing the sessions"):
        if dry_run:
            report = _foreseen(read_lines(lines), _stored_ids(folder), replacing=replacing)
        else:
            report = in_loop(_import(loaded, lines, replacing=replacing))
    show(import_text(report, dry_run=dry_run))


async def _export(folder: Path, session: str | None, write: Callable[[str], None]) -> int:
    """Write lines; return the number of their sessions."""
    count = 0
    async with sessions_in(folder) as store:
        chosen = None if session is None else await session_named(store, session)
        async for line in store.export(chosen):
            write(line)
            count += line.startswith(BEGINNING)
    return count


def _export_to(path: Path, folder: Path, session: str | None, *, force: bool) -> None:
    if not force:
        _ensure(not os.path.lexists(path), path)
    lines: list[str] = []
    with waiting("Exporting the sessions"):
        count = in_loop(_export(folder, session, lines.append))
        _write(path, "".join(f"{line}\n" for line in lines).encode("ascii"), force=force)
    show(f"Exported {counted(count, 'session')} to {path}.")


def _write(path: Path, content: bytes, *, force: bool) -> None:
    try:
        if force:
            replace(path, content)
            return
        # Another process may have made it since the check.
        made = create_once(path, content)
    except OSError as error:
        raise StorageError(
            f"The file {printable(str(path))} cannot be written ({error.strerror}); name another one."
        ) from error
    _ensure(made, path)


def _ensure(free: bool, path: Path) -> None:  # noqa: FBT001 - the condition to ensure
    if not free:
        raise click.UsageError(f"The file {printable(str(path))} exists; overwrite it with --force.")


def _lines(file: Path) -> list[str]:
    """Return the lines of a file or of stdin; only line feeds end them, a text may contain other line ends."""
    try:
        content = sys.stdin.buffer.read() if file == STANDARD else file.read_bytes()
        return content.decode("utf-8-sig").split("\n")
    except OSError as error:
        raise StorageError(
            f"The file {printable(str(file))} cannot be read ({error.strerror}); nothing was imported."
        ) from error
    except UnicodeDecodeError as error:
        raise SessionError(
            "The file does not hold exported sessions (it is not UTF-8); nothing was imported. Export them again."
        ) from error


async def _import(loaded: LoadedConfig, lines: Iterable[str], *, replacing: bool) -> ImportReport:
    async with sessions_in(loaded.state_folder, store_secrets=loaded.config.agent.store_secrets) as store:
        return await store.import_(lines, replace=replacing)


def _stored_ids(folder: Path) -> set[str]:
    async def ids() -> set[str]:
        async with sessions_in(folder) as store:
            return {each.id for each in await store.list(MOST_ROWS)}

    return in_loop(ids()) if has_sessions(folder) else set()


def _foreseen(incoming: Iterable[Incoming], stored: set[str], *, replacing: bool) -> ImportReport:
    """Return the report of an import without doing it."""
    coming = list(incoming)
    known = [each for each in coming if each.id in stored]
    taken = coming if replacing else [each for each in coming if each.id not in stored]
    return ImportReport(
        added=len(coming) - len(known),
        skipped=0 if replacing else len(known),
        replaced=len(known) if replacing else 0,
        messages=sum(len(each.messages) for each in taken),
    )
