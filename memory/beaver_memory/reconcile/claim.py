"""A statement in parts: its subject, its attributes with their values, and the marks of a change."""

from collections.abc import Mapping
from functools import cached_property

import attrs


@attrs.frozen(kw_only=True)
class Attribute:
    """An attribute of a subject.

    Attributes:
        subject: the words that name its subject; none for the speaker.
        value: the words of its value, in order.
        of_things, marked: see `Family`.
        described, ending: its value is a description or an end; see `Family.descriptions` and `Family.endings`.
    """

    subject: frozenset[str]
    value: tuple[str, ...]
    of_things: bool
    marked: bool = False
    described: bool = False
    ending: bool = False


@attrs.frozen(kw_only=True)
class Claim:
    """A statement.

    Attributes:
        language: its language.
        words: its words that name a subject or a value, in order.
        kept: those that are no mark of an end.
        names: those that are names of people or things, as far as the language shows it.
        numbers: those that are numbers.
        topics: what it is about; see `Vocabulary.topics`.
        kinds: the kinds of its words that have one; see `Vocabulary.kinds`.
        subject: the name with which it begins, or an empty text.
        renewed: the words for the thing that it calls new.
        role: it says who has a role that one person has at a time.
        own: the speaker speaks of themselves, or of people and things of theirs.
        kin: the people it is about, by their relation to the speaker.
        contrasts: its words that tell things of a kind apart.
        attributes: its attributes, by the name of their family.
        replaced: the words for the thing that was given up.
        strong: its words but for those that are in statements about anything; of Chinese, its topics.
        sequence: its topics in order, if it is Chinese.
        modifiers: what stands directly before each of its topics; see `Vocabulary.modifiers`.
        relation: whether it says what its subject has (0) or is (1); `None` for anything else, or for both.
        denies: it denies something, and does not say that it has ended.
        perfect: see `Vocabulary`.
        conditions, purposes, places: the words that tell when, for what and where it holds; see `Vocabulary`.
        parts: the words of each member of its lists: of "guitar and piano", those of "guitar" and of "piano".
        habit: it says what the speaker does on a day of the week.
        changes_otherwise: it has a mark of a change beside that something is new.
        changes, switches, additive, ends, past, planned, happened, several: see `Vocabulary`; the words of another
            speaker count as planned.
    """

    language: str
    words: tuple[str, ...]
    kept: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    kinds: Mapping[str, str] = attrs.field(factory=dict)
    subject: str = ""
    renewed: frozenset[str] = frozenset()
    role: bool = False
    own: bool = False
    kin: frozenset[str] = frozenset()
    contrasts: frozenset[str] = frozenset()
    attributes: Mapping[str, Attribute] = attrs.field(factory=dict)
    replaced: frozenset[str] = frozenset()
    strong: frozenset[str] = frozenset()
    sequence: tuple[str, ...] = ()
    modifiers: Mapping[str, str] = attrs.field(factory=dict)
    relation: int | None = None
    denies: bool = False
    perfect: bool = False
    conditions: frozenset[str] = frozenset()
    purposes: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    parts: tuple[frozenset[str], ...] = ()
    habit: bool = False
    changes_otherwise: bool = False
    changes: bool = False
    switches: bool = False
    additive: bool = False
    ends: bool = False
    past: bool = False
    planned: bool = False
    happened: bool = False
    several: frozenset[str] = frozenset()

    @cached_property
    def content(self) -> frozenset[str]:
        """Its words, each once."""
        return frozenset(self.words)


NO_CLAIM = Claim(language="en", words=())
"""Stands for a statement that is too long."""
