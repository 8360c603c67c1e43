"""Plants a random memory of a throwaway owner, and removes it, so that forgetting can be proved. Blocking.

The throwaway owner lies in the same database as all others: what erases its memories also erases those of users.
"""

import re
import secrets
import string
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import attrs

from beaver_memory.filters import Filters, every_memory
from beaver_memory.records import Memory, NewMemory, Owner, SessionSummary
from beaver_memory.runtime.capture_records import CorrectRequest
from beaver_memory.runtime.corrections import PENDING, PENDING_FROM
from beaver_memory.runtime.erasure import texts_of
from beaver_memory.runtime.file_scan import Needle, needles_of
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.reports import ForgetReport
from beaver_memory.runtime.requests import ExportRequest, ForgetRequest, RecallRequest, RecoverRequest, WriteRequest

THROWAWAY = "beaver-proof-b1f46d0e-throwaway"
"""The beginning of the names of throwaway owners, which no user has."""

STRAY = timedelta(days=1)
"""The age from which an owner counts as left by an interrupted proof."""

LETTERS = 14
"""Random letters of a planted word."""

SHARED = 3
"""Letters at the beginning of a word that an index may leave out, because the word before it has the same."""

TOGETHER = 4
"""Words of a sequence that is looked for."""

MOST_SEQUENCES = 400
"""Sequences that are looked for; of more, some are chosen evenly."""

_MOMENT = "%Y%m%dT%H%M%SZ"
_WORD = re.compile(r"\S+")


@attrs.frozen(kw_only=True)
class Sentinel:
    """Planted memories.

    Attributes:
        words: the random words that they hold.
        needles: the bytes that show them.
    """

    words: tuple[str, ...] = attrs.field(repr=False)
    needles: tuple[Needle, ...] = attrs.field(repr=False)


def throwaway(now: datetime) -> Owner:
    """Return the owner of planted memories of one proof: no other proof has the same one."""
    return Owner(user=f"{THROWAWAY}-{now.astimezone(UTC):{_MOMENT}}-{secrets.token_hex(8)}")


def plant(operations: Operations, owner: Owner) -> Sentinel:
    """Write memories with random words, and give them all that a memory can have: history, summary, approval, index.

    The memories that interrupted proofs have left are removed before.
    """
    for each in operations.engine.owners():
        if _is_stray(each, operations.clock.now()):
            remove(operations, each)
    first, second, third = words = tuple(map(_random_word, range(3)))
    said = f"{first} {second} {third}"
    new = NewMemory(
        title=said,
        narrative=f"About {said}.",
        facts=(said,),
        summary=said,
        owner=owner,
        session=first,
        tags=(second,),
        keywords=(third,),
        related_files=(f"{first}/{second}",),
        related_people=(third,),
        evidence=f"He said: {said}",
    )
    waiting = attrs.evolve(new, title=f"waiting {said}", tags=(PENDING,), valid_from=PENDING_FROM)
    written = operations.write(WriteRequest(memories=[new, waiting])).outcomes
    own = _own(operations, owner)
    operations.engine.change(written[0].id, own, event="UPDATE", title=f"{said} changed")
    operations.correct(CorrectRequest(ids=[written[0].id], text=f"corrected {said}", own=own))
    summary = SessionSummary(session=first, request=said, created_at=operations.clock.now())
    operations.engine.store.summarise(owner, summary)
    found(operations, owner, words)
    operations.recover(RecoverRequest(owners=(owner,), embed=False, reindex=True))
    return Sentinel(words=words, needles=tuple(_needles(operations, words)))


def found(operations: Operations, owner: Owner, words: Sequence[str]) -> int:
    """Return how many memories a search for words finds: by rank, and by the word index."""
    own = _own(operations, owner)
    ranked = (RecallRequest(query=word, visible=own) for word in words)
    exact = (RecallRequest(query=f'"{word}"', operators=True, visible=own) for word in words)
    return sum(len(operations.recall(each).hits) for each in (*ranked, *exact))


def forget(operations: Operations, owner: Owner) -> ForgetReport:
    """Forget the planted memories."""
    return operations.forget(ForgetRequest(own=_own(operations, owner), every=True))


def remove(operations: Operations, owner: Owner) -> None:
    """Remove a throwaway owner with all that is left of it."""
    forget(operations, owner)
    operations.engine.drop_owner(owner)


def distinctive(operations: Operations, memories: Iterable[Memory]) -> tuple[Needle, ...]:
    """Return what shows memories, and no other memory that stays: sequences of their words.

    The excerpts of their turns go with them, also from other memories.
    """
    memories = [*memories]
    chosen, turns = {each.id for each in memories}, {(each.owner, each.origin) for each in memories if each.origin}
    every = dict.fromkeys(part for each in memories for text in texts_of(each) for part in _sequences(text))
    sequences = _some(every, 4 * MOST_SEQUENCES)
    for page in _pages(operations):
        stay = (each for each in page if each.id not in chosen)
        stay = (attrs.evolve(each, evidence="") if (each.owner, each.origin) in turns else each for each in stay)
        others = "\n".join(text for each in stay for text in texts_of(each)).lower()
        sequences = [part for part in sequences if part.lower() not in others]
    return tuple(needle for part in _some(sequences, MOST_SEQUENCES) for needle in needles_of(part))


def _some(sequences: Iterable[str], most: int) -> list[str]:
    """Return sequences from all of the texts, at most about `most`."""
    found = [*sequences]
    return found[:: 1 + len(found) // most]


def _sequences(text: str) -> Iterator[str]:
    """Yield the sequences of words in a text, one after the other; a single word is too common."""
    words = [*_WORD.finditer(text)]
    for at in range(0, len(words), TOGETHER):
        some = words[max(0, min(at, len(words) - TOGETHER)) :][:TOGETHER]
        if len(some) > 1:
            yield text[some[0].start() : some[-1].end()]


def _pages(operations: Operations) -> Iterator[Sequence[Memory]]:
    view, cursor = every_memory([], operations.clock.now()), ""
    while True:
        page = operations.export(ExportRequest(visible=view, every_owner=True, cursor=cursor))
        yield page.memories
        if not page.has_more:
            return
        cursor = page.next_cursor


def _own(operations: Operations, owner: Owner) -> Filters:
    return every_memory([owner], operations.clock.now())


def _is_stray(owner: Owner, now: datetime) -> bool:
    """Return whether an owner is that of a proof which ended without removing it."""
    if owner.tenant or not owner.user.startswith(THROWAWAY):
        return False
    try:
        begun = datetime.strptime(owner.user.split("-")[-2], _MOMENT).replace(tzinfo=UTC)
    except ValueError:
        return False
    return now - begun > STRAY


def _random_word(_: int) -> str:
    """Return a word that no text holds, in a form that has another stem."""
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(LETTERS - 2))
    return f"{letters.capitalize()}akings"


def _needles(operations: Operations, words: Iterable[str]) -> Iterator[Needle]:
    for word in words:
        yield from needles_of(word, stem=word[SHARED : LETTERS - 2], hashes=operations.terms(word))
