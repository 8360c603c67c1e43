"""What is said of the gateway in the audit trail, the receipts and the health: names, counts and categories, no text.

The names of the events and their facts are a fixed vocabulary that others search for.
"""

import re
from hashlib import sha256

from beaver_hooks_gateway.errors import GatewayError
from beaver_hooks_gateway.wire import Found, Result, chat
from beaver_hostspecs import OutcomeKind, Personal, Report, Turn, scrub

PLANE = "gateway"
"""What the outcomes of adding are about."""

FLUSH_PLANE = "gateway_flush"
"""What the outcomes of flushing are about: a flush that fails loses nothing that was added."""

TRUST = "trust"
"""Why a turn is neither searched nor added: its trust is not enough for the gateway's identity."""

_OPAQUE = re.compile(r"[\w.:@/+-]{1,128}", re.ASCII)


def tell_found(found: Found, scope: tuple[str, ...], user_id: str, report: Report) -> None:
    """Say what a search found."""
    report.candidates((reference_id(result, user_id), result.score) for result in found.results)
    if len(found.results) < found.total:
        report.clipped("results", len(found.results), found.total)
    report.event("memory_gateway_recall_succeeded", scope=list(scope), result_count=len(found.results))
    report.recovered()


def tell_recall_failed(error: GatewayError, report: Report) -> None:
    """Say that a search failed."""
    report.event("memory_gateway_recall_failed", **_facts(error))
    report.degraded(f"recall_{error.category}")


def tell_recall_skipped(reason: str, turn: Turn, report: Report) -> None:
    """Say that no search was made."""
    if reason == TRUST:
        report.decision(TRUST, "left_out", f"a turn with trust `{turn.trust}` is neither searched for nor added")
    else:
        report.decision("recall", "skipped", reason)
    report.event("memory_gateway_recall_skipped", reason=reason)


def tell_breaker_refused(why: str, report: Report) -> None:
    """Say that no search was made because the gateway is left alone for now."""
    report.decision("breaker", "skipped", why)
    facts = {"operation": "search", "category": "breaker_open", "status": None, "cause": why}
    report.event("memory_gateway_recall_failed", **facts)
    report.degraded("breaker_open")


def tell_breaker_opened(why: str, seconds: float, report: Report) -> None:
    """Say that the gateway is left alone from now on."""
    report.event("memory_gateway_breaker_opened", category=why, seconds=seconds)


def tell_added(turn: Turn, count: int, report: Report) -> None:
    """Say that a turn was added."""
    report.event("memory_gateway_add_succeeded", session_id=Personal(value=chat(turn.session)), message_count=count)
    report.outcome(PLANE, OutcomeKind.STORED, messages=count)


def tell_add_failed(error: GatewayError, report: Report) -> None:
    """Say that a turn was not added, or that nobody knows."""
    kind = OutcomeKind.UNKNOWN if error.category == "unknown" else OutcomeKind.FAILED
    report.event("memory_gateway_add_failed", **_facts(error))
    report.outcome(PLANE, kind, category=error.category)


def tell_add_skipped(reason: str, report: Report) -> None:
    """Say that a completed turn is not sent, and why."""
    report.event("memory_gateway_add_skipped", reason=reason)
    report.outcome(PLANE, OutcomeKind.SKIPPED, reason=reason)


def tell_flushed(turn: Turn, report: Report) -> None:
    """Say that what was added is being made into memory."""
    report.event("memory_gateway_flush_succeeded", session_id=Personal(value=chat(turn.session)))
    report.outcome(FLUSH_PLANE, OutcomeKind.STORED)


def tell_flush_failed(error: GatewayError, report: Report) -> None:
    """Say that a flush failed; what was added stays."""
    report.event("memory_gateway_flush_failed", **_facts(error), add_succeeded=True)
    report.outcome(FLUSH_PLANE, OutcomeKind.FAILED, category=error.category)


def reference_id(result: Result, user_id: str) -> str:
    """Return an id that may stand in receipts: the gateway's own, or a hash where that could name or tell something."""
    given = scrub(result.id or result.text)
    if result.id is not None and _OPAQUE.fullmatch(given) and user_id not in given:
        return given
    return f"sha256-{sha256(given.encode()).hexdigest()[:16]}"


def _facts(error: GatewayError) -> dict[str, str | int | None]:
    return {"operation": error.operation, "category": error.category, "status": error.status}
