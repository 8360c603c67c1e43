"""The records that a plugin contributes to a turn."""

from collections.abc import Iterable
from datetime import datetime

import attrs
from attrs import field
from attrs.validators import instance_of, optional

from beaver_hostspecs.freezing import members, texts


@attrs.frozen(kw_only=True)
class Reference:
    """One recalled item: untrusted text that never reaches the system prompt.

    Attributes:
        text: the recalled text.
        kind: its sort, for example `conversation`, `resource`, `decision`.
        id: the plugin's own id of the item; it appears in receipts, so it must not name a person.
        score: the plugin's own score; scores of two plugins cannot be compared.
        source: where it comes from, for the reader.
        scope: the scope in which it was found.
        session: the session it stems from.
        uri: the address of the whole item.
        when: when the user or the source wrote it.
    """

    text: str = field(validator=instance_of(str), repr=False)
    kind: str = field(default="memory", validator=instance_of(str))
    id: str | None = field(default=None, validator=optional(instance_of(str)))
    score: float | None = field(default=None, validator=optional(instance_of((int, float))))
    source: str | None = field(default=None, validator=optional(instance_of(str)))
    scope: str | None = field(default=None, validator=optional(instance_of(str)))
    session: str | None = field(default=None, validator=optional(instance_of(str)))
    uri: str | None = field(default=None, validator=optional(instance_of(str)))
    when: datetime | None = field(default=None, validator=optional(instance_of(datetime)))


@attrs.frozen(kw_only=True)
class Hint:
    """Structured experience with one of the host's own tools; the host alone offers and runs tools.

    Attributes:
        tool: the id of the tool in the host's registry.
        registry: the id of that registry.
        fingerprint: the tool's schema fingerprint when the experience was made.
        guidance: the experience, in a sentence.
        reason: why the plugin offers it now.
        tags: permission and risk tags.
        confidence: how sure the plugin is, 0 to 1, or `None`.
    """

    tool: str = field(validator=instance_of(str))
    registry: str = field(validator=instance_of(str))
    fingerprint: str = field(validator=instance_of(str))
    guidance: str = field(validator=instance_of(str), repr=False)
    reason: str = field(default="", validator=instance_of(str))
    tags: tuple[str, ...] = field(default=(), converter=texts)
    confidence: float | None = field(default=None, validator=optional(instance_of((int, float))))


# One function per type: mypy cannot infer what a generic converter takes.
def _references(values: Iterable[Reference]) -> tuple[Reference, ...]:
    return members(values, Reference)


def _hints(values: Iterable[Hint]) -> tuple[Hint, ...]:
    return members(values, Hint)


@attrs.frozen(kw_only=True)
class Contribution:
    """A plugin's answer to `before_prompt`.

    Attributes:
        blocks: trusted texts for the system prompt, frozen for the run. Only what the user or the plugin itself
            curated belongs here.
        references: untrusted recalled items, best first. The host cuts them to the budget from the end.
        hints: structured experience with the host's own tools.
    """

    blocks: tuple[str, ...] = field(default=(), converter=texts, repr=False)
    references: tuple[Reference, ...] = field(default=(), converter=_references, repr=False)
    hints: tuple[Hint, ...] = field(default=(), converter=_hints, repr=False)
