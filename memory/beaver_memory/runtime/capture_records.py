"""The requests and reports of the operations by which a memory learns: capture, correct, undo, pending, review."""

from collections.abc import Iterable
from typing import Literal

import attrs
from attrs import field
from attrs.validators import ge, in_, instance_of, max_len

from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Kind, Utterance
from beaver_memory.filters import Filters
from beaver_memory.records import USER, Memory, NewMemory, Store
from beaver_toolkit.redaction.redactor import Finding

MOST_TEXTS = 1_000
LONGEST = 20_000

Outcome = Literal["stored", "duplicate", "updated", "superseded", "gated", "queued", "failed"]
"""How the write of one memory ended."""

Choice = Literal["accept", "edit", "reject"]


def _utterances(values: Iterable[Utterance]) -> tuple[Utterance, ...]:
    return tuple(values)


def _outcomes(values: Iterable[ToolOutcome]) -> tuple[ToolOutcome, ...]:
    return tuple(values)


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _ids(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class CaptureRequest:
    """Finds statements worth remembering in a conversation, and stores what the gates admit.

    Attributes:
        said: the texts of the conversation, in order.
        outcomes: how its tools ended, in order.
        own: the memories that the caller may change; of one owner, who owns the new memories.
        store: where they are kept; one that the caller may change.
        paths: the files that the conversation is about.
        tags: labels of the conversation.
        dry_run: whether the memories are only shown.
        once: whether texts of a turn that was captured before are only context. Without it, the caller captures each
            turn once. A turn of which a memory could not be written was not captured.
    """

    said: tuple[Utterance, ...] = field(converter=_utterances, validator=max_len(MOST_TEXTS))
    outcomes: tuple[ToolOutcome, ...] = field(default=(), converter=_outcomes, validator=max_len(MOST_TEXTS))
    own: Filters
    store: Store = field(default=Store.PRIVATE, converter=Store)
    paths: tuple[str, ...] = field(default=(), converter=_texts)
    tags: tuple[str, ...] = field(default=(), converter=_texts)
    dry_run: bool = False
    once: bool = False


@attrs.frozen(kw_only=True)
class CapturedItem:
    """One memory that capture found, and how its write ended.

    Attributes:
        kind: its type.
        text: the statement.
        confidence: how certain it is that it is worth keeping.
        outcome: how its write ended, or would end.
        reason: why, in words without content: for example `write: low_confidence`.
        id: the memory; 0 if none was written.
        superseded: the memories that held until now.
        explicit: the user asked for it.
        external: it comes from outside.
        cues: the features that speak for it.
        turn: the turn that it rests on.
        excerpt: the words of the speaker there, bounded and redacted.
    """

    kind: Kind
    text: str = field(repr=False)
    confidence: float
    outcome: Outcome
    reason: str = ""
    id: int = 0
    superseded: tuple[int, ...] = ()
    explicit: bool = False
    external: bool = False
    cues: tuple[str, ...] = ()
    turn: str = ""
    excerpt: str = field(default="", repr=False)


@attrs.frozen(kw_only=True)
class CaptureReport:
    """What capture found in a conversation.

    Attributes:
        items: the memories that it found, with their outcomes.
        extractor: what found them: `rules`, `model` or `hybrid`.
        fallback: why rules answered in place of the model, or `None`.
        model_calls: the calls of the model today.
        model_tokens: about how many tokens they took.
        dry_run: whether nothing was written.
        redacted: the secrets that were left out, by kind.
        turns: the turns whose words were captured.
    """

    items: tuple[CapturedItem, ...] = ()
    extractor: str = "rules"
    fallback: str | None = None
    model_calls: int = 0
    model_tokens: int = 0
    dry_run: bool = False
    redacted: tuple[Finding, ...] = ()
    turns: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class CorrectRequest:
    """Puts a new memory in place of others that do not hold any more; they stay, and `as of` finds them.

    Attributes:
        ids: the memories that do not hold.
        text: the statement that holds.
        memory: the new memory in whole, in place of `text`; it is kept where the first of `ids` is.
        own: the memories that the caller may change.
        source: who corrects; the dispatcher says it, and a model cannot name the user.
    """

    ids: tuple[int, ...] = field(converter=_ids, validator=max_len(100))
    text: str = field(default="", validator=[instance_of(str), max_len(LONGEST)])
    memory: NewMemory | None = None
    own: Filters
    source: str = USER


@attrs.frozen(kw_only=True)
class CorrectReport:
    """The outcome of a correction.

    Attributes:
        id: the memory that holds now; 0 if nothing was corrected.
        outcome: how its write ended.
        superseded: the memories that held until now.
        reason: why it failed, in one word.
        sentence: the reason and the remedy, if the gate of writes refused the text.
    """

    id: int = 0
    outcome: Outcome = "failed"
    superseded: tuple[int, ...] = ()
    reason: str = ""
    sentence: str = ""


@attrs.frozen(kw_only=True)
class UndoRequest:
    """Forgets the memories of the last captured turn, or a later correction or contradiction; what it ended holds.

    A memory in whose place another one holds is not chosen.

    Attributes:
        own: the memories that the caller may change.
        session: the session of the turn; any session if empty.
    """

    own: Filters
    session: str = ""


@attrs.frozen(kw_only=True)
class UndoReport:
    """The undone capture.

    Attributes:
        forgotten: the memories, as they were.
        reopened: the memories that hold again.
    """

    forgotten: tuple[Memory, ...] = ()
    reopened: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class PendingRequest:
    """Lists the memories that wait for approval, the newest first.

    Attributes:
        own: the memories that the caller may change.
        limit: the most memories.
    """

    own: Filters
    limit: int = field(default=50, validator=[instance_of(int), ge(1)])


@attrs.frozen(kw_only=True)
class PendingItem:
    """A memory that waits for approval.

    Attributes:
        memory: the memory.
        reason: why it waits, in one word.
    """

    memory: Memory
    reason: str


@attrs.frozen(kw_only=True)
class PendingReport:
    """The memories that wait for approval."""

    items: tuple[PendingItem, ...] = ()


@attrs.frozen(kw_only=True)
class ReviewRequest:
    """Decides about a memory that waits for approval.

    Attributes:
        id: the memory.
        own: the memories that the caller may change.
        choice: `accept`, `edit` to accept another text, or `reject`, which erases it.
        text: the other text.
    """

    id: int = field(validator=instance_of(int))
    own: Filters
    choice: Choice = field(validator=in_(("accept", "edit", "reject")))
    text: str = field(default="", validator=[instance_of(str), max_len(LONGEST)])


@attrs.frozen(kw_only=True)
class ReviewReport:
    """The outcome of a decision.

    Attributes:
        outcome: how the write ended; `rejected` if the memory was erased.
        id: the memory that holds now; 0 if there is none.
        superseded: the memories that held until now.
        reason: why it failed, in one word.
        sentence: the reason and the remedy, if the gate of writes refused the text.
    """

    outcome: Outcome | Literal["rejected"] = "failed"
    id: int = 0
    superseded: tuple[int, ...] = ()
    reason: str = ""
    sentence: str = ""
