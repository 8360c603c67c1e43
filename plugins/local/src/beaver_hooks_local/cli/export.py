"""`export`: memories as JSON lines, which `add --json-lines` takes."""

import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from beaver_hooks_local.cli.options import OwnerOptions, asked, debug_option, filtered
from beaver_hooks_local.cli.output import counted, line_of, plain, record, say, say_json
from beaver_hooks_local.cli.plugin_calls import ask_long
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.visibility import Home
from beaver_hostspecs import PluginError, Shell
from beaver_memory.filters import Filters
from beaver_memory.records import Memory
from beaver_memory.runtime.requests import DamagedRequest, ExportRequest, InspectionRequest
from beaver_memory.views import tenant_without
from beaver_toolkit.files import sync

STANDARD = Path("-")
"""The path that means stdout."""

PAGE = 500

Write = Callable[[str], object]


@click.command()
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), default=STANDARD,
              help="The file to write, instead of stdout.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@filtered
@click.option("--damaged", is_flag=True, help="Export rows that fail their checksums, as far as they can be read.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON when writing to FILE; the lines are always JSON."
)
@debug_option
@click.pass_obj
def export(shell: Shell, /, *, output: Path, force: bool, damaged: bool, as_json: bool, **options: Any) -> None:
    """Export the memories of all users as JSON lines, or with --user those of one user.

    Expired and superseded memories are left out, unless --all is given. With --damaged, only rows that fail their
    checksums are exported, as evidence; `add --json-lines` does not take these lines. The file is written completely or
    not at all, and only you can read it.

    `beaver memory export --subject USER -o FILE` writes all data of one person, also that of other plugins and
    the conversations.
    """
    which = asked(**options)
    if damaged and (which.project or which.narrowed):
        raise click.UsageError("A damaged row does not tell what it holds; with --damaged, only --user can be given.")
    lines, noun = (_damaged, "damaged row") if damaged else (_lines, "memory")
    if output == STANDARD:
        # A bar would disturb the lines if both are on one terminal.
        ask_long(shell, lambda memory, bar: lines(memory, which, _print, bar), shown=not sys.stdout.isatty())
        return
    _ensure_free(output, force=force)
    with _private(output, force=force) as file:
        count = ask_long(shell, lambda memory, bar: lines(memory, which, file.write, bar))
    if as_json:
        say_json({"exported": count, "file": str(output)})
    else:
        say(f"Exported {counted(count, noun)} to {output}.")


def _print(text: str) -> None:
    click.echo(text, nl=False)


def _lines(memory: LocalMemory, which: OwnerOptions, write: Write, bar: Bar) -> int:
    """Write memories; return how many."""
    visible = which.filters(memory)
    of_all = InspectionRequest(owners=visible.view.owners if which.user else None, embeddings=False, figures=False)
    total, count = memory.operations.inspect(of_all).count, 0
    for page in _pages(memory, visible, every_owner=not which.user):
        bar(count, total, "exporting")
        write("".join(f"{line_of(record(_named(each, memory.home)))}\n" for each in page))
        count += len(page)
    return count


def _named(memory: Memory, home: Home) -> Memory:
    """Return a memory without the tenant and the project of this process, which an import gives it anew."""
    owner = attrs.evolve(memory.owner, tenant=tenant_without(home.tenant, memory.owner.tenant))
    return attrs.evolve(memory, owner=owner, project="" if memory.project == home.project else memory.project)


def _pages(memory: LocalMemory, visible: Filters, *, every_owner: bool) -> Iterator[tuple[Memory, ...]]:
    cursor: str | None = ""
    while cursor is not None:
        request = ExportRequest(visible=visible, every_owner=every_owner, limit=PAGE, cursor=cursor)
        page = memory.operations.export(request)
        yield page.memories
        cursor = page.next_cursor or None


def _damaged(memory: LocalMemory, which: OwnerOptions, write: Write, bar: Bar) -> int:
    """Write damaged rows; return how many."""
    count, has_more = 0, True
    while has_more:
        own = which.own(memory, lapsed=True)
        page = memory.operations.damaged(
            DamagedRequest(visible=own, every_owner=not which.user, limit=PAGE, after=count)
        )
        write("".join(f"{line_of(plain(attrs.asdict(each)))}\n" for each in page.rows))
        count, has_more = count + len(page.rows), page.has_more
        bar(count, count, "exporting")
    return count


def _ensure_free(path: Path, *, force: bool) -> None:
    if force and path.exists() and not path.is_file():
        # --force would replace it, and a user who names a device or a pipe means to write to it.
        raise click.UsageError(
            f"{path} is not a file that can be replaced; name another one, or redirect stdout to it."
        )
    if not force and os.path.lexists(path):
        raise click.UsageError(f"The file {path} exists; overwrite it with --force.")


@contextlib.contextmanager
def _private(path: Path, *, force: bool) -> Iterator[Any]:
    """Yield a file to write, which gets its name once all of it is on the disk.

    Raises:
        PluginError: the file cannot be written.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _name(new, path, force=force)
    except OSError as error:
        raise PluginError(
            f"The file {path} cannot be written ({error.strerror}); name another one.", plugin="local"
        ) from error
    finally:
        new.unlink(missing_ok=True)


def _name(new: Path, path: Path, *, force: bool) -> None:
    if force:
        new.replace(path)
    else:
        try:
            os.link(new, path)
        except FileExistsError:
            # Another process has made it since the first check.
            _ensure_free(path, force=False)
    sync(path.parent)
