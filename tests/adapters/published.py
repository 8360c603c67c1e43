"""The published conformance run, to be compared with this one."""

import functools
import json
from pathlib import Path

from beaver_hostspecs.conformance import Card, Examined, Outcome, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "adapters" / "conformance.json"


@functools.cache
def published() -> dict[str, Examined]:
    """Return the published examinations by the host's name."""
    found = [Examined.from_dict(each) for each in json.loads(PAGE.read_text("utf-8"))]
    return {each.name: each for each in found}


def assert_published(card: Card, verdict: Verdict) -> None:
    """Demand that a case has not failed, and that the published verdict of the same host is equal."""
    assert Outcome.FAILED != verdict.outcome, verdict.reason
    known = published().get(card.host)
    if known is not None and known.card == card:
        assert verdict in known.verdicts, "run `make matrix`"
