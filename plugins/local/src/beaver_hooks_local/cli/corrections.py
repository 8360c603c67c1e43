"""`correct`, `undo` and `review`: the commands by which a person corrects what the memory has learned."""

from typing import Any

import click

from beaver_hooks_local.cli.change import own_option
from beaver_hooks_local.cli.options import ID, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import counted, one_line, record, say, say_json, table, title
from beaver_hooks_local.cli.plugin_calls import ask
from beaver_hooks_local.memory import LocalMemory
from beaver_hostspecs import Shell
from beaver_memory.runtime.capture_records import (
    CorrectReport,
    CorrectRequest,
    PendingReport,
    PendingRequest,
    ReviewReport,
    ReviewRequest,
    UndoReport,
    UndoRequest,
)

REASONS = {
    "no_such_memory": "There is no such memory that you may change; `beaver memory list --all` shows the ids.",
    "superseded": "Another memory holds in its place already; `beaver memory show ID` names it: correct that one.",
    "not_pending": "No memory with this id waits for approval; `beaver memory review` lists those that do.",
    "not_read_back": "The memory was written, and could not be read back; run `beaver memory check`.",
}
"""The sentence for each reason of a failure."""


@click.command()
@click.argument("id_", metavar="ID", type=ID)
@click.argument("words", metavar="TEXT", nargs=-1, required=True)
@own_option
@json_option
@debug_option
@click.pass_obj
def correct(shell: Shell, id_: int, words: tuple[str, ...], *, user: str | None, as_json: bool) -> None:
    """Put a new statement in place of a memory that does not hold any more.

    The older memory stays in the history: `search --as-of` finds it for times at which it held.
    """
    which = OwnerOptions(user=user)

    def work(memory: LocalMemory) -> CorrectReport:
        return memory.operations.correct(CorrectRequest(ids=[id_], text=" ".join(words), own=which.own(memory)))

    done = ask(shell, work, wrote=True)
    _ensure(done.reason, done.sentence)
    if as_json:
        say_json({"id": done.id, "outcome": done.outcome, "superseded": list(done.superseded)})
    else:
        ended = ", ".join(f"[{each}]" for each in done.superseded) or "the same text"
        say(f"[{done.id}] holds now, in place of {ended}.")


@click.command()
@own_option
@json_option
@debug_option
@click.pass_obj
def undo(shell: Shell, *, user: str | None, as_json: bool) -> None:
    """Forget the memories of the last captured turn or correction; those that they superseded hold again."""
    which = OwnerOptions(user=user)

    def work(memory: LocalMemory) -> UndoReport:
        return memory.operations.undo(UndoRequest(own=which.own(memory)))

    done = ask(shell, work, wrote=True)
    if as_json:
        say_json({"forgotten": [each.id for each in done.forgotten], "reopened": list(done.reopened)})
    elif not done.forgotten:
        say("No memory was captured lately.")
    else:
        lines = [f"forgot [{each.id}] {title(each)}" for each in done.forgotten]
        say("\n".join([*lines, *(f"[{id_}] holds again" for id_ in done.reopened)]))


@click.command()
@click.argument("id_", metavar="[ID]", type=ID, required=False)
@click.option("--accept", is_flag=True, help="Remember it.")
@click.option("--reject", is_flag=True, help="Erase it.")
@click.option("--edit", "text", metavar="TEXT", help="Remember this text in its place.")
@own_option
@json_option
@debug_option
@click.pass_obj
def review(
    shell: Shell,
    id_: int | None,
    *,
    accept: bool,
    reject: bool,
    text: str | None,
    user: str | None,
    as_json: bool,
) -> None:
    """List the memories that wait for approval, or decide about one of them.

    The agent cannot approve: only a person decides, here or with /memory.
    """
    which = OwnerOptions(user=user)
    given = {"accept": accept, "edit": text is not None, "reject": reject}
    choices = [name for name, is_given in given.items() if is_given]
    if id_ is None:
        if choices:
            raise click.UsageError("Name the memory: review ID --accept. `beaver memory review` lists them.")
        _list(shell, which, as_json=as_json)
        return
    if len(choices) != 1:
        raise click.UsageError("Choose one of --accept, --edit TEXT and --reject.")
    _decide(shell, id_, which, choice=choices[0], text=text or "", as_json=as_json)


def _list(shell: Shell, which: OwnerOptions, *, as_json: bool) -> None:
    def work(memory: LocalMemory) -> PendingReport:
        return memory.operations.pending(PendingRequest(own=which.own(memory)))

    found = ask(shell, work).items
    if as_json:
        say_json({"pending": [record(each.memory) | {"reason": each.reason} for each in found]})
    elif not found:
        say("No memory waits for approval.")
    else:
        rows = [[str(each.memory.id), each.memory.type, one_line(each.reason), title(each.memory)] for each in found]
        say(table([["id", "type", "why", "memory"], *rows]))


def _decide(shell: Shell, id_: int, which: OwnerOptions, *, as_json: bool, **decision: Any) -> None:
    def work(memory: LocalMemory) -> ReviewReport:
        return memory.operations.review(ReviewRequest(id=id_, own=which.own(memory), **decision))

    done = ask(shell, work, wrote=True)
    _ensure(done.reason, done.sentence)
    if as_json:
        say_json({"id": done.id, "outcome": done.outcome, "superseded": list(done.superseded)})
    elif done.outcome == "rejected":
        say(f"[{id_}] is erased.")
    else:
        ended = f", in place of {counted(len(done.superseded), 'memory')}" if done.superseded else ""
        say(f"[{done.id}] is remembered{ended}.")


def _ensure(reason: str, sentence: str) -> None:
    """Fail with the sentence, or that for the reason; an empty reason is none."""
    if sentence:
        raise click.UsageError(f"Nothing was changed. {sentence}")
    if reason:
        raise click.UsageError(REASONS.get(reason, f"Nothing was changed: {reason}."))
