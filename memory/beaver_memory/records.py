"""What is remembered: one record that holds what both of its sources know of a memory."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import attrs
from attrs import field
from attrs.validators import and_, ge, instance_of, le, max_len

from beaver_memory.texts import cleaned

Scope = Literal["session", "project", "global"]

LONGEST_TITLE = 1_000
LONGEST_TEXT = 1_000_000
MOST_LABELS = 100
"""Tags, facts, keywords, files or people of one memory."""


class Store(StrEnum):
    """Who may see a memory; see `trust`."""

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


_share: Any = and_(instance_of((int, float)), ge(0), le(1))
_id: Any = and_(instance_of(str), max_len(LONGEST_TITLE))
_text: Any = and_(instance_of(str), max_len(LONGEST_TEXT))


@attrs.frozen(kw_only=True)
class Owner:
    """Whose memories these are. Nothing of one owner is ever shown to another one.

    Attributes:
        tenant: the tenant; empty where there is one only.
        user: the user; empty for what belongs to everybody of the tenant.
    """

    tenant: str = field(default="", validator=_id)
    user: str = field(default="", validator=_id)


@attrs.frozen(kw_only=True)
class NewMemory:
    """What is to be remembered.

    Attributes:
        title: what it says, in a line; for a plain text the text itself, however long.
        narrative: the same at length.
        facts: single statements.
        summary: one line for lists, where the title is too long for that.
        owner: whose it is.
        store: who may see it.
        type: free text; `discovery`, `decision`, `preference`, `task`, `event`, `rule`, `fact`, `fix` and `todo` are
            usual.
        scope: how far it holds: in its session, in its project, everywhere.
        project: the project that it belongs to.
        session: the session that it stems from.
        agent: the agent that it belongs to.
        speaker: who said it.
        tags: labels.
        keywords: words that it is to be found by though it does not hold them.
        related_files: paths.
        related_people: names.
        source: what wrote it, for example `agent`, `auto_capture`, `user`.
        origin: where exactly it is from: a turn, a document.
        confidence: how sure it is, 0 to 1.
        importance: how much it matters, 0 to 1.
        pinned: it outlives maintenance and is preferred.
        created_at: when it was said; now if `None`. It is shown at once, whatever the clock says.
        expires_at: from when on it is not shown any more.
        valid_from: since when it has been true, and before that it is not shown; always if `None`.
        valid_until: until when it was true; `None` while it is.
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
    source: str = field(default="agent", validator=_id)
    origin: str = field(default="", validator=_id)
    confidence: float = field(default=1.0, validator=_share)
    importance: float = field(default=0.5, validator=_share)
    pinned: bool = field(default=False, validator=instance_of(bool))
    created_at: datetime | None = field(default=None, validator=_aware)
    expires_at: datetime | None = field(default=None, validator=_aware)
    valid_from: datetime | None = field(default=None, validator=_aware)
    valid_until: datetime | None = field(default=None, validator=_aware)

    @scope.validator
    def _known_scope(self, _: object, value: str) -> None:
        if value not in {"session", "project", "global"}:
            raise ValueError("scope must be `session`, `project` or `global`")

    @title.validator
    def _says_something(self, _: object, value: str) -> None:
        # Neither does what becomes of NUL and the like in a database.
        if not cleaned(value).replace("\ufffd", "").strip():
            raise ValueError("title must not be empty")


@attrs.frozen(kw_only=True)
class Memory(NewMemory):
    """What is remembered, as it is stored.

    Attributes:
        id: its number, never used again.
        hash: of title and facts; by it the same memory is found.
        mention_count: how often it was said.
        token_count: what its text costs in a context, by estimate.
        updated_at: when it was last changed.
        last_accessed_at: when it was last recalled, or `None`.
        deleted_at: when it was forgotten, or `None`; its text is gone by then.
    """

    id: int = field(validator=instance_of(int))
    hash: str = field(validator=instance_of(str))
    mention_count: int = field(default=1, validator=ge(1))
    token_count: int = field(default=0, validator=ge(0))
    updated_at: datetime = field(validator=_aware)
    last_accessed_at: datetime | None = field(default=None, validator=_aware)
    deleted_at: datetime | None = field(default=None, validator=_aware)

    @property
    def text(self) -> str:
        """All that it says, for the index and for the reader."""
        return "\n".join(part for part in (self.title, self.narrative, *self.facts) if part)
