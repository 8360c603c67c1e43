"""`pin`, `unpin` and `forget`: the commands that change stored memories."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import click

from beaver_hooks_local.cli.options import ID, WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import HEADS, counted, record, row, say, say_json, table, title
from beaver_hooks_local.cli.plugin_calls import ask, call
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.cli.search import ensure_all
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.plugin import Local
from beaver_hostspecs import BeaverError, Shell
from beaver_memory.records import Memory
from beaver_memory.runtime.requests import MOST_LISTED, ForgetRequest, GetRequest, ListRequest, PinRequest

BATCH = 100
"""Memories that one call forgets."""

SHOWN = 50
"""Memories that the question for confirmation lists."""

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


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, type=ID)
@own_option
@click.option("--all", "everything", is_flag=True, help="Forget all memories of that user.")
@click.option("--damaged", is_flag=True, help="The memories fail their checksums; `check` names them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be forgotten, and forget nothing.")
@json_option
@debug_option
@click.pass_obj
def forget(
    shell: Shell,
    ids: tuple[int, ...],
    *,
    user: str | None,
    everything: bool,
    damaged: bool,
    yes: bool,
    dry: bool,
    as_json: bool,
) -> None:
    """Erase memories, also expired and superseded ones; this cannot be undone.

    Their texts, their vectors and the texts in their history are erased from the database and its indexes. The backup
    that was made when the database was migrated to a newer version is deleted. Only the fact that a memory existed, and
    when it was forgotten, is kept. Files of `beaver backup` that are older than this still hold them: delete those.
    """
    if bool(ids) is everything:
        raise click.UsageError("Name the memories (forget ID...), or forget all of them (forget --all).")
    which = OwnerOptions(user=user)
    if damaged:
        _forget_damaged(shell, ids, which, yes=yes and not dry, as_json=as_json)
        return
    found = _all(shell, which) if everything else _forgettable(shell, ids, which)
    if everything and not dry and (yes or not found):
        # Also without memories: the last turns may wait to become some.
        ask(shell, lambda memory: memory.operations.turns.erase(which.sight.owner), wrote=True)
    if not (found or as_json):
        say("There are no memories to forget.")
        return
    if not dry:
        _ensure_meant(found, yes=yes)
        gone = _forgotten(shell, found, which)
    if as_json:
        shown = [record(each) for each in found] if dry else [{"id": id_} for id_ in gone]
        quoting = {} if dry else {"quoting_sessions": _quoting(shell, found)}
        say_json({"dry_run": dry, "forgotten": shown, **quoting})
    elif dry:
        say(f"{_listed(found)}\nNothing was forgotten; without --dry-run, {counted(len(found), 'memory')} would be.")
    else:
        say(f"Forgot {counted(len(gone), 'memory')}: texts, vectors and the texts in the history are erased.")
        if quoting_sessions := _quoting(shell, found):
            say(f"{counted(quoting_sessions, 'session')} may quote it; to erase that: beaver sessions forget WORDS")


def _forget_damaged(shell: Shell, ids: tuple[int, ...], which: OwnerOptions, *, yes: bool, as_json: bool) -> None:
    """Erase memories that fail their checksums, which no command can show before."""
    if not (ids and yes):
        raise click.UsageError(
            "Name the damaged memories (see `beaver memory check`) and add --yes; none can be shown."
        )

    def work(memory: LocalMemory) -> tuple[int, ...]:
        return memory.operations.forget(ForgetRequest(ids=ids, own=which.own(memory, lapsed=True))).forgotten

    gone = ask(shell, work, wrote=True)
    if as_json:
        say_json({"dry_run": False, "forgotten": [{"id": id_} for id_ in gone]})
    else:
        say(f"Forgot {counted(len(gone), 'damaged memory')}.")


def _quoting(shell: Shell, forgotten: Sequence[Memory]) -> int | None:
    """Return how many stored sessions may still quote forgotten memories; `None` if that cannot be known."""
    texts = [text for each in forgotten for text in (each.title, each.narrative) if text]
    try:
        return shell.quoting_sessions(texts)
    except BeaverError as error:
        say(f"It is unknown whether stored sessions quote what was forgotten. {error}", err=True)
        return None


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
    ensure_all(ids, _there(shell, ids, which))


def _forgettable(shell: Shell, ids: tuple[int, ...], which: OwnerOptions) -> tuple[Memory, ...]:
    """Return memories that may be forgotten.

    Raises:
        UsageError: one of them is not there.
    """
    found = _there(shell, ids, which, lapsed=True)
    ensure_all(ids, found)
    return found


def _there(shell: Shell, ids: tuple[int, ...], which: OwnerOptions, *, lapsed: bool = False) -> tuple[Memory, ...]:
    def work(memory: LocalMemory) -> tuple[Memory, ...]:
        return memory.operations.get(GetRequest(ids=ids, visible=which.own(memory, lapsed=lapsed))).memories

    return ask(shell, work)


def _all(shell: Shell, which: OwnerOptions) -> tuple[Memory, ...]:
    """Return all memories of an owner, the newest first."""

    def work(memory: LocalMemory) -> tuple[Memory, ...]:
        request = ListRequest(visible=which.own(memory, lapsed=True), limit=MOST_LISTED)
        return memory.operations.list(request).memories

    return ask(shell, work)


def _ensure_meant(found: Sequence[Memory], *, yes: bool) -> None:
    """Ask the user to confirm that memories are forgotten; without a terminal, require --yes."""
    if yes or not found:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "Forgetting cannot be undone, and there is no terminal to ask for confirmation; add --yes, or --dry-run"
            " to see the memories."
        )
    say(_listed(found), err=True)
    click.confirm(f"Forget {counted(len(found), 'memory')} for good?", abort=True, err=True)


def _listed(found: Sequence[Memory]) -> str:
    now = datetime.now(UTC)
    lines = table([HEADS, *(row(each, now) for each in found[:SHOWN])])
    return lines if len(found) <= SHOWN else f"{lines}\nand {len(found) - SHOWN:,} more"


def _forgotten(shell: Shell, found: Sequence[Memory], which: OwnerOptions) -> list[int]:
    """Forget memories, and put each into the audit trail; return their ids."""
    stores = {each.id: each.store.value for each in found}
    bar = Bar()

    def work(memory: LocalMemory, ids: list[int]) -> tuple[int, ...]:
        gone = memory.operations.forget(ForgetRequest(ids=ids, own=which.own(memory, lapsed=True))).forgotten
        for id_ in gone:
            memory.trace("memory_forgotten", memory=id_)
        return gone

    async def forgotten(plugin: Local) -> list[int]:
        gone: list[int] = []
        ids = list(stores)
        try:
            for begin in range(0, len(ids), BATCH):
                done = await plugin.serve(partial(work, ids=ids[begin : begin + BATCH]), wrote=True)
                for id_ in done:
                    plugin.setup.report.event("memory_forgotten", memory=id_, store=stores[id_])
                gone += done
                bar(len(gone), len(ids), "forgetting")
        except BaseException:
            if gone:
                say(f"Before this failed, {len(gone)} of {counted(len(ids), 'memory')} were forgotten.", err=True)
            raise
        finally:
            bar.end()
        return gone

    return call(shell, forgotten)
