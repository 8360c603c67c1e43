"""`beaver plugins`: every installed plugin and its state."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from beaver_hooks.agent.factory import EngineLoadResult
from beaver_hooks.cli import terminal
from beaver_hooks.cli.app import CONFIG
from beaver_hooks.cli.common import common, configured, in_loop, opened
from beaver_hooks.cli.edits import dry_run, edited, target
from beaver_hooks.cli.terminal import show
from beaver_hooks.cli.text_format import filled
from beaver_hooks.config import Config, LoadedConfig
from beaver_hooks.config.edits import Step, with_placeholders
from beaver_hooks.config.paths import meant_or_known, printable
from beaver_hooks.config.type_hints import key_of, settings_fields
from beaver_hooks.plugins.entry_points import install_command, installed
from beaver_hooks.plugins.modes import preset_of
from beaver_hooks.plugins.settings_classes import described, settings_of
from beaver_hooks.receipts.health import Health
from beaver_hooks.receipts.recorder import HOST
from beaver_hostspecs import ConfigurationError


@attrs.frozen(kw_only=True)
class ListedPlugin:
    """A plugin in the list.

    Attributes:
        name: its name.
        version: its own version, else that of its distribution; `None` if neither is known.
        health: its state, with time and reason.
        fail_closed: whether its failure stops a turn.
        summary: its purpose in its own words.
        tools: the names of the tools it offers to the model.
        commands: the names of the commands it offers under `beaver memory`.
        distribution: its distribution with the version, or `None`.
    """

    name: str
    version: str | None
    health: Health
    fail_closed: bool
    summary: str
    tools: tuple[str, ...]
    commands: tuple[str, ...]
    distribution: str | None

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "version": self.version,
            **_state(self.health),
            "failClosed": self.fail_closed,
            "summary": self.summary,
            "tools": list(self.tools),
            "commands": list(self.commands),
            "distribution": self.distribution,
        }


@click.group(name="plugins", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: mode, plugins, host.")
@common
@click.pass_context
def command(ctx: click.Context, *, as_json: bool, config: Path | None) -> None:
    """List the installed plugins and their states.

    The list includes plugins that are disabled, blocked by the memory mode or not loadable, with the reason. This
    starts the agent, as `beaver run` does. The commands edit the configuration, as `beaver config` does.
    """
    if ctx.invoked_subcommand is None:
        in_loop(_show(configured(config), as_json=as_json))
    elif as_json:
        raise click.UsageError("--json is only for the list of the plugins; leave it out here.")
    elif config is not None:
        ctx.meta[CONFIG] = str(config)


def _installed(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return the name of an installed plugin, or raise an error with the probable name or the way to install it."""
    if value not in (there := installed()):
        remedy = install_command(value)
        end = f"; run: {remedy}" if remedy else meant_or_known(value, there, "installed plugins")
        raise click.BadParameter(f"no plugin named `{printable(value)}` is installed{end}.", ctx, param)
    return value


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - the signature is click's
    """Complete the names of the installed plugins without importing them."""
    return [name for name in installed() if name.startswith(incomplete)]


name_argument = click.argument("name", callback=_installed, shell_complete=_names)


@command.command(name="enable")
@name_argument
@dry_run
@common
def enable(*, name: str, dry_run: bool, config: Path | None) -> None:
    """Enable a plugin.

    Removes it from `plugins.disabled`, and sets its own setting `enabled`, if it has one, to true.
    """
    done = edited(target(config), lambda current: _enabling(name, current), dry=dry_run)
    if name in preset_of(done.config).blocked:
        show(f"The memory mode `{done.config.mode}` still blocks `{name}`; change `memory.mode` to use it.", err=True)


@command.command(name="disable")
@name_argument
@dry_run
@common
def disable(*, name: str, dry_run: bool, config: Path | None) -> None:
    """Disable a plugin: add it to `plugins.disabled`, so that it is not imported."""
    edited(target(config), lambda current: _disabling(name, current), dry=dry_run)


