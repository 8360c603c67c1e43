"""The form in which the tools show memories: compact, neutralised, without empty fields. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from beaver_hostspecs.neutralising import neutralise
from beaver_memory.records import Change, Memory, Person, SessionSummary
from beaver_memory.runtime.hit_texts import heading, in_line

Shown = dict[str, Any]

LONGEST = 20_000
"""Characters of one text that are shown."""

_TITLE = 160
_OLD = 200


def row(memory: Memory, score: float | None = None) -> Shown:
    """Return a memory as a row."""
    return _filled(
        {
            "id": memory.id,
            "type": neutralise(in_line(memory.type)),
            "store": memory.store.value,
            "title": neutralise(heading(memory, _TITLE)),
            "when": _day(memory.created_at),
            "score": None if score is None else round(score, 2),
            "mentions": memory.mention_count if memory.mention_count > 1 else None,
            "pinned": memory.pinned or None,
            "tokens": memory.token_count,
        }
    )


def whole(memory: Memory) -> Shown:
    """Return all of a memory; very long texts are cut, and say so."""
    texts = {"title": memory.title, "narrative": memory.narrative, "summary": memory.summary}
    return _filled(
        {
            "id": memory.id,
            "type": neutralise(in_line(memory.type)),
            "store": memory.store.value,
            "scope": memory.scope,
            **{name: neutralise(text[:LONGEST]) for name, text in texts.items()},
            "facts": [neutralise(fact) for fact in memory.facts],
            "tags": [neutralise(tag) for tag in memory.tags],
            "related_files": [neutralise(path) for path in memory.related_files],
            "related_people": [neutralise(name) for name in memory.related_people],
            "speaker": neutralise(in_line(memory.speaker)),
            "source": neutralise(memory.source),
            "evidence": neutralise(memory.evidence),
            "when": _moment(memory.created_at),
            "updated": None if memory.updated_at == memory.created_at else _moment(memory.updated_at),
            "expires": _moment(memory.expires_at),
            "valid_until": _moment(memory.valid_until),
            "superseded_by": memory.superseded_by,
            "mentions": memory.mention_count,
            "pinned": memory.pinned or None,
            "cut": any(len(text) > LONGEST for text in texts.values()) or None,
        }
    )


def change(entry: Change) -> Shown:
    """Return an entry of a history: each changed field with its old and new value, shortened."""
    fields = {*entry.old, *entry.new}
    changed = {name: [_short(entry.old.get(name)), _short(entry.new.get(name))] for name in sorted(fields)}
    return _filled({"event": entry.event, "at": _moment(entry.at), "changed": changed})


def person(each: Person) -> Shown:
    """Return a person whom memories mention."""
    return _filled(
        {
            "name": neutralise(each.name),
            "aliases": [neutralise(alias) for alias in each.aliases],
            "mentions": each.mention_count,
            "last": _day(each.last_mentioned),
        }
    )


def session(summary: SessionSummary) -> Shown:
    """Return the summary of a session."""
    return _filled(
        {
            "session": neutralise(summary.session),
            "when": _day(summary.created_at),
            "request": neutralise(summary.request[:LONGEST]),
            "outcome": neutralise(summary.outcome[:LONGEST]),
            "decisions": [neutralise(each) for each in summary.decisions],
            "open_items": [neutralise(each) for each in summary.open_items],
            "memories": summary.observation_count,
        }
    )


def _filled(facts: Mapping[str, Any]) -> Shown:
    return {name: value for name, value in facts.items() if value not in (None, "", [], {})}


def _short(value: object) -> object:
    if isinstance(value, str):
        return neutralise(value if len(value) <= _OLD else f"{value[:_OLD]}...")
    if isinstance(value, list | tuple):
        return [_short(each) for each in value]
    return value if isinstance(value, bool | int | float) or value is None else neutralise(str(value)[:_OLD])


def _day(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%d}"


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
