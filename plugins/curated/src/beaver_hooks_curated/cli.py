"""`beaver memory curated edit`. The other commands are those of conversations; see `commands`."""

import asyncio

import click

from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.plugin import Curated
from beaver_hooks_curated.scanning import clean
from beaver_hostspecs import Shell

TARGETS = click.Choice([target.value for target in Target])


@click.group(name="curated")
def group() -> None:
    """Commands of the curated memory: MEMORY.md and USER.md."""


@group.command()
@click.argument("target", type=TARGETS, default=Target.MEMORY.value)
@click.option("--user", metavar="ID", help="Whose memory.")
@click.pass_obj
def edit(shell: Shell, target: str, user: str | None) -> None:
    """Open MEMORY.md (or, with `user`, USER.md) in your editor, and take what you make of it.

    Entries stand between lines that hold only a section sign. What was written in the meantime stays. `history` shows
    the change, and `undo` takes it back.
    """
    chosen = Target(target)
    base = shell.call(lambda plugin: _text(plugin, chosen, user))
    text = click.edit(base, extension=".md")
    if text is None or text.strip() == base.strip():
        click.echo("Nothing was changed.")
        return
    click.echo(shell.call(lambda plugin: _take(plugin, chosen, base, text, user)))


async def _text(plugin: Curated, target: Target, user: str | None) -> str:
    return await asyncio.to_thread(plugin.service.editable, target, user)


async def _take(plugin: Curated, target: Target, base: str, text: str, user: str | None) -> str:
    written = await asyncio.to_thread(plugin.take_edit, target, base, text, user)
    hidden = [clean(entry) for entry in written.page.entries if plugin.service.scan(entry)]
    warning = "".join(f"\nNot shown to the model, it looks like a threat: {entry[:100]}" for entry in hidden)
    return f"{written.page.target.file_name}: {written.page.usage}.{warning}"
