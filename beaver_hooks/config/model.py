"""The configuration of a host. A new section of the file is a new field of `Config`."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import attrs

from beaver_hooks.config.converter import structure
from beaver_hooks.config.paths import child, located_in, meant_or_known
from beaver_hooks.config.provider import ProviderSettings, SmallModelSettings
from beaver_hooks.config.type_hints import hidden, rest
from beaver_hostspecs import ConfigurationError, Trust
from beaver_hostspecs.distributions import install_command
from beaver_hostspecs.settings import at_least, between, distinct, one_of, positive, setting

Mode = Literal["curated", "hybrid", "memory_gateway"]
Section = Mapping[str, Any]
FAIL_CLOSED = "failClosed"
"""The key in `plugins.<name>` that belongs to the host; all other keys belong to the plugin."""

T = TypeVar("T")

SYSTEM_PROMPT = "You are a helpful assistant. Answer in the user's language, and say so when you do not know something."

MEMORIES = ("curated", "gateway", "local", "server")
"""The plugins of this project, by name. Each is a distribution of its own, `beaver-hooks-<name>`."""


@attrs.frozen(kw_only=True)
class HostSettings:
    """The section `host`: the settings for turns."""

    default_deadline_seconds: float = setting(
        default=5.0,
        help="seconds that a hook may take, unless its plugin declares its own deadline",
        validator=positive(),
    )
    deadline_cap_seconds: float = setting(
        default=60.0,
        help="the most seconds that any hook may take, whatever its plugin declares",
        validator=positive(),
    )
    background: bool = setting(
        default=True, help="whether hooks after the answer run in the background; false awaits them"
    )
    queue_limit: int = setting(
        default=1000,
        help="how many background calls of one plugin may wait before the newest is refused",
        validator=between(1, 10**6),
    )
    idle_turn_seconds: float = setting(
        default=3600.0,
        help="seconds after which a turn that was neither committed nor dropped is dropped",
        validator=positive(),
    )
    reference_tokens: int = setting(
        default=4500, help="tokens of recalled text per plugin and turn", validator=at_least(0)
    )
    blocked_after_seconds: float = setting(
        default=0.5,
        help=(
            "seconds that a plugin may block the event loop before it is reported, and suspended if its deadline is"
            " over"
        ),
        validator=positive(),
    )
    state_folder: Path | None = setting(
        default=None,
        help=(
            "the folder for state, relative to this file; null is the folder .beaver that holds this file, or .beaver"
            " beside it"
        ),
    )
    small_model: SmallModelSettings | None = setting(
        default=None, help="a small language model that plugins may ask, for example to capture memories"
    )


@attrs.frozen(kw_only=True)
class Memory:
    """The section `memory`.

    Attributes:
        mode: which memories are loaded, which are required, and which stop a turn when they fail.
        explicit: whether the file names the mode.
        sections: the raw settings of the memory plugins, by the last part of their path.
    """

    mode: Mode = setting(
        default="hybrid", help="curated, hybrid (curated and gateway) or memory_gateway (the gateway alone)"
    )
    explicit: bool = hidden(default=False)
    sections: Mapping[str, Mapping[str, Any]] = rest()


@attrs.frozen(kw_only=True)
class Plugins:
    """The section `plugins`.

    Attributes:
        disabled: names of plugins that are never imported.
        sections: the raw settings of third-party plugins, by plugin name, and `failClosed` of any plugin.
    """

    disabled: tuple[str, ...] = setting(default=(), help="names of plugins that are not loaded", validator=distinct())
    sections: Mapping[str, Mapping[str, Any]] = rest()

    @property
    def fail_closed(self) -> Mapping[str, bool]:
        """Whether a plugin's failure stops the turn, by name, for the plugins whose section has the key."""
        return {name: section[FAIL_CLOSED] for name, section in self.sections.items() if FAIL_CLOSED in section}

    @property
    def settings(self) -> Mapping[str, Section]:
        """The sections as the plugins get them: without `failClosed`, and without sections that hold only that."""
        return {
            name: {key: value for key, value in section.items() if key != FAIL_CLOSED}
            for name, section in self.sections.items()
            if set(section) != {FAIL_CLOSED}
        }


@attrs.frozen(kw_only=True)
class AgentSettings:
    """The section `agent`."""

    system_prompt: str = setting(
        default=SYSTEM_PROMPT, help="the start of the system prompt; plugins add their rules and blocks to it"
    )
    trust: str = setting(
        default=Trust.FULL.value,
        help="how far memory trusts the agent's user; a run may lower it",
        validator=one_of(*(each.value for each in Trust)),
    )
    max_tool_rounds: int = setting(
        default=8, help="how often the model may ask for tools before its turn ends", validator=between(1, 100)
    )
    history_messages: int = setting(
        default=50, help="how many messages of the session the model gets", validator=between(0, 10_000)
    )
    store_secrets: bool = setting(
        default=False,
        help="whether stored sessions keep the passwords and keys that were said; else later turns see a mask",
    )
    skills: tuple[str, ...] = setting(
        default=(), help="names of the skills that are active in every run", validator=distinct()
    )
    skill_folders: tuple[Path, ...] = setting(
        default=(), help="folders whose subfolders hold a SKILL.md each; the first one wins", validator=distinct()
    )
    tool_output_characters: int = setting(
        default=20_000, help="characters of a tool's output that the model gets", validator=between(100, 1_000_000)
    )


