"""`beaver plugins`: every installed plugin, and how it is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from beaver_hooks.agent.loading import EngineLoadResult
from beaver_hooks.cli.opening import common, configured, in_loop, opened
from beaver_hooks.cli.terminal import show
from beaver_hooks.cli.wording import filled
from beaver_hooks.config import LoadedConfig
from beaver_hooks.record.health import Health
from beaver_hooks.record.recorder import HOST
from beaver_hooks.registry.catalog import installed
from beaver_hooks.registry.modes import preset


@attrs.frozen(kw_only=True)
class Listed:
    """A plugin as it is listed.

    Attributes:
        name: its name.
        version: what it says itself, else its distribution; `None` where neither is known.
        health: its state, since when and why.
        fail_closed: whether its failure stops a turn.
        summary: what it says it is for.
        tools: the names of the tools it offers to the model.
        commands: the names of the commands it offers under `beaver memory`.
        distribution: what brought it, with its version, or `None`.
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


@click.command(name="plugins")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: mode, plugins, host.")
@common
def command(*, as_json: bool, config: Path | None) -> None:
    """List the installed plugins and how they are.

    Also those that are disabled, that the memory mode blocks, or that could not be loaded, with the reason. Opens the
    agent for it, as `beaver run` does.
    """
    in_loop(_show(configured(config), as_json=as_json))


async def _show(loaded: LoadedConfig, *, as_json: bool) -> None:
    async with opened(loaded) as engine:
        plugins, host = listed(engine), engine.status[HOST]
    mode = loaded.config.mode
    if as_json:
        shown = {"mode": mode, "plugins": [each.to_json() for each in plugins], "host": _state(host)}
        show(json.dumps(shown))
        return
    show(f"Memory mode: {mode}")
    for each in plugins:
        show("\n" + "\n".join(_lines(each)))
    if host.state != "ok":
        show(f"\n{filled(f'The host itself is {host}', indent='  ')}")


def listed(engine: EngineLoadResult) -> tuple[Listed, ...]:
    """Return every plugin that the host has heard of, by name."""
    config = engine.loaded.config
    closed = preset(config.mode, explicit=config.explicit).fail_closed
    distributions = _distributions()
    infos, tools, commands = engine.host.plugins, engine.host.tools, engine.host.commands
    return tuple(
        Listed(
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
    """Return name and version of the distribution that brings each plugin. Of rivals nobody knows which it is."""
    found = {name: getattr(point, "dist", None) for name, point in installed().items()}
    return {name: (dist.name, dist.version) for name, dist in found.items() if dist is not None}


def _text(distribution: tuple[str, str] | None) -> str | None:
    return None if distribution is None else " ".join(distribution)


def _lines(plugin: Listed) -> Iterator[str]:
    kind = "fail-closed" if plugin.fail_closed else "fail-open"
    yield filled(" ".join(filter(None, (plugin.name, plugin.version))) + f" ({kind}): {plugin.health}", indent="  ")
    if plugin.summary:
        yield filled(f"  {plugin.summary}", indent="  ")
    for what, names in (("tools", plugin.tools), ("commands", plugin.commands)):
        if names:
            yield filled(f"  {what}: {', '.join(names)}", indent="    ")
    yield f"  from: {plugin.distribution}" if plugin.distribution else "  not installed"
