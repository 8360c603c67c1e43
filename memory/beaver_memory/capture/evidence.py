"""Evidence: the turn that a memory rests on, with a bounded excerpt of it. Pure."""

import attrs
from attrs import field
from attrs.validators import instance_of, max_len

from beaver_hostspecs import scrub
from beaver_memory.capture.records import Candidate, Utterance
from beaver_memory.capture.rules import clipped
from beaver_memory.capture.sentences import without_private

LONGEST = 280
"""Characters of an excerpt."""


@attrs.frozen(kw_only=True)
class Evidence:
    """What a memory rests on.

    Attributes:
        turn: the id of the turn.
        excerpt: the words of the speaker, without credentials and private spans; forgetting the memory erases it.
    """

    turn: str = ""
    excerpt: str = field(default="", validator=[instance_of(str), max_len(LONGEST)], repr=False)


def evidence_of(candidate: Candidate, said: Utterance) -> Evidence:
    """Return the evidence of a candidate in the text that it was found in."""
    text = " ".join(scrub(without_private(said.text)).split())
    place = text.find(candidate.text[:40])
    begin = max(0, place - 40) if place > LONGEST // 2 else 0
    return Evidence(turn=said.turn, excerpt=clipped(("\u2026" if begin else "") + text[begin:], LONGEST))