def _enabling(name: str, config: Config) -> Iterator[Step]:
    disabled = config.plugins.disabled
    if name in disabled:
        yield Step(path=("plugins", "disabled"), value=[each for each in disabled if each != name])
    info = described(name, installed()[name])
    path, cls = (None, None) if info is None else settings_of(name, info)
    if path is None or cls is None or not _has_switch(cls):
        return
    settings: Any = config.settings(cls, path, environment=with_placeholders(config.section(path) or {}, os.environ))
    if not settings.enabled:
        yield Step(path=(*path.split(".", 1), "enabled"), value=True)


def _disabling(name: str, config: Config) -> Iterator[Step]:
    if name in preset_of(config).required:
        problem = f"the memory mode `{config.mode}` needs `{name}`; change `memory.mode` first"
        raise ConfigurationError("plugins.disabled", problem)
    if name not in config.plugins.disabled:
        yield Step(path=("plugins", "disabled"), value=[*config.plugins.disabled, name])


def _has_switch(cls: type) -> bool:
    """Whether a plugin has a boolean setting `enabled` of its own."""
    return any(key_of(each) == "enabled" and each.type is bool for each in settings_fields(cls))


async def _show(loaded: LoadedConfig, *, as_json: bool) -> None:
    async with opened(loaded, notices=False) as engine:
        plugins, host = listed(engine), engine.status[HOST]
    mode = loaded.config.mode
    if as_json:
        shown = {"mode": mode, "plugins": [each.to_json() for each in plugins], "host": _state(host)}
        show(json.dumps(shown))
        return
    show(f"Memory mode: {mode}")
    for each in plugins:
        show("\n" + "\n".join(_lines(each)), paint=terminal.listed_state)
    if host.state != "ok":
        show(f"\n{filled(f'The host itself is {host}', indent='  ')}")


def listed(engine: EngineLoadResult) -> tuple[ListedPlugin, ...]:
    """Return every plugin that the host knows, by name."""
    config = engine.loaded.config
    closed = preset_of(config).fail_closed
    distributions = _distributions()
    infos, tools, commands = engine.host.plugins, engine.host.tools, engine.host.commands
    return tuple(
        ListedPlugin(
            name=name,
            version=infos[name].version if name in infos else distributions.get(name, (None, None))[1],
            health=health,
            fail_closed=name in closed,
            summary=infos[name].summary if name in infos else "",
            tools=tuple(each.name for each in tools.get(name, ())),
            commands=tuple(each.name for each in commands.get(name, ())),
            distribution=_text(distributions.get(name)),
        )
        for name, health in engine.status.items()
        if name != HOST
    )


def _state(health: Health) -> dict[str, Any]:
    since = health.since.isoformat() if health.since else None
    until = health.suspension.until
    return {
        "state": health.state, "since": since, "why": health.reason, "faults": dict(health.faults),
        "suspendedUntil": until and until.isoformat(),
    }  # fmt: skip


def _distributions() -> dict[str, tuple[str, str]]:
    """Return name and version of the distribution of each plugin, except rivals, whose distribution is ambiguous."""
    found = {name: getattr(point, "dist", None) for name, point in installed().items()}
    return {name: (dist.name, dist.version) for name, dist in found.items() if dist is not None}


def _text(distribution: tuple[str, str] | None) -> str | None:
    return None if distribution is None else " ".join(distribution)


def _lines(plugin: ListedPlugin) -> Iterator[str]:
    kind = "fail-closed" if plugin.fail_closed else "fail-open"
    yield filled(" ".join(filter(None, (plugin.name, plugin.version))) + f" ({kind}): {plugin.health}", indent="  ")
    if plugin.summary:
        yield filled(f"  {plugin.summary}", indent="  ")
    for what, names in (("tools", plugin.tools), ("commands", plugin.commands)):
        if names:
            yield filled(f"  {what}: {', '.join(names)}", indent="    ")
    yield f"  from: {plugin.distribution}" if plugin.distribution else "  not installed"
