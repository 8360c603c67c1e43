"""Plugins that the current installation and configuration leave out: their last health is outdated."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Self

import attrs

from beaver_hooks.config import Config
from beaver_hooks.plugins.entry_points import installed
from beaver_hooks.plugins.modes import make_plan, preset
from beaver_hooks.receipts.health import Health
from beaver_hooks.receipts.health_store import NEVER
from beaver_hooks.receipts.recorder import HOST
from beaver_hooks.receipts.suspension import Suspension

DAY = timedelta(days=1)


@attrs.frozen(kw_only=True)
class Absence:
    """Says why a plugin is not in service.

    Attributes:
        there: the names of the installed plugins.
        disabled: the plugins that the configuration or the memory mode leaves out, each with the reason.
        now: the end of the last day.
    """

    there: Collection[str]
    disabled: Mapping[str, str]
    now: datetime = attrs.field(factory=lambda: datetime.now(UTC))

    @classmethod
    def under(cls, config: Config | None) -> Self:
        """Return the absence under a configuration; `None` is one that cannot take effect."""
        there = installed()
        if config is None:
            return cls(there=there, disabled={})
        chosen = preset(config.mode, explicit=config.explicit)
        plan = make_plan(installed=there, preset=chosen, disabled=config.plugins.disabled, mode=config.mode)
        return cls(there=there, disabled=plan.disabled)

    def text(self, name: str, health: Health) -> str | None:
        """Return why a plugin is not in service, and its last health; `None` if it may be in service."""
        if name == HOST or (name in self.there and name not in self.disabled):
            return None
        if health.state == "disabled" and name in self.disabled:
            return str(health)
        if self.is_recent(name, health):
            return f"not installed as a distribution (last seen {_last_active(health):%Y-%m-%d %H:%M:%S} UTC: {health})"
        why = f"disabled: {self.disabled[name]}" if name in self.disabled else "not installed"
        if health.state in ("ok", "disabled"):
            return why
        # A plugin that is not called is not suspended either.
        return f"{why} (last seen {attrs.evolve(health, suspension=Suspension())})"

    def is_recent(self, name: str, health: Health) -> bool:
        """Whether a plugin without a distribution was active in the last day, as an object of a program."""
        return name not in self.there and name not in self.disabled and self.now - _last_active(health) < DAY


def _last_active(health: Health) -> datetime:
    moments = (health.last_success, health.last_failure, health.suspension.moved)
    # A stored time may lack a time zone.
    return max((each.astimezone(UTC) for each in moments if each is not None and each.tzinfo), default=NEVER)
