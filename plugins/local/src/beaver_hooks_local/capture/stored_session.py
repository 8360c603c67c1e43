"""Captures from a conversation that the host has stored, as its turns would have been. Blocking."""

from collections.abc import Iterator

import attrs

from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.trust import default_store
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, Message, NotAllowed, Scope, StoredSession
from beaver_memory.capture.records import Utterance
from beaver_memory.runtime.capture_records import CaptureReport, CaptureRequest


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
    said = [_utterance(stored.id, each) for each in stored.messages if each.role in {"user", "assistant"}]
    for begin in range(0, len(said), size):
        context = (attrs.evolve(each, is_context=True) for each in said[max(0, begin - 1) : begin])
        yield (*context, *said[begin : begin + size])


def _utterance(session: str, message: Message) -> Utterance:
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