@attrs.frozen(kw_only=True)
class SectionOwners:
    """The sections that plugins read, and the names of the plugins.

    Attributes:
        claimed: the plugin that reads a section, by the path of the section.
        ignored: names of plugins whose sections may stay unread.
        installed: names of all installed plugins.
    """

    claimed: Mapping[str, str]
    ignored: Collection[str]
    installed: Collection[str]


def check_claims(path: str, claims: SectionOwners) -> str | None:
    """Return the fault of a section at `path`, or `None` if it may stay."""
    root, _, name = path.partition(".")
    if path in claims.claimed or name in claims.ignored:
        return None
    if name in claims.installed:
        return _elsewhere(name, claims)
    if root == "memory":
        return _no_memory(name, claims)
    return check_known(name, claims)


def check_known(name: str, claims: SectionOwners) -> str | None:
    """Return the fault of a plugin's name, or `None` for a plugin that is installed or may be missing."""
    if name in {*claims.ignored, *claims.installed, *claims.claimed.values()}:
        return None
    return f"no plugin of that name is installed{meant_or_known(name, claims.installed, 'installed plugins')}"


def _elsewhere(name: str, claims: SectionOwners) -> str:
    theirs = [path for path, plugin in claims.claimed.items() if plugin == name]
    if theirs:
        return f"the settings of the plugin `{name}` belong in `{theirs[0]}`"
    return f"the plugin `{name}` has no settings"


def _no_memory(name: str, claims: SectionOwners) -> str:
    if name in MEMORIES:
        return f"no plugin named `{name}` is installed; run: {install_command(f'beaver-hooks-{name}')}"
    claimed = [path.removeprefix("memory.") for path in claims.claimed if path.startswith("memory.")]
    return f"is not a setting{meant_or_known(name, ('mode', *MEMORIES, *claimed), 'settings')}"


@attrs.frozen(kw_only=True)
class Config:
    """A whole configuration. Plugin sections are raw: the host structures them with the plugin's class.

    Attributes:
        schema: the file's `$schema`, for editors; ignored.
        source: its file, which errors name, or `None`.
    """

    schema: str | None = setting(default=None, key="$schema", help="the JSON Schema of this file, for editors")
    memory: Memory | None = setting(default=None, help="the memory mode, and the settings of each memory")
    plugins: Plugins = setting(
        default=Plugins(), help="third-party plugins: their settings, and which plugins not to load"
    )
    provider: ProviderSettings = setting(default=ProviderSettings(), help="the language model of the agent")
    agent: AgentSettings = setting(default=AgentSettings(), help="how the agent runs")
    host: HostSettings = setting(default=HostSettings(), help="how turns are run")
    source: Path | None = hidden(default=None, eq=False)

    @property
    def mode(self) -> Mode:
        """The memory mode, from the file or the default."""
        return self.memory.mode if self.memory else "hybrid"

    @property
    def explicit(self) -> bool:
        """Whether the file names the mode."""
        return self.memory is not None and self.memory.explicit

    @property
    def plugin_sections(self) -> Mapping[str, Section]:
        """The raw settings of the plugins, by path."""
        return dict(self._sections())

    def section(self, path: str) -> Section | None:
        """Return the raw settings at a plugin's `settings_path`, or `None` if the file has none."""
        return self.plugin_sections.get(path)

    def settings(self, cls: type[T], path: str, *, environment: Mapping[str, str]) -> T:
        """Return a plugin's settings, made from the section at its `settings_path`, if the file has one.

        Args:
            cls: the plugin's settings class.
            path: the path of its section.
            environment: the variables in which `{"env": "NAME"}` is looked up.

        Raises:
            ConfigurationError: the section does not fit; names the field, and the file, if any.
        """
        section = self.section(path) or {}
        return located_in(self.source, partial(structure, cls, section, path, environment=environment))

    def check_sections(
        self,
        *,
        claimed: Mapping[str, str],
        ignored: Collection[str] = (),
        installed: Collection[str] = (),
    ) -> None:
        """Refuse a section that no plugin reads.

        Args:
            claimed: the plugin that reads a section, by the path of the section.
            ignored: names of plugins that are blocked, disabled or unavailable; their sections may stay.
            installed: names of all installed plugins.

        Raises:
            ConfigurationError: names the section, the probable name or the plugin to install, and the file.
        """
        claims = SectionOwners(claimed=claimed, ignored={*ignored, *self.plugins.disabled}, installed=installed)
        located_in(self.source, partial(self._check_sections, claims))

    def _check_sections(self, claims: SectionOwners) -> None:
        for path, _ in self._sections():
            problem = check_claims(path, claims)
            if problem is not None:
                raise ConfigurationError(child(*path.split(".", 1)), problem)
        for name in self.plugins.fail_closed:
            problem = check_known(name, claims)
            if problem is not None:
                raise ConfigurationError(child("plugins", name), problem)

    def _sections(self) -> Iterator[tuple[str, Section]]:
        memory = self.memory.sections if self.memory else MappingProxyType({})
        yield from ((f"memory.{name}", section) for name, section in memory.items())
        yield from ((f"plugins.{name}", section) for name, section in self.plugins.settings.items())


def is_section_path(path: str) -> bool:
    """Whether a plugin may keep its settings at `path`: `memory.<name>` or `plugins.<name>`."""
    root, _, name = path.partition(".")
    return root in {"memory", "plugins"} and bool(name) and path not in {"memory.mode", "plugins.disabled"}
