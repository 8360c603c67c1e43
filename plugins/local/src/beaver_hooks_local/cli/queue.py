"""`queue`: the turns that wait to be captured."""

import click

from beaver_hooks_local.cli.change import own_option
from beaver_hooks_local.cli.options import WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import counted, one_line, say, say_json, table
from beaver_hooks_local.cli.plugin_calls import ask
from beaver_hooks_local.memory import LocalMemory
from beaver_hostspecs import Shell
from beaver_memory.runtime.turn_captures import QueuedTurn


@click.command()
@click.option("--retry", is_flag=True, help="Capture the parked turns again.")
@click.option("--drop", "key", metavar="KEY", type=WORD, help="Erase the turn with this key.")
@own_option
@json_option
@debug_option
@click.pass_obj
def queue(shell: Shell, *, retry: bool, key: str | None, user: str | None, as_json: bool) -> None:
    """List the turns that wait to be captured, or decide about those that failed too often.

    A turn is parked after five attempts. It shows no text; its key names it.
    """
    which = OwnerOptions(user=user)
    if retry and key is not None:
        raise click.UsageError("Choose one of --retry and --drop KEY.")
    if retry:
        _retry(shell, which, as_json=as_json)
    elif key is not None:
        _drop(shell, which, key, as_json=as_json)
    else:
        _list(shell, which, as_json=as_json)


def _list(shell: Shell, which: OwnerOptions, *, as_json: bool) -> None:
    def work(memory: LocalMemory) -> list[QueuedTurn]:
        sight = which.sight(memory)
        return memory.operations.turns.waiting(sight.owner, sight.project)

    found = ask(shell, work)
    if as_json:
        say_json({"waiting": [_record(each) for each in found]})
    elif not found:
        say("No turn waits to be captured.")
    else:
        rows = [[str(value) for value in _record(each).values()] for each in found]
        say(table([["key", "session", "queued", "attempts", "state", "error"], *rows]))


def _retry(shell: Shell, which: OwnerOptions, *, as_json: bool) -> None:
    def work(memory: LocalMemory) -> int:
        sight = which.sight(memory)
        return memory.operations.turns.retry(sight.owner, sight.project)

    count = ask(shell, work, wrote=True)
    if as_json:
        say_json({"retried": count})
    else:
        say(f"{counted(count, 'turn')} will be captured again.")


def _drop(shell: Shell, which: OwnerOptions, key: str, *, as_json: bool) -> None:
    def work(memory: LocalMemory) -> bool:
        return memory.operations.turns.drop(which.sight(memory).owner, key)

    if not ask(shell, work, wrote=True):
        raise click.UsageError("No turn with this key waits; `beaver memory queue` shows the keys.")
    if as_json:
        say_json({"dropped": key})
    else:
        say("The turn is erased.")


def _record(turn: QueuedTurn) -> dict[str, object]:
    return {
        "key": turn.key,
        "session": one_line(turn.place.session),
        "queued": f"{turn.queued_at:%Y-%m-%d %H:%M}",
        "attempts": turn.attempts,
        "state": "parked" if turn.is_parked else "waits",
        "error": turn.error,
    }
