"""The harness of a plugin: its factory and its card."""

from collections.abc import Mapping
from typing import Any, Protocol

import attrs
from attrs import field

from beaver_hostspecs.conformance.cards import a_bool, a_str, notes_about_fields
from beaver_hostspecs.freezing import freeze, thaw
from beaver_hostspecs.secrets import Secret


@attrs.frozen(kw_only=True)
class PluginCard:
    """The abilities of one plugin. A field that is `False` excuses cases of the suite.

    Attributes:
        plugin: the plugin's name.
        recalls: it contributes to turns that follow the first one of the suite.
        learns: it keeps the texts of turns, and recalls them in a later turn of the session.
        refuses_injected: it asks `turn.was_injected` and does not learn texts that the host injected.
        isolated: two instances with state folders of their own share nothing.
        restarts: it can be started again after it was stopped.
        holds_secret: its settings hold a credential.
        offers_tools: it offers tools to the model.
        offers_commands: it offers commands to the user.
        confirms_compaction: it implements `before_compaction`, and what it confirms survives the process. `False`
            by default.
        notes: a sentence about a field, by its name.
    """

    plugin: str = field(validator=a_str)
    recalls: bool = field(default=True, validator=a_bool)
    learns: bool = field(default=True, validator=a_bool)
    refuses_injected: bool = field(default=True, validator=a_bool)
    isolated: bool = field(default=True, validator=a_bool)
    restarts: bool = field(default=True, validator=a_bool)
    holds_secret: bool = field(default=True, validator=a_bool)
    offers_tools: bool = field(default=True, validator=a_bool)
    offers_commands: bool = field(default=True, validator=a_bool)
    confirms_compaction: bool = field(default=False, validator=a_bool)
    notes: Mapping[str, str] = field(default=freeze({}), converter=freeze, validator=notes_about_fields)

    def can(self, flag: str) -> bool:
        """Whether the plugin has an ability.

        Raises:
            AttributeError: the card has no such field.
        """
        return bool(getattr(self, flag))

    def as_dict(self) -> dict[str, Any]:
        """Return the card as plain data."""
        return {each.name: thaw(getattr(self, each.name)) for each in attrs.fields(type(self))}


class PluginHarness(Protocol):
    """One plugin, as the suite needs it. Inherit from it: all but `card` and `make` have a default.

    The suite makes a fresh harness for each case, opens it, makes one or more plugins, and closes it.

    Attributes:
        card: the abilities that the plugin declares.
        settings: an instance of the settings class that `describe` names, or `None`. Read after `open`.
        secret: the credential in the settings, for example `make_canary().secret`, or `None`.
    """

    card: PluginCard
    settings: Any = None
    secret: Secret | None = None

    async def open(self) -> None:
        """Start the services that the plugin needs, for example a server on the loopback interface."""

    def make(self) -> object:
        """Return a new plugin, as its entry point would."""
        raise NotImplementedError

    def saying(self, fact: str) -> str:
        """Return a prompt that the plugin would learn `fact` from."""
        return fact

    async def trouble(self) -> None:
        """Make the services that the plugin depends on fail from now on, as severely as they can."""

    async def close(self) -> None:
        """Close the services that `open` started. Called once at the end, also after a failure, or without `open`."""
