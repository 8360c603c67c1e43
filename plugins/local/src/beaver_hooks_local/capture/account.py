"""Tells a report how the writes of a capture ended, without content."""

from types import MappingProxyType

from beaver_hooks_local.tools.definitions import PLANE
from beaver_hostspecs import OutcomeKind, Report
from beaver_memory.runtime.capture_records import CapturedItem, CaptureReport

_KINDS = MappingProxyType({each.value: each for each in OutcomeKind})


def account(found: CaptureReport, report: Report) -> None:
    """Report each gate's reason, each outcome, the numbers of redacted secrets by kind, and the spend of models."""
    for item in found.items:
        _item(item, report)
    for each in found.redacted:
        report.decision("privacy", "redacted", f"{each.count} x {each.kind}")
    if found.fallback is not None:
        report.decision("capture", "rules", found.fallback)
    if found.model_calls:
        report.event("memory_capture_spend", calls=found.model_calls, tokens=found.model_tokens)


def _item(item: CapturedItem, report: Report) -> None:
    gate, _, reason = item.reason.partition(": ")
    if reason:
        report.decision(gate, item.outcome, reason)
    facts: dict[str, object] = {"type": item.kind, "source": "auto_capture"}
    if item.id:
        facts |= {"memory": item.id}
    if item.outcome in {"gated", "failed"}:
        facts |= {"reason": item.reason}
    report.outcome(PLANE, _KINDS[item.outcome], **facts)
