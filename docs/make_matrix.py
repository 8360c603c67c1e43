#!/usr/bin/env python3
"""Writes the support matrix: a run of the suite makes `docs/how-to/adapters/conformance.json` and the page.

Run it with `make matrix`. It needs the agent frameworks. The tests of the adapters compare each verdict with the
published one.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).parent / "how-to" / "adapters" / "README.md"
VERDICTS = PAGE.with_name("conformance.json")
TESTS = Path(__file__).parents[1] / "tests"
BEGIN = "<!-- begin: written by make matrix -->\n"
END = "<!-- end: written by make matrix -->\n"

sys.path.insert(0, str(TESTS))

from beaver_hostspecs.conformance import (  # noqa: E402 - the harnesses are found by the path above
    HOST_CASES,
    Examined,
    as_json,
    as_markdown,
    cards_as_markdown,
    examine_all,
)


def examined() -> list[Examined]:
    """Run the suite over every harness."""
    from adapters.harnesses import HARNESSES  # noqa: PLC0415 - imports every framework

    return [
        Examined(name=each.card.host, card=each.card, verdicts=asyncio.run(examine_all(HOST_CASES, each, seconds=60)))
        for each in HARNESSES
    ]


def matrix(found: Sequence[Examined]) -> str:
    """Return the generated part of the page."""
    cards = cards_as_markdown([each.card for each in found if each.card is not None])
    notes = "".join(
        f"- {each.name}, {field.replace('_', ' ')}: {note}\n"
        for each in found
        if each.card is not None
        for field, note in each.card.notes.items()
    )
    return f"## What each can do\n\n{cards}\n{notes}\n## The last conformance run\n\n{as_markdown(found)}"


def page(found: Sequence[Examined]) -> str:
    """Return the whole page with the matrix of this run."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{matrix(found)}\n{END}{after}"


def main() -> None:
    """Write the page; exit with 1 if a case failed."""
    found = examined()
    VERDICTS.write_text(as_json(found), "utf-8")
    PAGE.write_text(page(found), "utf-8")
    failures = [f"{each.name}: {verdict.case}: {verdict.reason}" for each in found for verdict in each.failures]
    print("\n".join(failures) or f"{PAGE.name}: {len(found)} hosts, {len(HOST_CASES)} cases, no failure")  # noqa: T201
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
