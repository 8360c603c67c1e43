"""Finds the configuration, asks for trust unless the caller named the file, and reads it."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import attrs

from beaver_hooks.config.entries import Classes
from beaver_hooks.config.locations import FOLDER, ConfigLocation, find_config, find_folder, person_folder
from beaver_hooks.config.model import Config
from beaver_hooks.config.parser import build_config, read_json
from beaver_hooks.config.paths import printable
from beaver_hooks.config.summaries import Summary
from beaver_hooks.config.trust import confirm as record_confirmation
from beaver_hooks.config.trust import fingerprint, recorded_fingerprint, review
from beaver_hostspecs import ConfigurationNotTrusted

Confirm = Callable[[Summary], bool]
SettingsClasses = Callable[[Config], Classes]


@attrs.frozen(kw_only=True)
class LoadedConfig:
    """The configuration that is in effect.

    Attributes:
        config: the configuration.
        path: its file, or `None` for the defaults.
        trusted_by: `given` by the caller or the environment, `confirmed` by a person, `None` for the
            defaults.
        state_folder: the folder of the host's state, absolute.
        person_folder: the folder of the data that belong to the person and not to the project, absolute; `state_folder`
            if the configuration names one.
    """

    config: Config
    path: Path | None
    trusted_by: Literal["given", "confirmed"] | None
    state_folder: Path
    person_folder: Path = attrs.field(default=attrs.Factory(lambda loaded: loaded.state_folder, takes_self=True))


def load_config(
    explicit: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    confirm: Confirm | None = None,
    classes: SettingsClasses | None = None,
) -> LoadedConfig:
    """Return the configuration for a working directory; the defaults without a file.

    Args:
        explicit: the file that the caller names, for example by `--config`.
        environment: the process's environment unless given.
        cwd: the working directory unless given.
        confirm: asks a person whether a configuration that the caller did not name may take effect; the answer is
            recorded.
        classes: returns the settings classes of the plugins, which define the secrets; the texts of unknown plugins
            are not shown.

    Raises:
        ConfigurationError: the file or the record of confirmations cannot be read, or a setting is wrong.
        ConfigurationNotTrusted: the file was not named, and the user has not confirmed its present content.
    """
    environment = os.environ if environment is None else environment
    cwd = Path.cwd() if cwd is None else cwd.absolute()
    found = find_config(explicit, environment, cwd)
    if found is None:
        return _defaults(environment, cwd)
    if not found.given:
        refuse_link(found.path)
    # The confirmed and the effective configuration come from the same bytes: the file may change at any time.
    raw = read_json(found.path)
    config = build_config(raw, environment=environment, source=found.path)
    if not found.given:
        known = partial(classes, config) if classes is not None else dict
        _ensure_trust(raw, found, environment, confirm, known)
    return _loaded(found, config, environment)


def _defaults(environment: Mapping[str, str], cwd: Path) -> LoadedConfig:
    return LoadedConfig(
        config=Config(),
        path=None,
        trusted_by=None,
        state_folder=find_folder(environment, cwd),
        person_folder=person_folder(environment),
    )


def _loaded(found: ConfigLocation, config: Config, environment: Mapping[str, str]) -> LoadedConfig:
    folder = _state_folder(config, found.path)
    return LoadedConfig(
        config=config,
        path=found.path,
        trusted_by="given" if found.given else "confirmed",
        state_folder=folder,
        person_folder=person_folder(environment) if config.host.state_folder is None else folder,
    )


def refuse_link(path: Path) -> None:
    """Refuse a configuration that the caller did not name and that is a symbolic link, even to a confirmed file.

    Relative paths in a configuration start from its folder. A link in a foreign folder to a configuration of the user
    would make the confirmed paths point into the foreign folder: to its skills and its state.

    Raises:
        ConfigurationNotTrusted: it is a link.
    """
    if path.is_symlink():
        raise ConfigurationNotTrusted(
            "",
            f"the configuration {printable(str(path))} is a symbolic link, which cannot be confirmed; replace it"
            " with the file itself, or name it with --config or BEAVER_CONFIG",
        )


def _ensure_trust(
    raw: Mapping[str, Any],
    found: ConfigLocation,
    environment: Mapping[str, str],
    ask: Confirm | None,
    classes: Callable[[], Classes],
) -> None:
    current, known = fingerprint(raw), recorded_fingerprint(found.path, environment)
    if current == known:
        return
    there = {} if ask is None else classes()
    if ask is None or not ask(review(found.path, raw, environment, there)):
        _refuse(found.path, changed=known is not None)
    record_confirmation(found.path, raw, environment, there)


def _refuse(path: Path, *, changed: bool) -> NoReturn:
    name = printable(str(path))
    why = "was changed after it was confirmed" if changed else "was found here and is not confirmed"
    raise ConfigurationNotTrusted(
        "",
        f"the configuration {name} {why}; review it with `beaver trust`, or name it with --config or BEAVER_CONFIG",
    )


def _state_folder(config: Config, path: Path) -> Path:
    """Return the folder that the file names, else the `.beaver` that contains the file, else the `.beaver` beside it.

    It does not depend on the working directory: two programs that name the same file have the same memory.
    """
    given = config.host.state_folder
    if given is not None:
        return path.parent / given
    folder = Path(os.path.normpath(path)).parent
    return folder if folder.name == FOLDER else folder / FOLDER
