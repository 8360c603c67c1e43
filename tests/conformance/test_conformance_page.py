"""The page `docs/reference/conformance.md` lists every case, as the suites have them, and explains every flag."""

from pathlib import Path

import pytest

from beaver_hostspecs.conformance import HOST_CASES, PLUGIN_CASES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
HEAD = "| case | what it shows | excused by |\n|---|---|---|\n"


def table(cases):
    """Return the table of the cases as it has to stand in the page."""
    rows = [(case.name, case.shows, ", ".join(f"`{flag}`" for flag in case.flags)) for case in cases]
    return HEAD + "".join(f"| {name} | {shows} | {flags} |\n" for name, shows, flags in rows)


@pytest.mark.parametrize(
    ("cases", "heading"), [(PLUGIN_CASES, "The cases for plugins"), (HOST_CASES, "The cases for hosts")]
)
def test_every_case_is_listed(cases, heading):
    """The table below the heading is that of the suite."""
    _, section = PAGE.read_text("utf-8").split(f"\n## {heading}\n\n")

    assert table(cases) == section.partition("\n\n")[0].rstrip("\n") + "\n"
