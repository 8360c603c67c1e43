"""The capability card of a host: its abilities for memory, in machine-readable form."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from attrs import field
from attrs.validators import in_, instance_of

from beaver_hostspecs.freezing import freeze, thaw

Placement = Literal["before_history", "before_user"]
Persistence = Literal["ephemeral", "replayed", "persisted"]

a_str = instance_of(str)
a_bool = instance_of(bool)


def notes_about_fields(
    card: "attrs.AttrsInstance", attribute: "attrs.Attribute[Any]", notes: Mapping[str, str]
) -> None:
    """Refuse notes about anything but fields of the card."""
    known = {each.name for each in attrs.fields(type(card))}
    if unknown := set(notes) - known:
        raise ValueError(f"{attribute.name} is about fields of the card; there are no {sorted(unknown)}")


@attrs.frozen(kw_only=True)
class Card:
    """The abilities of one host, or of one adapter for a framework. A field that is `False` excuses cases of the suite.

    Attributes:
        host: the host's name.
        reference_placement: the place of reference messages: before the session's history, or directly before the
            user's text.
        reference_persistence: how long they last: `ephemeral`, they are in this turn's requests only; `replayed`, the
            host sends them again in later turns; `persisted`, it stores them too.
        reference_role: the role that the model sees them in.
        system_prompt: rules and trusted blocks stand in the system prompt.
        sees_errors: a model that fails ends the turn at once.
        sees_cancellation: a cancelled task, or a consumer that breaks off, ends the turn at once.
        sees_blocks: the host has output guardrails, and a blocked answer is not committed.
        sees_tools: it reports the tools that run.
        sees_tool_errors: it can tell a tool's failure from its success.
        offers_tools: the tools of plugins are offered to the model.
        has_user_id: it knows the user.
        streaming: answers can be streamed.
        sync: there is an entry point for callers without an event loop.
        parallel: sessions can run side by side.
        unregister: plugins can come and go while a session lasts.
        keeps_health: it reports which plugins have failed.
        announces_compaction: plugins hear of it before the context of a session is shortened, and the host waits for
            them. `False` by default.
        plain: the framework runs without memory too, for comparison.
        notes: a sentence about a field, by its name.
    """

    host: str = field(validator=a_str)
    reference_placement: Placement = field(default="before_history", validator=in_(("before_history", "before_user")))
    reference_persistence: Persistence = field(
        default="ephemeral", validator=in_(("ephemeral", "replayed", "persisted"))
    )
    reference_role: str = field(default="user", validator=a_str)
    system_prompt: bool = field(default=True, validator=a_bool)
    sees_errors: bool = field(default=True, validator=a_bool)
    sees_cancellation: bool = field(default=True, validator=a_bool)
    sees_blocks: bool = field(default=True, validator=a_bool)
    sees_tools: bool = field(default=True, validator=a_bool)
    sees_tool_errors: bool = field(default=True, validator=a_bool)
    offers_tools: bool = field(default=True, validator=a_bool)
    has_user_id: bool = field(default=True, validator=a_bool)
    streaming: bool = field(default=True, validator=a_bool)
    sync: bool = field(default=True, validator=a_bool)
    parallel: bool = field(default=True, validator=a_bool)
    unregister: bool = field(default=True, validator=a_bool)
    keeps_health: bool = field(default=True, validator=a_bool)
    announces_compaction: bool = field(default=False, validator=a_bool)
    plain: bool = field(default=True, validator=a_bool)
    notes: Mapping[str, str] = field(default=freeze({}), converter=freeze, validator=notes_about_fields)

    def can(self, flag: str) -> bool:
        """Whether the host has an ability; for persistence, whether references are ephemeral.

        Raises:
            AttributeError: the card has no such field.
        """
        value = getattr(self, flag)
        return bool(value == "ephemeral" if flag == "reference_persistence" else value)

    def as_dict(self) -> dict[str, Any]:
        """Return the card as plain data."""
        return {each.name: thaw(getattr(self, each.name)) for each in attrs.fields(type(self))}
