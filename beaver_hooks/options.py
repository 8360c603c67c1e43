"""The options of a host: one record, which every part of an open host reads."""

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from beaver_hooks.audit.events import AuditSink
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hostspecs import Clock, Services


@attrs.frozen(kw_only=True)
class Options:
    """The options of a host.

    Attributes:
        config: the configuration.
        entry_points: the names of the installed plugins to load; `None` for all of them.
        plugins: plugin objects to register, by name.
        fail_closed: the plugins of both kinds that the caller names fail-closed.
        state_folder: the folder of the state.
        person_folder: the folder of the plugins' data that belong to the person.
        services: the services that the host lends to plugins.
        environment: the variables in which secrets are looked up.
        sinks: further audit sinks.
        clock: the source of the time.
        boundary: returns a turn's random boundary.
    """

    config: Config
    entry_points: frozenset[str] | None
    plugins: Mapping[str, object]
    fail_closed: frozenset[str]
    state_folder: Path
    person_folder: Path
    services: Services
    environment: Mapping[str, str]
    sinks: tuple[AuditSink, ...]
    clock: Clock
    boundary: Callable[[], str]

    @property
    def settings(self) -> HostSettings:
        """The section `host` of the configuration."""
        return self.config.host

    @property
    def mode(self) -> str | None:
        """The memory mode, or `None` for a host that names its plugins."""
        return self.config.mode if self.entry_points is None else None
