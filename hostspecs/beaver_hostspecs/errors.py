r"""Every error that Beaver Hooks raises.

    BeaverError
    ├── ConfigurationError            a setting is wrong; names its path, never its value
    │   └── ConfigurationNotTrusted   a configuration was found and the user has not confirmed it
    ├── PluginError                   something about one plugin
    │   ├── PluginRefused             the plugin breaks the contract; it was not registered
    │   ├── PluginMissing             the mode or the caller needs it, and it is not available
    │   ├── PluginUnavailable         raised by a plugin's `configure`: leave me out, and say why
    │   │   └── PluginTurnedOff           the same, because my own settings turn me off: no warning
    │   ├── PluginFailed              a needed plugin or call did not start or answer as it must
    │   ├── UnknownPlugin             no plugin of that name is registered (also a LookupError)
    │   ├── NotOffered                no plugin offers that tool or command (also a LookupError)
    │   └── NotAllowed                it is not for this caller: trust is not enough, or memory is off
    ├── TurnError                     something about one turn
    │   ├── InvalidTurn               the turn, its answer or a tool result is malformed (also a ValueError)
    │   ├── TurnAlreadyOpen           a turn with that id is open
    │   ├── TurnClosed                the turn was committed or dropped before
    │   └── UnknownTurn               no turn of that id was opened here (also a LookupError)
    ├── HostError                     the host is used wrongly
    │   ├── HostMisused               made or used with arguments that cannot work
    │   ├── HostNotOpen               used before it was entered, or after it was closed
    │   ├── WrongLoop                 used from an event loop other than the one that entered it
    │   └── ForkedHost                used in a child process after a fork
    └── AuditError                    the audit trail
        └── AuditUnavailable          it cannot be opened, read or written

Four errors pass through unchanged: that of a fail-closed plugin in `before_prompt`; that of a plugin's tool or command;
a plugin's own `ConfigurationError`; and `KeyboardInterrupt` and cancellation, which pass every layer. Any other error
of a plugin object while it is registered comes out as `PluginFailed`, chained from it; an installed plugin is left out,
or fails loading with `PluginMissing` where it is required. The text of every error here has passed the scrubber.
"""

from beaver_hostspecs.scrubbing import scrub


def _revived(kind: type[Exception], args: tuple[object, ...]) -> Exception:
    return kind.__new__(kind, *args)


class BeaverError(Exception):
    """The root of the tree; never raised itself."""

    def __init__(self, message: str) -> None:
        super().__init__(scrub(message))

    def __reduce__(self) -> tuple[object, ...]:
        # Without a call of the constructor, whose arguments differ from `args`.
        return _revived, (type(self), self.args), vars(self)


class ConfigurationError(BeaverError):
    """A setting is wrong. Names the path of the field and never shows its value.

    Attributes:
        path: the path of the field, for example `memory.gateway.topK`; empty for the file as a whole.
        problem: the fault of the setting, in words without its value.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = scrub(path)
        self.problem = scrub(problem)
        super().__init__(f"{path}: {problem}" if path else problem)


class ConfigurationNotTrusted(ConfigurationError):
    """A configuration found in the working directory has not been confirmed, or was changed since."""


class PluginError(BeaverError):
    """Something about one plugin.

    Attributes:
        plugin: the plugin's name; empty where the host fills it in.
    """

    def __init__(self, message: str, *, plugin: str = "") -> None:
        self.plugin = scrub(plugin)
        super().__init__(message)


class PluginRefused(PluginError):
    """A plugin breaks the contract and was not registered."""


class PluginMissing(PluginError):
    """A plugin that is needed is not installed or cannot be loaded."""


class PluginUnavailable(PluginError):
    """Raised by a plugin's `configure` to be left out: one warning, and its health says why.

    Attributes:
        reason: a sentence without values or credentials.
    """

    def __init__(self, reason: str, *, plugin: str = "") -> None:
        self.reason = scrub(reason)
        super().__init__(reason, plugin=plugin)


class PluginTurnedOff(PluginUnavailable):
    """Raised by a plugin's `configure` whose own settings turn it off: no warning, and its health says `disabled`."""


class PluginFailed(PluginError):
    """A fail-closed hook, a tool or a command timed out or answered wrongly, or a needed plugin did not load."""


class UnknownPlugin(PluginError, LookupError):
    """No plugin of that name is registered; the message lists those that are."""


class NotOffered(PluginError, LookupError):
    """No plugin offers a tool or a command of that name; the message lists the offered names."""


class NotAllowed(PluginError):
    """A tool or a command that is not for this caller: trust is not enough, or memory is off. Says the remedy."""


class TurnError(BeaverError):
    """Something about one turn."""


class InvalidTurn(TurnError, ValueError):
    """A turn, an answer or a tool result is malformed."""


class TurnAlreadyOpen(TurnError):
    """A turn with that id is open in this host."""


class TurnClosed(TurnError):
    """The turn was committed or dropped before."""


class UnknownTurn(TurnError, LookupError):
    """No turn of that id was opened by this host, or it was closed long ago."""


class HostError(BeaverError):
    """The host is used in a way that cannot work."""


class HostMisused(HostError):
    """The host is made or used with arguments that cannot work; names the argument and the accepted values."""


class HostNotOpen(HostError):
    """The host was used before it was entered, or after it was closed."""


class WrongLoop(HostError):
    """The host was used from an event loop other than the one that entered it."""


class ForkedHost(HostError):
    """The host was used in a child process after a fork."""


class AuditError(BeaverError):
    """Something about the audit trail."""


class AuditUnavailable(AuditError):
    """The audit trail cannot be opened, read or written."""
