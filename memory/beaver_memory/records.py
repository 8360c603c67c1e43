"""The records of the store: memories, their history, people and sessions."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, get_args

import attrs
from attrs import field
from attrs.validators import and_, ge, in_, instance_of, le, matches_re, max_len, optional

from beaver_memory.texts import cleaned

Scope = Literal["session", "project", "global"]
OwnerKind = Literal["user", "space"]

LONGEST_TITLE = 1_000
LONGEST_TEXT = 1_000_000
MOST_LABELS = 100
"""Tags, facts, keywords, files or people of one memory."""

AGENT, USER, CAPTURE = "agent", "user", "auto_capture"
"""The writers that a memory usually has as its source."""


class Store(StrEnum):
    """The visibility of a memory; see `trust`."""

    PRIVATE = "private"
    SHARED = "shared"
    SOCIAL = "social"


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("it must be a list of texts, not one text")
    return tuple(values)


def _labels(_: object, attribute: "attrs.Attribute[Any]", values: tuple[str, ...]) -> None:
    if len(values) > MOST_LABELS:
        raise ValueError(f"{attribute.name} has more than {MOST_LABELS} entries")
    if not all(isinstance(value, str) and 0 < len(value) <= LONGEST_TITLE for value in values):
        raise ValueError(f"each entry of {attribute.name} is a text of 1 to {LONGEST_TITLE} characters")


def _aware(_: object, attribute: "attrs.Attribute[Any]", value: datetime | None) -> None:
    if value is not None and (not isinstance(value, datetime) or value.utcoffset() is None):
        raise ValueError(f"{attribute.name} must be a datetime with a time zone")


def is_reserved(source: str) -> bool:
    """Return whether a source is the user or capture, so that a model must not write under it."""
    return cleaned(source).strip().casefold() in {USER, CAPTURE}


_share: Any = and_(instance_of((int, float)), ge(0), le(1))
_id: Any = and_(instance_of(str), max_len(LONGEST_TITLE))
_text: Any = and_(instance_of(str), max_len(LONGEST_TEXT))


@attrs.frozen(kw_only=True)
class Owner:
    """The owner of memories. Memories of one owner are never shown to another one.

    Attributes:
        tenant: the tenant; empty if there is only one.
        user: the name of the user or of the space; empty for memories of all users of the tenant.
        kind: whether it is a user or a space; both may have the same name.
    """

    tenant: str = field(default="", validator=_id)
    user: str = field(default="", validator=_id)
    kind: OwnerKind = field(default="user", validator=in_(get_args(OwnerKind)))


# Without slots: the store fills all fields of a row at once, in a third of the time.
@attrs.frozen(kw_only=True, slots=False)
class NewMemory:
    """A memory to store.

    Attributes:
        title: its content in a line; for a plain text the text itself, however long.
        narrative: its content at length.
        facts: single statements.
        summary: one line for lists, if the title is too long.
        owner: its owner.
        store: its visibility.
        type: free text; `discovery`, `decision`, `preference`, `task`, `event`, `rule`, `fact`, `fix` and `todo` are
            usual.
        scope: where it holds: in its session, in its project, everywhere.
        project: its project.
        session: the session in which it was said.
        agent: its agent.
        speaker: its speaker.
        tags: labels.
        keywords: words by which searches find it though its text does not hold them.
        related_files: paths.
        related_people: names.
        source: its writer, for example `agent`, `auto_capture`, `user`; a model names neither of the last two.
        origin: its exact origin: a turn, a document.
        evidence: the words that it rests on, as its speaker said them, bounded and without credentials.
        confidence: how certain it is, 0 to 1.
        importance: how important it is, 0 to 1.
        pinned: maintenance keeps it, and ranking prefers it.
        created_at: when it was said; now if `None`. It is visible at once, whatever the clock says.
        expires_at: the moment from which on it is hidden.
        valid_from: the moment from which on it is true, and before which it is hidden; always if `None`.
        valid_until: the moment until which it was true; `None` while it is true.
        uid: its name in every copy of it, 32 hexadecimal digits; empty for a new one, which gets a random one.
    """

    title: str = field(validator=_text)
    narrative: str = field(default="", validator=_text)
    facts: tuple[str, ...] = field(default=(), converter=_texts, validator=_labels)
    summary: str = field(default="", validator=_text)
    owner: Owner = field(default=Owner(), validator=instance_of(Owner))
    store: Store = field(default=Store.PRIVATE, converter=Store)
    type: str = field(default="discovery", validator=_id)
    scope: Scope = field(default="global")
    project: str = field(default="", validator=_id)
    session: str = field(default="", validator=_id)
    agent: str = field(default="", validator=_id)
    speaker: str = field(default="", validator=_id)
    tags: tuple[str, ...] = field(default=(), converter=_texts, validator=_labels)
    keywords: tuple[str, ...] = field(default=(), converter=_texts, validator=_labels)
    related_files: tuple[str, ...] = field(default=(), converter=_texts, validator=_labels)
    related_people: tuple[str, ...] = field(default=(), converter=_texts, validator=_labels)
    source: str = field(default=AGENT, validator=_id)
    origin: str = field(default="", validator=_id)
    evidence: str = field(default="", validator=_id)
    confidence: float = field(default=1.0, validator=_share)
    importance: float = field(default=0.5, validator=_share)
    pinned: bool = field(default=False, validator=instance_of(bool))
    created_at: datetime | None = field(default=None, validator=_aware)
    expires_at: datetime | None = field(default=None, validator=_aware)
    valid_from: datetime | None = field(default=None, validator=_aware)
    valid_until: datetime | None = field(default=None, validator=_aware)
    uid: str = field(default="", validator=matches_re("([0-9a-f]{32})?"))

    @scope.validator
    def _known_scope(self, _: object, value: str) -> None:
        if value not in {"session", "project", "global"}:
            raise ValueError("scope must be `session`, `project` or `global`")

    @title.validator
    def _says_something(self, _: object, value: str) -> None:
        # A text that a database stores as U+FFFD alone says nothing either.
        if not cleaned(value).replace("\ufffd", "").strip():
            raise ValueError("title must not be empty")

    @property
    def text(self) -> str:
        """The whole text, for the index and for the reader."""
        return "\n".join(part for part in (self.title, self.narrative, *self.facts) if part)


@attrs.frozen(kw_only=True, slots=False)
class Memory(NewMemory):
    """A stored memory.

    Attributes:
        id: its number, never used again.
        hash: the hash of title and facts, by which the store finds the same memory.
        mention_count: how often it was said.
        token_count: the estimated number of tokens of its text.
        updated_at: when it was last changed.
        last_accessed_at: when it was last recalled, or `None`.
        deleted_at: when it was forgotten, or `None`; its text is erased by then.
        superseded_by: the memory that holds in its place since `valid_until`, or `None`; also once that is forgotten.
        doubted_by: a newer memory that may hold in its place, or `None`; also once that is forgotten.
    """

    id: int = field(validator=instance_of(int))
    hash: str = field(validator=instance_of(str))
    mention_count: int = field(default=1, validator=ge(1))
    token_count: int = field(default=0, validator=ge(0))
    updated_at: datetime = field(validator=_aware)
    last_accessed_at: datetime | None = field(default=None, validator=_aware)
    deleted_at: datetime | None = field(default=None, validator=_aware)
    superseded_by: int | None = field(default=None, validator=optional(instance_of(int)))
    doubted_by: int | None = field(default=None, validator=optional(instance_of(int)))


@attrs.frozen(kw_only=True)
class Kept:
    """The outcome of remembering one memory.

    Attributes:
        id: the id of the new memory, or of the same memory if the store already had it.
        outcome: whether the store already had it.
        mentions: how often it was said.
        superseded: the memories that it ended, in the order in which the caller named them.
    """

    id: int
    outcome: Literal["stored", "duplicate"]
    mentions: int = 1
    superseded: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class Change:
    """One entry of a memory's history.

    Attributes:
        event: `ADD`, `UPDATE`, `DELETE`, `COMPRESS`, `FORGET`, `PIN`, `UNPIN`, `SUPERSEDE`.
        at: the time of the change.
        old: the fields that changed, with their old values; empty if the memory is forgotten.
        new: the same fields, with their new values.
    """

    event: str
    at: datetime
    old: Mapping[str, Any] = field(factory=dict)
    new: Mapping[str, Any] = field(factory=dict)


@attrs.frozen(kw_only=True)
class DamagedEntry:
    """A stored row that fails its checksum, as far as it can be read.

    Attributes:
        kind: `memory`, `embedding`, `history`, `person` or `summary`.
        id: the id of the memory; of a person the name and of a summary the session, in ASCII.
        owner: the owner of the row.
        reason: `checksum`; `not_utf8` if a text is none; `unreadable` if the database cannot read a column.
        columns: the columns that can be read. Bytes, also those of a text that is not UTF-8, are `{"base64": TEXT}`.
    """

    kind: str
    id: int | str
    owner: Owner
    reason: str
    columns: Mapping[str, Any] = field(repr=False)


@attrs.frozen(kw_only=True)
class Person:
    """A person that memories mention."""

    name: str
    aliases: tuple[str, ...] = ()
    mention_count: int = 1
    last_mentioned: datetime


@attrs.frozen(kw_only=True)
class SessionSummary:
    """The summary of an agent's session."""

    session: str
    agent: str = ""
    request: str = ""
    outcome: str = ""
    decisions: tuple[str, ...] = ()
    open_items: tuple[str, ...] = ()
    observation_count: int = 0
    created_at: datetime


