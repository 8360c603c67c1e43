"""Audit events and verdicts as text for people and JSON for programs. Pure."""

import json
from datetime import datetime
from typing import Any

import attrs

from beaver_hooks.audit.chain import ChainCheck, ChainedEvent, Head
from beaver_hooks.cli.terminal import counted, facts_text, filled

SHORT_TURN = 13
"""Characters of a turn's id that are shown: every command accepts a beginning."""

MEANINGS = {
    "changed": "its content is not what was written: it was changed in the database",
    "forged": "it was not written with the key of this trail: another program wrote it, or audit.key was replaced",
    "missing": "it is missing: it was removed, or host.db is an older copy",
    "reordered": "it is not at its own place: records were moved",
    "not the expected head": "it differs from the head that you expect: the trail was rewritten or replaced",
}

BROKEN = """\
The audit trail is broken at record {bad}: {meaning}.
{good} The records after it prove nothing.
Compare host.db with a backup. To start a new trail, move host.db
(with its -wal and -shm files) and audit.key away together, and keep them."""

WHOLE = """\
The chain of the audit trail is intact: {good}, each as it was written.
Its head is {head}"""

UNKNOWN = """\
Not known is whether records are missing at its end, or whether the trail was
replaced together with its key: keep the head elsewhere, and use --expect HEAD."""

EXPECTED = "It contains the head that you expect."


@attrs.frozen(kw_only=True)
class Filter:
    """Selection of records; by default it takes all.

    Attributes:
        plugin: take the records about this plugin.
        turns: take the records about a turn whose recorded id begins with one of these.
    """

    plugin: str | None = None
    turns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.plugin is not None or bool(self.turns)

    def takes(self, record: ChainedEvent) -> bool:
        """Whether the filter selects a record."""
        _, _, plugin, _, turn, _, _ = record.fields
        if self.plugin not in (None, plugin):
            return False
        return not self.turns or (turn or "").startswith(self.turns)


def verdict_text(verdict: ChainCheck, *, expected: bool = False) -> str:
    """Return the verdict in words: the finding, its place and its meaning.

    Args:
        verdict: of the chain.
        expected: whether it was compared with an expected head.
    """
    good = counted(verdict.checked, "record")
    if verdict.head is None and verdict.ok:
        return "The audit trail is intact, and has no records yet."
    if verdict.ok:
        known = EXPECTED if expected else UNKNOWN
        return "\n".join([WHOLE.format(good=good, head=_head(verdict.head)), known, *map(filled, _reports(verdict))])
    before = f"The {good} before it {'is' if verdict.checked == 1 else 'are'} good."
    meaning = MEANINGS.get(verdict.reason, verdict.reason)
    text = BROKEN.format(
        bad=verdict.first_bad, meaning=meaning, good=before if verdict.checked else "No record before it is good."
    )
    return "\n".join(map(filled, [*text.splitlines(), *_reports(verdict)]))


def _reports(verdict: ChainCheck) -> list[str]:
    """Return what the records report of losses, and what no longer protects them."""
    lines = list[str]()
    if verdict.lost:
        lines.append(f"The records report that {counted(verdict.lost, 'event')} could not be written.")
    if verdict.restarts:
        times = counted(verdict.restarts, "time")
        lines.append(f"The records report {times} that an earlier trail was gone: its records are not here.")
    if verdict.missing_triggers:
        names = ", ".join(verdict.missing_triggers)
        lines.append(f"A program removed triggers that keep the table append-only: {names}.")
    return lines


def verdict_json(verdict: ChainCheck) -> dict[str, Any]:
    """Return a verdict as plain data."""
    return {
        "ok": verdict.ok,
        "checked": verdict.checked,
        "firstBad": verdict.first_bad,
        "reason": verdict.reason,
        "head": _head(verdict.head),
        "lostEvents": verdict.lost,
        "restarts": verdict.restarts,
        "missingTriggers": list(verdict.missing_triggers),
    }


def record_text(record: ChainedEvent) -> str:
    """Return a record: its number, time, event, and its facts as `name=value`."""
    at, name, plugin, hook, turn, _, facts = record.fields
    about = {"plugin": plugin, "hook": hook, "turn": turn and turn[:SHORT_TURN]}
    known = {key: value for key, value in about.items() if value is not None}
    line = f"{record.seq:>6}  {_when(at)}  {name} {facts_text({**known, **_facts(facts)})}"
    return filled(line.rstrip(), indent=" " * 8)


def record_json(record: ChainedEvent) -> dict[str, Any]:
    """Return a record as plain data."""
    at, name, plugin, hook, turn, session, facts = record.fields
    return {
        "seq": record.seq,
        "at": at,
        "name": name,
        "plugin": plugin,
        "hook": hook,
        "turn": turn,
        "session": session,
        "facts": _facts(facts),
    }


def _head(head: Head | None) -> str | None:
    return None if head is None else f"{head.seq}:{head.mac}"


def _when(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return at


def _facts(text: str) -> dict[str, Any]:
    # Another program may have written any text; a broken record is shown as unreadable.
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return {"unreadable": True}
    return facts if isinstance(facts, dict) else {"unreadable": True}
