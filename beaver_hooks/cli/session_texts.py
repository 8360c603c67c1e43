"""Sessions as text for people and JSON for programs. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from heapq import merge
from operator import itemgetter
from typing import Any

from beaver_hooks.agent.sessions.records import ForgetReport, HiddenEvent, ImportReport, SearchHit, Session, SessionInfo
from beaver_hooks.cli.terminal import counted, facts_text, filled, moment, table
from beaver_hostspecs import Message

INDENT = "  "

LAST_LINES = 8
"""Lines of a message that are shown when a session is continued."""


def list_text(infos: Sequence[SessionInfo]) -> str:
    """Return sessions as a table: the id first, in the form that other commands take."""
    users = any(each.user is not None for each in infos)
    heads = ("ID", *(("USER",) if users else ()), "LAST USED (UTC)", "MESSAGES", "TITLE")
    return table([heads, *(_row(each, users=users) for each in infos)])


def info_json(info: SessionInfo) -> dict[str, Any]:
    """Return the facts about a session as plain data."""
    return {
        "id": info.id,
        "user": info.user,
        "title": info.title,
        "created": info.created.isoformat(),
        "updated": info.updated.isoformat(),
        "messageCount": info.messages,
        "eventCount": info.events,
    }


def session_text(session: Session) -> str:
    """Return a whole session. Texts are indented, so that their lines do not look like headings."""
    info = session.info
    said = ((each.when or info.created, _message_text(each)) for each in session.messages)
    happened = ((each.at, _event_text(each)) for each in session.events)
    parts = [text for _, text in merge(said, happened, key=itemgetter(0))]
    return "\n\n".join([_head(info), *(parts or ["No messages."])])


def session_json(session: Session, *, hidden: bool) -> dict[str, Any]:
    """Return a whole session as plain data, with the hidden events if asked."""
    messages = [_message_json(each) for each in session.messages]
    events = {"events": [_event_json(each) for each in session.events]} if hidden else {}
    return {**info_json(session.info), "messages": messages, **events}


def recap(messages: Iterable[Message], *, prompt: str) -> str:
    """Return the end of a session: the last lines of each message, those of the user after `prompt`."""
    return "\n".join(f"{prompt if each.role == 'user' else ''}{_last_lines(each.text)}" for each in messages)


def _last_lines(text: str) -> str:
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= LAST_LINES else ["[...]", *lines[-LAST_LINES:]])


def hits_text(hits: Iterable[SearchHit]) -> str:
    """Return the hits of a search, best first."""
    return "\n\n".join(f"{each.session}  {each.role}, {_when(each.when)}\n{_wrapped(each.snippet)}" for each in hits)


def hit_json(hit: SearchHit) -> dict[str, Any]:
    """Return one hit as plain data."""
    return {
        "sessionId": hit.session,
        "role": hit.role,
        "when": hit.when.isoformat(),
        "snippet": hit.snippet,
        "score": hit.score,
    }


def forget_text(report: ForgetReport) -> str:
    """Return the counts of erased messages and sessions as a sentence."""
    whole = f"; {counted(report.emptied, 'session')} had no other, and {_is_are(report.emptied)} deleted"
    done = f"Erased {counted(report.messages, 'message')} of {counted(report.sessions, 'session')}"
    return f"{done}{whole if report.emptied else ''}."


def forget_json(report: ForgetReport, found: Sequence[SearchHit], *, dry_run: bool) -> dict[str, Any]:
    """Return the counts of erased messages and sessions, or the messages of a dry run, as plain data."""
    return {
        "dryRun": dry_run,
        "messages": report.messages,
        "sessions": report.sessions,
        "deletedSessions": report.emptied,
        "found": [hit_json(each) for each in found],
    }


def import_text(report: ImportReport, *, dry_run: bool) -> str:
    """Return the report of an import, or of a dry run."""
    did, replaced = ("Would add", "would replace") if dry_run else ("Added", "replaced")
    parts = [f"{did} {counted(report.added, 'session')}"]
    if report.replaced:
        parts.append(f"{replaced} {report.replaced:,}")
    parts[-1] += f" ({counted(report.messages, 'message')})"
    if report.skipped:
        parts.append(f"skipped {report.skipped:,} stored already (--replace replaces them)")
    return f"{', '.join(parts)}."


def _is_are(count: int) -> str:
    return "is" if count == 1 else "are"


def _row(info: SessionInfo, *, users: bool) -> tuple[str, ...]:
    user = (info.user or "",) if users else ()
    return (info.id, *user, moment(info.updated, seconds=False), f"{info.messages:,}", info.title)


def _head(info: SessionInfo) -> str:
    about = [
        f"session {info.id}",
        *([f"of {info.user}"] if info.user is not None else []),
        counted(info.messages, "message"),
        counted(info.events, "hidden event"),
        f"begun {_when(info.created)}",
    ]
    return filled(", ".join(about), indent=INDENT) + (f"\n{INDENT}{info.title}" if info.title else "")


def _message_text(message: Message) -> str:
    speaker = f" ({message.speaker})" if message.speaker else ""
    when = f", {_when(message.when)}" if message.when else ""
    return f"{message.role}{speaker}{when}\n{_indented(message.text)}"


def _event_text(event: HiddenEvent) -> str:
    facts = _wrapped(facts_text(event.payload)) if event.payload else ""
    return f"hidden, {_when(event.at)}: {event.name}\n{facts}".rstrip()


def _indented(text: str) -> str:
    return "\n".join(f"{INDENT}{line}".rstrip() for line in text.splitlines())


def _wrapped(text: str) -> str:
    return filled(f"{INDENT}{text}", indent=INDENT)


def _when(at: datetime) -> str:
    return f"{moment(at)} UTC"


def _message_json(message: Message) -> dict[str, Any]:
    when = message.when and message.when.isoformat()
    return {"role": message.role, "text": message.text, "when": when, "id": message.id, "speaker": message.speaker}


def _event_json(event: HiddenEvent) -> dict[str, Any]:
    return {
        "name": event.name,
        "when": event.at.isoformat(),
        "contextVisible": False,
        "payload": dict(event.payload),
    }
