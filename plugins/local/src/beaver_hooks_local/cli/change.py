"""`pin` and `unpin`: the commands that mark stored memories."""

import click

from beaver_hooks_local.cli.options import ID, WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import record, say, say_json, title
from beaver_hooks_local.cli.plugin_calls import ask
from beaver_hooks_local.cli.search import ensure_all
from beaver_hooks_local.memory import LocalMemory
from beaver_hostspecs import Shell
from beaver_memory.records import Memory
from beaver_memory.runtime.requests import GetRequest, PinRequest

ids_argument = click.argument("ids", metavar="ID...", nargs=-1, required=True, type=ID)
own_option = click.option(
    "--user", metavar="ID", type=WORD, help="The user whose memories are changed; without it, those without a user."
)


@click.command()
@ids_argument
@own_option
@json_option
@debug_option
@click.pass_obj
def pin(shell: Shell, ids: tuple[int, ...], *, user: str | None, as_json: bool) -> None:
    """Pin memories: they are kept, and rank higher."""
    _pinned(shell, ids, OwnerOptions(user=user), pinned=True, as_json=as_json)


@click.command()
@ids_argument
@own_option
@json_option
@debug_option
@click.pass_obj
def unpin(shell: Shell, ids: tuple[int, ...], *, user: str | None, as_json: bool) -> None:
    """Unpin memories."""
    _pinned(shell, ids, OwnerOptions(user=user), pinned=False, as_json=as_json)


def _pinned(shell: Shell, ids: tuple[int, ...], which: OwnerOptions, *, pinned: bool, as_json: bool) -> None:
    _own(shell, ids, which)

    def work(memory: LocalMemory) -> tuple[Memory, ...]:
        return memory.operations.pin(PinRequest(ids=ids, own=which.own(memory), pinned=pinned)).changed

    changed = ask(shell, work, wrote=True)
    if as_json:
        say_json({"memories": [record(each) for each in changed]})
    else:
        said = "pinned" if pinned else "no longer pinned"
        say("\n".join(f"[{each.id}] is {said}: {title(each)}" for each in changed))


def _own(shell: Shell, ids: tuple[int, ...], which: OwnerOptions) -> None:
    """Refuse ids of memories that may not be changed.

    Raises:
        UsageError: there are such ids.
    """
    ensure_all(shell, ids, _there(shell, ids, which), which)


def _there(shell: Shell, ids: tuple[int, ...], which: OwnerOptions) -> tuple[Memory, ...]:
    def work(memory: LocalMemory) -> tuple[Memory, ...]:
        return memory.operations.get(GetRequest(ids=ids, visible=which.own(memory))).memories

    return ask(shell, work)
