"""What can be wrong with the toy agent: each defect, and the cases of the suite that are meant to see it."""

from pathlib import Path

from case_files import rows

DEFECTS = dict(rows(Path(__file__).with_name("data") / "toy_defects.jsonl", "defect", "cases"))
LATE_DEFECTS = ("puts references elsewhere", "puts references after the user's text", "sets references off")
"""What else can be wrong with where it puts references, if its card says that they stand before the user's text."""
