"""Tells a report how the writes of a capture ended, without content."""

from collections.abc import Sequence
from types import MappingProxyType

import attrs

from beaver_hooks_local.tools.definitions import PLANE
from beaver_hostspecs import OutcomeKind, Personal, Report
from beaver_memory.runtime.capture_records import CapturedItem, CaptureReport

_KINDS = MappingProxyType({each.value: each for each in OutcomeKind})


def account(found: CaptureReport, report: Report, turn: str = "") -> None:
    """Report each gate's reason, each outcome, the numbers of redacted secrets by kind, and the spend of models.

    The receipts of other turns are closed, so the event `memory_captured` reports the memories from them.

    Args:
        found: the capture.
        report: takes it.
        turn: the turn in which it was made, if any.
    """
    for item in found.items:
        _item(item, report)
    for each in found.redacted:
        report.decision("privacy", "redacted", f"{each.kind}:{each.count}")
    if found.fallback is not None:
        report.decision("capture", "rules", _code(found.fallback))
    if found.model_calls:
        report.event("memory_capture_spend", calls=found.model_calls, tokens=found.model_tokens)
    if others := [each for each in found.turns if each != turn]:
        _captured(others, attrs.evolve(found, items=tuple(each for each in found.items if each.turn != turn)), report)


def _captured(turns: Sequence[str], found: CaptureReport, report: Report) -> None:
    items = found.items
    report.event(
        "memory_captured",
        turns=[Personal(value=each) for each in turns],
        outcomes=[item.outcome for item in items],
        memories=[item.id for item in items if item.id],
        reasons=[_code(item.reason) for item in items if item.reason],
        **({} if found.fallback is None else {"fallback": _code(found.fallback)}),
    )


def _item(item: CapturedItem, report: Report) -> None:
    gate, _, reason = item.reason.partition(": ")
    if reason:
        report.decision(gate, item.outcome, reason)
    facts: dict[str, object] = {"type": item.kind, "source": "auto_capture"}
    if item.id:
        facts |= {"memory": item.id}
    if item.outcome in {"gated", "failed"}:
        facts |= {"reason": _code(item.reason)}
    report.outcome(PLANE, _KINDS[item.outcome], **facts)


def _code(reason: str) -> str:
    """Return a reason of two parts without the space between them."""
    return reason.replace(": ", ":")
