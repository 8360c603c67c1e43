"""A receipt in words, for a user who asks why a fact was not remembered. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.cli.absence import Absence
from beaver_hooks.cli.text_format import counted, facts_text, filled, moment
from beaver_hooks.receipts.health import from_json
from beaver_hooks.receipts.receipts import Failure, Outcome, PluginReceipt, Receipt
from beaver_hooks.receipts.suspension import GATE
from beaver_hostspecs import DropReason

LABEL = 12
"""The width of a line's label."""

SECOND = 1000

MOST_IDS = 10
"""The most candidates that are named."""

STATES: Mapping[str, str] = {
    "open": "It is still going on.",
    "pending": (
        "It is over, but plugins were still working on it when this receipt was written. Ask again in a moment; if"
        " this stays, the process ended too early, and what the plugins had not stored is lost."
    ),
    "committed": "It was answered, and all plugins have finished.",
    "dropped": "It was dropped, so plugins learn nothing from it.",
}

DROPPED: Mapping[DropReason, str] = {
    DropReason.FAILED: "It failed before it had an answer.",
    DropReason.CANCELLED: "It was cancelled.",
    DropReason.BLOCKED: "A guardrail blocked the answer.",
    DropReason.ABANDONED: "It was never closed: it was idle too long, another turn replaced it, or the host closed.",
}

LOST = (
    "{calls} never ran (a full queue, a plugin that was removed, or a host that closed first); what they would have"
    " stored is lost."
)

OUTCOMES: Mapping[str, str] = {
    "duplicate": "it was stored already",
    "updated": "merged into an existing entry",
    "superseded": "in place of an older entry",
    "gated": "a gate rejected it",
    "rejected": "it was refused",
    "deferred": "put off until later",
    "queued": "it waits for approval, and is not stored yet",
    "skipped": "the turn held nothing to store",
    "unknown": "it was sent, and the plugin does not know whether it arrived",
    "failed": "it was not stored",
}

FAILED: Mapping[str, str] = {
    "raised": "it raised an error",
    "timeout": "it did not finish in time",
    "wrong_type": "its answer breaks the contract",
    "cancelled": "it cancelled itself",
    "too_large": "its answer is too long for any model",
}


def receipt_text(
    receipt: Receipt, health: Mapping[str, Mapping[str, Any]], absence: Absence, later: Sequence[AuditEvent] = ()
) -> str:
    """Return the turn, the work of each plugin in it and afterwards, and the plugins that are in trouble now.

    Args:
        receipt: the receipt.
        health: the last known health by plugin, as it is stored.
        absence: knows the plugins that are no longer in service.
        later: the audit events about the turn that came after its receipt was closed.
    """
    plugins = [f"{name}\n{_part(each, receipt)}" for name, each in receipt.plugins.items()]
    nobody = ["No plugin took part in this turn; `beaver plugins` lists the installed ones."]
    return "\n\n".join([_turn(receipt), *(plugins or nobody), *_afterwards(later), *_now(health, absence)])


def _turn(receipt: Receipt) -> str:
    reason = [DROPPED[receipt.reason]] if receipt.reason else []
    lost = [LOST.format(calls=counted(receipt.lost, "background call"))] if receipt.lost else []
    lines = [
        _line("When", _when(receipt)),
        _line("Ended", " ".join([STATES[receipt.state], *reason, *lost])),
        _line("Prompt", f"{counted(receipt.prompt_characters, 'character')}; memory added {_tokens(receipt.tokens)}"),
        *_trouble(receipt),
    ]
    return "\n".join([f"Turn {receipt.turn}", *lines])


def _when(receipt: Receipt) -> str:
    if receipt.closed is None:
        return f"{moment(receipt.opened)} UTC"
    took = (receipt.closed - receipt.opened).total_seconds()
    return f"{moment(receipt.opened)} UTC, for {_duration(took * 1000)}"


def _trouble(receipt: Receipt) -> list[str]:
    """Name the plugins that failed or were degraded in this turn, at the top."""
    found = []
    for name, part in receipt.plugins.items():
        what = [f"{each.hook} {each.category}" for each in part.failures] + [*part.degraded]
        if what:
            found.append(f"{name} ({', '.join(dict.fromkeys(what))})")
    return [_line("Trouble", "; ".join(found))] if found else []


def _part(part: PluginReceipt, receipt: Receipt) -> str:
    lines = [
        _line("Recalled", _recalled(part)),
        *_ids(part),
        *(_line("Decided", f"{each.gate}: {each.verdict} ({each.reason})") for each in part.decisions),
        *_kept(part, receipt),
        *(_line("Cut", f"{each.what}: {each.shown:,} of {each.total:,} shown") for each in part.clipped),
        *(_line("Failed", _failure(each)) for each in part.failures),
        *(_line("Degraded", f"it reported {each}") for each in part.degraded),
    ]
    if part.milliseconds:
        times = [f"{hook} {_duration(part.milliseconds[hook])}" for hook in sorted(part.milliseconds, key=_order)]
        lines.append(_line("Time", ", ".join(times)))
    return "\n".join(lines)


