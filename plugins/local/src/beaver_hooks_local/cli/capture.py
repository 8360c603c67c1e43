"""`capture`: finds memories in a text, a transcript or a session, and stores them, or shows them with --dry-run."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import attrs
import click

from beaver_hooks_local.cli.options import STORES, WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import one_line, plain, say, say_json, table
from beaver_hooks_local.cli.plugin_calls import ask
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.trust import default_store
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, Message, NotAllowed, Scope, Shell, StoredSession
from beaver_memory.capture.records import Utterance
from beaver_memory.runtime.capture_records import CapturedItem, CaptureReport, CaptureRequest
from beaver_toolkit.strict_json import InvalidJson, loads

LONGEST = 1_000_000
"""Characters of a text or a transcript."""

_VOICES = {"user": "user", "assistant": "assistant", "tool": "tool"}
_HEADS = ["outcome", "type", "sure", "why", "memory"]


@click.command()
@click.argument("words", nargs=-1)
@click.option(
    "--transcript", type=click.File("r", encoding="utf-8"), metavar="FILE",
    help='Read a conversation: JSON lines such as {"role": "user", "text": "..."}.',
)  # fmt: skip
@click.option("--session", metavar="ID", type=WORD, help="Read a stored session; the beginning of its id is enough.")
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be captured, and store nothing.")
@click.option("--store", type=STORES, help="Who may see the memories; `private` unless given.")
@click.option("--user", metavar="ID", type=WORD, help="The user who owns them; without one, every user sees them.")
@click.option("--project", metavar="NAME", type=WORD, help="The name of the project that they apply to.")
@json_option
@debug_option
@click.pass_obj
def capture(
    shell: Shell,
    /,
    words: tuple[str, ...],
    *,
    transcript: TextIO | None,
    session: str | None,
    dry: bool,
    as_json: bool,
    **of: Any,
) -> None:
    """Find memories in a text, as after a turn of an agent, and store them.

    Without WORDS, --transcript and --session the text is read from stdin. The gates decide as in a turn; what they
    refuse or queue is shown with the reason.

    The messages of a session belong to its user, at the trust with which it was begun. Those that were captured before
    are not captured again, so a second run finds nothing.
    """
    if session is not None:
        _refuse_others(words, transcript, of)
        stored = shell.session(session)
        found = ask(shell, lambda memory: captured_session(memory, stored, of["project"], dry=dry), wrote=not dry)
    else:
        said, which, store = _said(words, transcript), OwnerOptions(user=of["user"], project=of["project"]), of["store"]

        def work(memory: LocalMemory) -> CaptureReport:
            own = which.here(memory).own(memory.clock.now())
            request = CaptureRequest(said=said, own=own, store=store or "private", dry_run=dry)
            return memory.operations.capture(request)

        found = ask(shell, work, wrote=not dry)
    _show(found, as_json=as_json)


def _show(found: CaptureReport, *, as_json: bool) -> None:
    if as_json:
        say_json({"dry_run": found.dry_run, "extractor": found.extractor, "fallback": found.fallback,
                  "redacted": {each.kind: each.count for each in found.redacted},
                  "memories": [_record(each) for each in found.items]})  # fmt: skip
        return
    say(table([_HEADS, *map(_row, found.items)]) if found.items else "There is no statement worth remembering.")
    if found.redacted:
        say(f"Secrets that were left out: {_kinds(found)}.", err=True)
    if found.fallback is not None:
        say(f"Rules answered in place of the model: {found.fallback}.", err=True)
    if found.dry_run and found.items:
        say("Nothing was stored; without --dry-run, it would be.")


def _kinds(found: CaptureReport) -> str:
    return ", ".join(f"{each.kind} ({each.count})" for each in found.redacted)


def _refuse_others(words: tuple[str, ...], transcript: TextIO | None, of: Mapping[str, Any]) -> None:
    if words or transcript is not None:
        raise click.UsageError("Give a text, --transcript or --session, only one of them.")
    if of["user"] is not None or of["store"] is not None:
        raise click.UsageError("A session has a user and a trust of its own; leave out --user and --store.")


def _said(words: tuple[str, ...], transcript: TextIO | None) -> list[Utterance]:
    if words and transcript is not None:
        raise click.UsageError("Give a text or --transcript, not both.")
    if transcript is not None:
        return [
            _utterance(line, number) for number, line in enumerate(transcript.read(LONGEST).splitlines(), 1) if line
        ]
    text = " ".join(words) if words else sys.stdin.read(LONGEST)
    if not text.strip():
        raise click.UsageError("There is no text; write it behind the command, or give it on stdin.")
    return [Utterance(text=text)]


def _utterance(line: str, number: int) -> Utterance:
    try:
        given = loads(line)
        voice, text = _VOICES[given["role"]], given["text"]
        return Utterance(text=text, voice=voice)  # type: ignore[arg-type]
    except (InvalidJson, KeyError, TypeError):
        pass
    raise click.UsageError(f'Line {number} of the transcript is not of the form {{"role": "user", "text": "..."}}.')


def _row(item: CapturedItem) -> list[str]:
    why = item.reason or ", ".join(item.cues)
    return [item.outcome, item.kind, f"{item.confidence:.2f}", one_line(why), one_line(item.text)]


def _record(item: CapturedItem) -> dict[str, Any]:
    names = (
        "id",
        "outcome",
        "reason",
        "kind",
        "text",
        "confidence",
        "cues",
        "explicit",
        "superseded",
        "turn",
        "excerpt",
    )
    return {name: plain(getattr(item, name)) for name in names}


def captured_session(
    memory: LocalMemory, stored: StoredSession, project: str | None = None, *, dry: bool = False
) -> CaptureReport:
    """Capture the messages of a session that were not captured before, for its user, at the trust of its beginning.

    Args:
        memory: the open memory.
        stored: the session.
        project: the name of the project that the memories apply to.
        dry: whether the memories are only shown.

    Raises:
        NotAllowed: the caller who began the session may not write memories.
    """
    context = CommandContext(session=stored.id, user=stored.user, scope=Scope(project=project), trust=stored.trust)
    sight = Visibility.of_command(context, memory.home)
    own, store = sight.own(memory.clock.now()), default_store(sight.trust)
    if store is None or not own.view.stores:
        raise NotAllowed(f"a session of trust `{sight.trust}` teaches this memory nothing", plugin="local")
    reports = [
        memory.operations.capture(CaptureRequest(said=said, own=own, store=store, dry_run=dry, once=True))
        for said in _batches(stored, memory.settings.capture.min_turn_messages)
    ]
    fallbacks = [each.fallback for each in reports if each.fallback is not None]
    last = reports[-1] if reports else CaptureReport(dry_run=dry)
    items = [item for report in reports for item in report.items]
    return attrs.evolve(last, items=tuple(items), fallback=next(iter(fallbacks), None))


def _batches(stored: StoredSession, size: int) -> Iterator[tuple[Utterance, ...]]:
    """Yield the messages in parts of a size, each behind the message before it as context."""
    said = [_stored_utterance(stored.id, each) for each in stored.messages if each.role in {"user", "assistant"}]
    for begin in range(0, len(said), size):
        context = (attrs.evolve(each, is_context=True) for each in said[max(0, begin - 1) : begin])
        yield (*context, *said[begin : begin + size])


def _stored_utterance(session: str, message: Message) -> Utterance:
    is_user = message.role == "user"
    when = message.when
    return Utterance(
        text=message.text,
        voice="user" if is_user else "assistant",
        # Without the id of its turn, session and time name a message.
        turn=message.id or f"{session} {when.isoformat() if when else ''}",
        when=when,
        speaker=message.speaker or "",
        is_context=not is_user,
    )