@attrs.frozen(kw_only=True)
class CaptureSpend:
    """What the capture of an owner's memories takes on one day (UTC).

    Attributes:
        memories: that were captured.
        calls: of a language model.
        tokens: that those calls read and wrote, about.
    """

    memories: int = 0
    calls: int = 0
    tokens: int = 0

    def fits(self, amount: "CaptureSpend", most: "CaptureSpend") -> bool:
        """Return whether no number that the amount adds to would be greater than that of `most`."""
        return all(
            not more or getattr(self, name) + more <= getattr(most, name) for name, more in attrs.asdict(amount).items()
        )

    def plus(self, amount: "CaptureSpend") -> "CaptureSpend":
        """Return the sum."""
        return CaptureSpend(
            memories=self.memories + amount.memories,
            calls=self.calls + amount.calls,
            tokens=self.tokens + amount.tokens,
        )


@attrs.frozen(kw_only=True)
class QueuedSession:
    """The turns of one caller in one place, which are captured together.

    Attributes:
        owner: of the memories.
        session, project, agent: of the caller.
        store: where the memories are kept.
    """

    owner: Owner
    session: str = field(default="", converter=cleaned)
    project: str = field(default="", converter=cleaned)
    agent: str = field(default="", converter=cleaned)
    store: Store = field(default=Store.PRIVATE, converter=Store)
