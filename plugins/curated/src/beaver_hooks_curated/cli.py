"""`beaver memory curated edit`. The other commands are those of conversations; see `commands`."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from beaver_hooks_curated import files
from beaver_hooks_curated.entries import MOST_ENTRIES, Target
from beaver_hooks_curated.errors import CuratedError, EditNotTaken
from beaver_hooks_curated.plugin import Curated
from beaver_hooks_curated.threat_scan import clean, threats
from beaver_hostspecs import Shell

T = TypeVar("T")

TARGETS = click.Choice([target.value for target in Target])


def _named(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("a user id must not be blank; leave the option out if there is no user")
    return value


@click.group(name="curated")
def group() -> None:
    """Commands of the curated memory: MEMORY.md and USER.md."""


@group.command()
@click.argument("target", type=TARGETS, default=Target.MEMORY.value)
@click.option(
    "--user", metavar="ID", callback=_named, help="The user whose USER.md is edited, if USER.md is kept per user."
)
@click.pass_obj
def edit(shell: Shell, target: str, user: str | None) -> None:
    """Open MEMORY.md (or, with `user`, USER.md) in your editor, and save your changes.

    A line with only a section sign separates two entries. Entries written in the meantime stay. `history` shows the
    change, and `undo` reverts it. If your text cannot be saved, it is kept in a file that the error names.
    """
    chosen = Target(target)
    folder, base = _ask(shell, lambda plugin: _base(plugin, chosen, user))
    # As bytes: whatever the editor has saved comes back, text or not.
    content = click.edit(base.encode("utf-8"), extension=".md")
    if content is None or content.strip() == base.encode("utf-8").strip():
        click.echo("Nothing was changed.")
        return
    try:
        said = _ask(shell, lambda plugin: _take(plugin, chosen, base, content, user))
    except CuratedError as error:
        raise EditNotTaken(f"{error} {_kept(folder, chosen, content)}") from error
    except BaseException:
        # Not explained here: a fault of the host or of a setting, or an interrupt by the user.
        click.echo(_kept(folder, chosen, content), err=True)
        raise
    click.echo(said)


def _ask(shell: Shell, question: Callable[[Curated], T]) -> T:
    """Return the answer of the plugin, from a thread: it may wait for a disk or a lock."""
    return shell.call(lambda plugin: asyncio.to_thread(question, plugin))


def _kept(folder: Path, target: Target, content: bytes) -> str:
    """Keep the text of the user in the memory's folder or, where that is full or read-only, in the temporary one."""
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            return f"Your text is kept in {files.keep(place, target, content)}."
        except (CuratedError, OSError):
            continue
    click.echo(content.decode("utf-8", "replace"))
    return "Your text could not be kept anywhere; it is printed above."


def _base(plugin: Curated, target: Target, user: str | None) -> tuple[Path, str]:
    return plugin.service.folder_of(target, user), plugin.service.editable(target, user)


def _take(plugin: Curated, target: Target, base: str, content: bytes, user: str | None) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EditNotTaken("The text from the editor is not UTF-8, so nothing was written; save it as UTF-8.") from None
    written = plugin.take_edit(target, base, text, user)
    hidden = [clean(entry) for entry in written.page.entries[:MOST_ENTRIES] if threats(entry)]
    warnings = [f"This entry looks like a threat and is not shown to the model: {entry[:100]}" for entry in hidden]
    return "\n".join([f"{written.page.target.file_name}: {written.page.usage}.", *warnings])
