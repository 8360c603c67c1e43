"""The description that a plugin gives the host, and the objects that the host gives a plugin."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs
from attrs import Factory, field
from attrs.validators import gt, instance_of, optional

from beaver_hostspecs.freezing import freeze, texts, thaw
from beaver_hostspecs.reports import Report
from beaver_hostspecs.turns import Message, Scope, Trust, Turn, named_or_none

T = TypeVar("T")

_seconds = optional(gt(0))


@attrs.frozen(kw_only=True)
class Deadlines:
    """Seconds that each coroutine hook may take; `None` is the host's default. The host's cap applies to all."""

    before_prompt: float | None = field(default=None, validator=_seconds)
    on_tool_result: float | None = field(default=None, validator=_seconds)
    after_prompt: float | None = field(default=None, validator=_seconds)
    on_turn_dropped: float | None = field(default=None, validator=_seconds)
    before_compaction: float | None = field(default=None, validator=_seconds)
    start: float | None = field(default=None, validator=_seconds)
    stop: float | None = field(default=None, validator=_seconds)


def _text_or_number(_: object, __: object, value: Any) -> None:
    # A number passes here: the host refuses it with a remedy, and of an error in `describe` it shows the type alone.
    if not isinstance(value, str | int | float):
        raise TypeError("`contract` must be a text")


@attrs.frozen(kw_only=True)
class PluginInfo:
    """A plugin's description, returned by `describe`.

    Attributes:
        version: the plugin's own version.
        contract: the contract version it was written for, for example `"1.0"`. There is no default: the installed
            version would always agree with itself.
        summary: one line for people.
        settings: the attrs class of its settings, or `None` when it has none.
        settings_path: their path in the configuration file, for example `memory.gateway`; the default is
            `plugins.<name>`.
        rules: short constant texts for the system prompt, at most 10 of 4,000 characters each, read once. They are
            present exactly while the plugin is registered and are the same bytes every turn.
        deadlines: seconds per hook.
    """

    version: str = field(validator=instance_of(str))
    contract: str = field(validator=_text_or_number)
    summary: str = field(default="", validator=instance_of(str))
    settings: type | None = field(default=None, validator=optional(instance_of(type)))
    settings_path: str | None = field(default=None, validator=optional(instance_of(str)))
    rules: tuple[str, ...] = field(default=(), converter=texts)
    deadlines: Deadlines = field(default=Deadlines(), validator=instance_of(Deadlines))


class SmallModel(Protocol):
    """A small language model that the host lends to plugins."""

    async def complete(self, prompt: str, *, max_tokens: int) -> str:
        """Return the model's completion of `prompt`."""


@attrs.frozen(kw_only=True)
class Services:
    """The services of the host; `None` for each that it lacks."""

    small_model: SmallModel | None = None


class FileTrust(Protocol):
    """Whether the files of a plugin may be believed.

    A repository can bring files into a state folder, and every `git pull` can change them without a question. A plugin
    that passes a file on as trusted text asks first. Every method may wait for a disk and for git: call it in a thread.
    """

    def doubts(self, path: Path) -> bool:
        """Whether trust in a file depends on its content. Where it does not, `record` records nothing either."""

    def believes(self, path: Path, content: bytes) -> bool:
        """Whether this content of the file was written here or confirmed by the user."""

    def record(self, path: Path, content: bytes) -> None:
        """Record that the plugin is about to write this content. The replaced content stays believed, if it was.

        So a file stays believed where the process ends before the write.

        Raises:
            ConfigurationError: it cannot be recorded; then do not write it.
        """


@attrs.frozen
class BelieveAll:
    """The `FileTrust` of a plugin that runs without a host, where all files are the user's own."""

    def doubts(self, path: Path) -> bool:  # noqa: ARG002 - as the protocol has it
        """Doubt nothing."""
        return False

    def believes(self, path: Path, content: bytes) -> bool:  # noqa: ARG002 - as the protocol has it
        """Believe it."""
        return True

    def record(self, path: Path, content: bytes) -> None:
        """Record nothing."""


@attrs.frozen(kw_only=True)
class Setup:
    """The argument of `configure`.

    Attributes:
        settings: an instance of the plugin's settings class, already checked; `None` when it declared none.
        mode: the memory mode, or `None` for a host that has none.
        explicit: whether the configuration names the mode.
        state_folder: the plugin's own folder for the project, which exists; only this plugin writes to it.
        person_folder: the plugin's own folder for data of the user that the user's projects share. It is `state_folder`
            where the host does not separate projects, and by default.
        services: the services of the host.
        report: the report for events outside turns.
        files: says whether the content of a file may be believed.
        reference_tokens: how many tokens of references the host shows of this plugin in a turn, provenance and fence
            included, or `None` where it does not say. A turn's own `budget` may be less.
    """

    settings: Any
    mode: str | None = None
    explicit: bool = False
    state_folder: Path = field(validator=instance_of(Path))
    person_folder: Path = field(
        default=Factory(lambda setup: setup.state_folder, takes_self=True), validator=instance_of(Path)
    )
    services: Services = Services()
    report: Report
    files: FileTrust = BelieveAll()
    reference_tokens: int | None = None


