"""Short messages: statements that a user expects memory to keep, and small talk that a user does not want kept.

The authors of the rules look at every second message of each list, from the first on. The others are only measured.
"""

import sys
from pathlib import Path

import attrs

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests"))

from case_files import cases  # noqa: E402 - found by the path above


@attrs.frozen(kw_only=True)
class Message:
    """A message, and whether it states something that is worth keeping."""

    text: str
    states: bool


_MESSAGES = cases(HERE / "short_messages.jsonl", Message)
STATEMENTS = tuple(each.text for each in _MESSAGES if each.states)
SMALL_TALK = tuple(each.text for each in _MESSAGES if not each.states)
SEEN, MEASURED = slice(0, None, 2), slice(1, None, 2)
"""The messages that the authors of the rules look at, and those that are only measured."""
