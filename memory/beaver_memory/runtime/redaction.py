"""Takes the secrets out of a conversation before it is queued, and before rules or a model look at it. Pure."""

from collections import Counter

import attrs

from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.runtime.capture_records import CaptureRequest
from beaver_toolkit.redaction.redactor import Finding, Redactor


def redacted_request(request: CaptureRequest, redactor: Redactor) -> tuple[CaptureRequest, tuple[Finding, ...]]:
    """Return a request without secrets, and how many of each kind it held."""
    counts = Counter[str]()

    def plain(text: str) -> str:
        done = redactor.redact(text)
        counts.update({each.kind: each.count for each in done.findings})
        return done.text

    said = tuple(_said(each, plain(each.text)) for each in request.said)
    outcomes = tuple(_outcome(each, plain(each.command)) for each in request.outcomes)
    findings = tuple(Finding(kind=kind, count=count) for kind, count in sorted(counts.items()))
    return attrs.evolve(request, said=said, outcomes=outcomes), findings


def _said(said: Utterance, text: str) -> Utterance:
    return said if text == said.text else attrs.evolve(said, text=text)


def _outcome(outcome: ToolOutcome, command: str) -> ToolOutcome:
    return outcome if command == outcome.command else attrs.evolve(outcome, command=command)
