"""The requests of the operations.

`visible` names the memories that the caller may see, and `own` those that it may change. A caller derives both from the
trust and the identity of its turn.
"""

from collections.abc import Iterable
from typing import Any, Literal

import attrs
from attrs import field
from attrs.validators import and_, ge, instance_of, le, max_len, optional

from beaver_memory.filters import Filters
from beaver_memory.query import MOST
from beaver_memory.records import NewMemory, Owner

LONGEST_QUERY = 16 * 1024 * 1024
LONGEST_BLOCK = 1_000_000
MOST_IDS = 10_000
"""The most ids of one request."""

MOST_LISTED = 10_000_000

LARGEST_ID = 2**63 - 1

Trigger = Literal["start", "operator", "fault"]
"""What asks for a recovery."""


def _ids_of(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(values)


def _memories_of(values: Iterable[NewMemory]) -> tuple[NewMemory, ...]:
    return tuple(values)


def _ids(_: object, attribute: "attrs.Attribute[tuple[int, ...]]", ids: tuple[int, ...]) -> None:
    if len(ids) > MOST_IDS:
        raise ValueError(f"{attribute.name} holds more than {MOST_IDS} ids")
    if not all(isinstance(id_, int) and not isinstance(id_, bool) and 0 < id_ <= LARGEST_ID for id_ in ids):
        raise ValueError(f"each entry of {attribute.name} is a positive whole number")


def _count(least: int, most: int) -> Any:
    return and_(instance_of(int), ge(least), le(most))


def _text(longest: int) -> Any:
    return and_(instance_of(str), max_len(longest))


@attrs.frozen(kw_only=True)
class WriteRequest:
    """Stores memories, durably, all of them or none.

    Attributes:
        memories: the new memories.
        mention: whether a memory that is stored already counts as mentioned once more.
        supersedes: whether each ends the memories that it contradicts, by the rules of reconciliation; then they are
            stored one by one.
    """

    memories: tuple[NewMemory, ...] = field(converter=_memories_of)
    mention: bool = True
    supersedes: bool = False


@attrs.frozen(kw_only=True)
class PinRequest:
    """Pins memories, or unpins them.

    Attributes:
        ids: the memories.
        own: the memories that the caller may change.
        pinned: whether they are pinned from now on.
    """

    ids: tuple[int, ...] = field(converter=_ids_of, validator=_ids)
    own: Filters
    pinned: bool = True


@attrs.frozen(kw_only=True)
class RecallRequest:
    """Searches for the memories that fit a query best.

    Attributes:
        query: the text to search for; a blank one returns the newest memories.
        operators: whether `"quoted phrases"` and `prefix*` in the query must be in each hit; plain text otherwise.
        visible: the memories that the caller may see.
        limit: the most memories.
        max_tokens: the most tokens of all hits together; the first hit is always returned.
        minimum_score: the lowest score of a hit, 0 to 1; unless given, one that leaves out what does not fit.
        explain: whether each hit shows the share of each signal.
        seconds: the time that the caller has; memories that are found late in it are not ranked again by tokens.
    """

    query: str = field(default="", validator=_text(LONGEST_QUERY))
    operators: bool = False
    visible: Filters
    limit: int = field(default=10, validator=_count(1, MOST))
    max_tokens: int | None = field(default=None, validator=optional(and_(instance_of(int), ge(1))))
    minimum_score: float | None = field(default=None, validator=optional(and_(instance_of((int, float)), ge(0), le(1))))
    explain: bool = False
    seconds: float | None = field(default=None, validator=optional(and_(instance_of((int, float)), ge(0))))


@attrs.frozen(kw_only=True)
class ProjectionRequest:
    """Builds a text of memories for the context of a model.

    Attributes:
        user_query: the text to recall for.
        visible: the memories that the caller may see.
        system_max_len: the most characters of the text.
        limit: the most memories in it.
    """

    user_query: str = field(validator=_text(LONGEST_QUERY))
    visible: Filters
    system_max_len: int = field(default=4_000, validator=_count(1, LONGEST_BLOCK))
    limit: int = field(default=10, validator=_count(1, MOST))


@attrs.frozen(kw_only=True)
class GetRequest:
    """Reads memories by their ids.

    Attributes:
        ids: the memories.
        visible: the memories that the caller may see.
    """

    ids: tuple[int, ...] = field(converter=_ids_of, validator=_ids)
    visible: Filters


@attrs.frozen(kw_only=True)
class ListRequest:
    """Lists the newest memories.

    Attributes:
        visible: the memories that the caller may see.
        limit: the most memories.
    """

    visible: Filters
    limit: int = field(default=20, validator=_count(1, MOST_LISTED))


@attrs.frozen(kw_only=True)
class TimelineRequest:
    """Reads a memory with its neighbours in time.

    Attributes:
        anchor: the memory.
        visible: the memories that the caller may see.
        before: the most memories before it.
        after: the most memories after it.
    """

    anchor: int = field(validator=instance_of(int))
    visible: Filters
    before: int = field(default=3, validator=_count(0, MOST))
    after: int = field(default=3, validator=_count(0, MOST))


@attrs.frozen(kw_only=True)
class HistoryRequest:
    """Reads the history of a memory.

    Attributes:
        id: the memory.
        visible: the memories that the caller may see.
    """

    id: int = field(validator=instance_of(int))
    visible: Filters


@attrs.frozen(kw_only=True)
class PeopleRequest:
    """Finds people that memories are about.

    Attributes:
        visible: the memories that the caller may see.
        query: part of a name; all people if empty.
        limit: the most people.
    """

    visible: Filters
    query: str = field(default="", validator=_text(LONGEST_QUERY))
    limit: int = field(default=50, validator=_count(1, MOST))


@attrs.frozen(kw_only=True)
class SessionsRequest:
    """Reads the summaries of an owner's last sessions.

    Attributes:
        owner: the owner.
        limit: the most sessions.
    """

    owner: Owner
    limit: int = field(default=10, validator=_count(1, MOST))


@attrs.frozen(kw_only=True)
class InspectionRequest:
    """Reads figures about the memory.

    Attributes:
        owners: the owners whose memories are counted; all owners if `None`.
        every_owner: whether the report names all owners that have memories.
        embeddings: whether the memories that wait for an embedding are counted.
        figures: whether the figures of the store are wanted.
        check: whether to check the store, which reads the whole store.
        capture_of: the owner whose captures of today are counted; of no owner if `None`.
    """

    owners: tuple[Owner, ...] | None = None
    every_owner: bool = False
    embeddings: bool = True
    figures: bool = True
    check: bool = False
    capture_of: Owner | None = None


@attrs.frozen(kw_only=True)
class ForgetRequest:
    """Erases memories from all files: those that fit all that is given. Without `ids`, a request says what it selects.

    Attributes:
        ids: the memories; without any, all that fit.
        own: the memories that the caller may change; its other conditions select too, for example `file` and `after`.
        every: whether all memories of `own` are meant, without another selection.
        query: words that a memory must hold, all of them in any form.
        session: the session in which a memory was said.
        dry_run: whether they are only shown.
    """

    ids: tuple[int, ...] = field(default=(), converter=_ids_of, validator=_ids)
    own: Filters
    every: bool = False
    query: str = field(default="", validator=_text(LONGEST_QUERY))
    session: str = field(default="", validator=_text(LONGEST_QUERY))
    dry_run: bool = False


@attrs.frozen(kw_only=True)
class ExportRequest:
    """Reads memories page by page, each once, even while other processes write.

    Attributes:
        visible: the memories that the caller may see.
        every_owner: whether the memories of all owners are exported, in place of those that `visible` names.
        limit: the most memories of the page.
        cursor: the end of the page before, from its report; empty for the first page.
    """

    visible: Filters
    every_owner: bool = False
    limit: int = field(default=500, validator=_count(1, MOST_IDS))
    cursor: str = field(default="", validator=_text(10_000))


@attrs.frozen(kw_only=True)
class DamagedRequest:
    """Reads rows that fail their checksums, as far as possible, page by page.

    Attributes:
        visible: the owners, and all stores: a damaged row does not tell its own.
        every_owner: whether the rows of all owners are read, in place of those that `visible` names.
        limit: the most rows of the page.
        after: how many rows come before the page.
    """

    visible: Filters
    every_owner: bool = False
    limit: int = field(default=500, validator=_count(1, MOST_IDS))
    after: int = field(default=0, validator=_count(0, LARGEST_ID))


@attrs.frozen(kw_only=True)
class ImportRequest:
    """Stores exported memories; one that is stored already is not counted again.

    Attributes:
        memories: the memories.
    """

    memories: tuple[NewMemory, ...] = field(converter=_memories_of)


@attrs.frozen(kw_only=True)
class EmbedRequest:
    """Embeds memories that have no embedding yet, the newest first.

    Attributes:
        owners: the owners whose memories are embedded; all owners if `None`.
        limit: the most memories; 0 only counts those that wait.
    """

    owners: tuple[Owner, ...] | None = None
    limit: int = field(default=1_000, validator=_count(0, MOST_IDS))


@attrs.frozen(kw_only=True)
class RecoverRequest:
    """Brings embeddings and indexes up to date with the store.

    Attributes:
        trigger: what asks for it.
        owners: the owners whose memories are embedded and indexed; all owners if `None`.
        embed: whether memories without an embedding are embedded.
        reindex: whether the indexes are built anew.
    """

    trigger: Trigger = "operator"
    owners: tuple[Owner, ...] | None = None
    embed: bool = True
    reindex: bool = False


@attrs.frozen(kw_only=True)
class CloseRequest:
    """Closes the memory.

    Attributes:
        reason: why, in one word for the report.
    """

    reason: str = field(default="requested", validator=_text(100))
