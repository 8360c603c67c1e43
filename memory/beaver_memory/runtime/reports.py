"""The reports of the operations.

A refusal is part of a report: the request is understood and not granted, and `Refusal` says why. A fault is an
exception of the tree in `beaver_memory.errors`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from attrs import field

from beaver_memory.query import Hit
from beaver_memory.records import CaptureSpend, Change, DamagedEntry, Kept, Memory, Owner, Person, SessionSummary


@attrs.frozen(kw_only=True)
class Refusal:
    """Why an operation was not carried out.

    Attributes:
        code: the reason, in one word for programs.
        sentence: the reason and the remedy, for people and models.
    """

    code: str
    sentence: str


@attrs.frozen(kw_only=True)
class WriteReport:
    """The outcome of a write.

    Attributes:
        outcomes: the outcome of each memory, in order; empty if refused.
        refusal: why no memory was stored, or `None`.
    """

    outcomes: tuple[Kept, ...] = ()
    refusal: Refusal | None = None


@attrs.frozen(kw_only=True)
class PinReport:
    """The outcome of pinning.

    Attributes:
        changed: the memories that are pinned, or unpinned, from now on.
    """

    changed: tuple[Memory, ...] = ()


@attrs.frozen(kw_only=True)
class RecallReport:
    """The result of a recall.

    Attributes:
        hits: the memories that were found, best first.
        keyword_only: why only words were searched for although there is an embedder, or `None`.
        without_index: why no index could be built, so that the words in the store were searched, or `None`.
        candidates: how many memories were compared.
        not_reranked: why the memories were not ranked again by their tokens although that is switched on, or `None`.
        floor: the lowest score of the best hit of a query about something that the memories know.
        share: the share of the best score that another hit needs to be worth giving.
    """

    hits: tuple[Hit, ...] = ()
    keyword_only: str | None = None
    without_index: str | None = None
    candidates: int = 0
    not_reranked: str | None = None
    floor: float = 0.0
    share: float = 0.65


@attrs.frozen(kw_only=True)
class ProjectionReport:
    """A text of memories for the context of a model.

    Attributes:
        system_memory_block: the text; empty if no memory fits.
        ids: the memories in it, in order.
        left_out: how many memories that were found have no room in it.
        keyword_only: as in `RecallReport`.
    """

    system_memory_block: str = field(default="", repr=False)
    ids: tuple[int, ...] = ()
    left_out: int = 0
    keyword_only: str | None = None


@attrs.frozen(kw_only=True)
class MemoriesReport:
    """Memories that were read.

    Attributes:
        memories: those that the caller may see.
        has_more: whether there are more than the request asked for.
        damaged: the ids that were asked for and fail their checksums; none unless the caller may see all stores.
    """

    memories: tuple[Memory, ...] = ()
    has_more: bool = False
    damaged: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class HistoryReport:
    """The history of a memory, oldest change first; empty if the caller may not see the memory."""

    changes: tuple[Change, ...] = ()


@attrs.frozen(kw_only=True)
class PeopleReport:
    """People, the most mentioned first."""

    people: tuple[Person, ...] = ()


@attrs.frozen(kw_only=True)
class SessionsReport:
    """Summaries of sessions, the newest first."""

    sessions: tuple[SessionSummary, ...] = ()


@attrs.frozen(kw_only=True)
class CaptureDay:
    """What capture has taken of an owner's day (UTC), in all processes, and the limits of a day."""

    spent: CaptureSpend
    most: CaptureSpend


@attrs.frozen(kw_only=True)
class InspectionReport:
    """Figures about the memory.

    Attributes:
        count: the memories of the owners in the request.
        owners: all owners that have memories, if the request asks for them.
        to_be_embedded: the memories that wait for an embedding; `None` without an embedder, or if not asked for.
        embedder: the configured embedder, or `None`.
        troubles: what does not work now, one word each.
        store: figures of the store; empty if the request asked for none.
        problems: what the check found, one sentence each; `None` if the request asked for no check.
        capture: what capture has taken today of the owner in the request; `None` without one.
    """

    count: int = 0
    owners: tuple[Owner, ...] = ()
    to_be_embedded: int | None = None
    embedder: str | None = None
    troubles: tuple[str, ...] = ()
    store: Mapping[str, Any] = field(factory=dict)
    problems: tuple[str, ...] | None = None
    capture: CaptureDay | None = None


@attrs.frozen(kw_only=True)
class ForgetReport:
    """The erased memories, with counts for each place.

    Attributes:
        forgotten: their ids; empty after a dry run.
        memories: what a dry run would erase; empty otherwise.
        erased: how many rows of the database, and files, were erased in each place.
        left: how many rows of each place still hold content of them; empty if none do.
        unreached: places of which this memory cannot erase anything, in words.
    """

    forgotten: tuple[int, ...] = ()
    memories: tuple[Memory, ...] = ()
    erased: Mapping[str, int] = field(factory=dict)
    left: Mapping[str, int] = field(factory=dict)
    unreached: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ExportReport:
    """One page of memories.

    Attributes:
        memories: the memories of the page.
        next_cursor: the cursor of the next page; empty on the last page.
        has_more: whether there is a next page.
    """

    memories: tuple[Memory, ...] = ()
    next_cursor: str = ""
    has_more: bool = False


@attrs.frozen(kw_only=True)
class DamagedReport:
    """One page of damaged rows.

    Attributes:
        rows: the rows of the page.
        has_more: whether there is a next page.
    """

    rows: tuple[DamagedEntry, ...] = ()
    has_more: bool = False


@attrs.frozen(kw_only=True)
class EmbedReport:
    """The outcome of embedding.

    Attributes:
        embedded: how many memories were embedded.
        pending: how many memories of the owners in the request still wait.
        embedder: the embedder.
    """

    embedded: int = 0
    pending: int = 0
    embedder: str = ""


@attrs.frozen(kw_only=True)
class RecoverReport:
    """The outcome of a recovery.

    Attributes:
        trigger: what asked for it.
        embedded: how many memories were embedded.
        reindexed: how many memories the new indexes hold; 0 if the request asked for none.
    """

    trigger: str
    embedded: int = 0
    reindexed: int = 0


@attrs.frozen(kw_only=True)
class CloseReport:
    """How the memory was closed.

    Attributes:
        reason: as in the request.
        outcome: `closed`, `already_closed`, or `incomplete` if a call still runs and the memory closes after it.
    """

    reason: str
    outcome: Literal["closed", "already_closed", "incomplete"] = "closed"