class Caller(Protocol):
    """The user whom a turn, a tool or a command serves: `Turn` and `CommandContext` are callers."""

    @property
    def session(self) -> str | None:
        """The host's id of the session."""

    @property
    def user(self) -> str | None:
        """The host's id of the user, or `None` where it has none."""

    @property
    def scope(self) -> Scope:
        """The scope of the session."""

    @property
    def trust(self) -> Trust:
        """How far the user is trusted with the content of memory."""


def any_caller(_: Caller) -> bool:
    """Allow every caller."""
    return True


Allows = Callable[[Caller], bool]
RunTool = Callable[[Mapping[str, Any], Turn, Report], Awaitable[object]]


@attrs.frozen(kw_only=True)
class Tool:
    """A tool that a plugin offers to the model.

    Attributes:
        name: unique among all tools of the host.
        description: its purpose, for the model.
        parameters: the JSON Schema of its arguments.
        run: `async run(arguments, turn, report)`; the model gets its result.
        allows: whether a caller may use it, by the caller and the plugin's settings alone: a host may keep the answer
            for its next start. The host neither offers it to other callers nor runs it for them. `allows` is called in
            each turn, on the event loop, so it must answer at once: no file, no network. A slow answer counts as no,
            and the host does not call it again.
    """

    name: str = field(validator=instance_of(str))
    description: str = field(validator=instance_of(str))
    parameters: Mapping[str, Any] = field(converter=freeze)
    run: RunTool = field(repr=False)
    allows: Allows = field(default=any_caller, repr=False)

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as most providers want it: name, description and parameters as plain data."""
        return {"name": self.name, "description": self.description, "parameters": thaw(self.parameters)}


@attrs.frozen(kw_only=True)
class CommandContext:
    """The caller of a command. A blank session or user is refused."""

    session: str | None = field(default=None, validator=named_or_none)
    user: str | None = field(default=None, validator=named_or_none)
    scope: Scope = field(default=Scope(), validator=instance_of(Scope))
    trust: Trust = field(default=Trust.PUBLIC, converter=Trust)


@attrs.frozen(kw_only=True)
class StoredSession:
    """A conversation that the host has stored.

    Attributes:
        id: the id of the session.
        user: its user, or `None`.
        trust: in the caller who began it.
        messages: what the user and the model saw, in order. The id of a user's message is that of its turn, or `None`
            if it was imported without one.
    """

    id: str
    user: str | None = None
    trust: Trust = Trust.PUBLIC
    messages: tuple[Message, ...] = field(default=(), repr=False)


class Shell(Protocol):
    """The object that the command group of a plugin gets from `click.pass_obj`, when `beaver` runs it.

    Such a group is an entry point of the group `beaver_hooks.cli` and has the plugin's name. Its module is imported
    when it is called, and may import click, which `beaver` brings along.
    """

    def call(self, function: "Callable[[Any], Awaitable[T]]") -> T:
        """Return the result of `await function(plugin)`, with the plugin in service in an open host.

        Raises:
            PluginUnavailable: the plugin could not be loaded; says why.
            UnknownPlugin: the plugin is turned off, or not installed.
        """

    def folder(self) -> Path:
        """Return the plugin's own state folder, which exists; the plugin need not be in service, or turned on.

        Raises:
            AuditUnavailable: it cannot be made.
        """

    def person_folder(self) -> Path:
        """Return the plugin's own folder for data of the user, likewise; see `Setup.person_folder`.

        Raises:
            AuditUnavailable: it cannot be made.
        """

    def session(self, beginning: str) -> StoredSession:
        """Return the stored conversation whose id has this beginning.

        Raises:
            NotAllowed: memory is off in the session, or for its user.
            BeaverError: there is no such session, there are several, or the conversations cannot be read.
        """

    def quoting_sessions(self, texts: Sequence[str], *, user: str | None = None) -> int:
        """Return how many stored conversations have a message that holds all words of one of the texts.

        Only those of `user` are counted, if one is given.

        A plugin that erases a text asks this, because answers may quote it. `beaver sessions forget` erases those.

        Raises:
            BeaverError: the conversations cannot be read.
        """


RunCommand = Callable[[tuple[str, ...], CommandContext, Report], Awaitable[str]]


@attrs.frozen(kw_only=True)
class Command:
    """A subcommand that a plugin adds under `/memory <plugin>`.

    Attributes:
        name: the word the user types.
        summary: one line of help.
        run: `async run(words, context, report)`; the user sees its result.
        allows: whether a caller may use it. The host neither offers it to other callers nor runs it for them. Like that
            of a tool, it must answer at once.
    """

    name: str = field(validator=instance_of(str))
    summary: str = field(validator=instance_of(str))
    run: RunCommand = field(repr=False)
    allows: Allows = field(default=any_caller, repr=False)