def _recalled(part: PluginReceipt) -> str:
    given = []
    if part.blocks:
        given.append(f"{counted(part.blocks, 'block')} in the system prompt")
    if part.injected:
        considered = f" of {part.considered:,} considered" if part.considered else ""
        given.append(f"{counted(len(part.injected), 'reference')}{considered}")
    if given:
        return f"{' and '.join(given)} reached the model, {_tokens(part.tokens)}"
    return f"nothing: {_nothing(part)}"


def _nothing(part: PluginReceipt) -> str:
    """Return why a plugin gave the model nothing, as far as the receipt knows."""
    if any(each.hook == "before_prompt" for each in part.failures):
        return "before_prompt failed, see below"
    if any(each.gate == "memory" and each.verdict == "off" for each in part.decisions):
        return "memory was off (`/memory on` in the session switches it on again)"
    if any(each.gate == GATE and each.verdict == "left_out" for each in part.decisions):
        return "before_prompt is suspended, see below"
    if part.considered:
        return f"none of {part.considered:,} candidates scored high enough and had room"
    if "before_prompt" in part.milliseconds:
        return "the plugin was asked and had nothing"
    return "the plugin was not asked"


def _ids(part: PluginReceipt) -> Iterator[str]:
    if part.injected:
        scores = dict(part.candidates)
        yield _line("Shown", _named([(each, scores.get(each or "")) for each in part.injected]))
    others = [(each, score) for each, score in part.candidates if each not in part.injected]
    if others:
        yield _line("Left out", _named(others, unnamed=max(0, part.considered - len(part.candidates))))


def _named(found: Sequence[tuple[str | None, float | None]], *, unnamed: int = 0) -> str:
    named = [(each or "(no id)") + ("" if score is None else f" {score:.2f}") for each, score in found[:MOST_IDS]]
    more = len(found) - len(named) + unnamed
    return ", ".join([*named, *([f"and {more:,} more"] if more else [])])


def _kept(part: PluginReceipt, receipt: Receipt) -> Iterator[str]:
    """Yield the outcome of each write; equal ones share a line."""
    lines = Counter(map(_outcome, part.outcomes))
    for text, times in lines.items():
        yield _line("Kept", text + (f", {times} times" if times > 1 else ""))
    if not lines:
        why = "plugins learn nothing from a dropped turn" if receipt.reason else "the plugin reported no write"
        yield _line("Kept", f"nothing: {why}")


def _outcome(outcome: Outcome) -> str:
    meaning = OUTCOMES.get(outcome.kind, "")
    facts = f" [{facts_text(outcome.facts)}]" if outcome.facts else ""
    return f"{outcome.plane}: {outcome.kind}{f', {meaning}' if meaning else ''}{facts}"


def _failure(failure: Failure) -> str:
    meaning = FAILED.get(failure.category, failure.category)
    error = " at ".join(each for each in (failure.error, failure.at) if each)
    return f"{failure.hook}: {meaning}{f' ({error})' if error else ''}"


def _afterwards(later: Sequence[AuditEvent]) -> Iterator[str]:
    lines = [_line(each.plugin or "host", _later(each)) for each in later]
    if lines:
        yield "\n".join(["After the turn:", *lines])


def _later(event: AuditEvent) -> str:
    facts = {name: fact for name, fact in event.facts.items() if name != "turns" and fact != []}
    return f"{event.name}, {moment(event.at)} UTC{f' [{facts_text(facts)}]' if facts else ''}"


def _now(health: Mapping[str, Mapping[str, Any]], absence: Absence) -> Iterator[str]:
    """Yield the plugins that are out of service or degraded now; those out of service have no part in a receipt."""
    lines = [_line(name, text) for name, text in _unwell(health, absence)]
    if lines:
        yield "\n".join(["Plugins that are out of service or degraded now:", *lines])


def _unwell(health: Mapping[str, Mapping[str, Any]], absence: Absence) -> Iterator[tuple[str, str]]:
    for name, body in health.items():
        try:
            found = from_json(body)
        except (TypeError, ValueError):
            yield name, "its health cannot be read; `beaver doctor` shows the details"
        else:
            if found.state != "ok":
                yield name, absence.text(name, found) or str(found)


def _line(label: str, text: str) -> str:
    lead = f"  {label}".ljust(max(LABEL, len(label) + 4))
    return filled(f"{lead}{text}", indent=" " * LABEL)


def _tokens(tokens: int) -> str:
    return f"about {counted(tokens, 'token')}" if tokens else "no tokens"


def _order(hook: str) -> int:
    """Return the position of a hook in a turn; tools of the plugin and its `on_tool_result` are in between."""
    return {"before_prompt": 0, "after_prompt": 2, "on_turn_dropped": 2}.get(hook, 1)


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < SECOND else f"{milliseconds / SECOND:,.1f} s"
