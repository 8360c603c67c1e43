"""Edits a configuration file: checks each edit, writes the file atomically, and confirms it."""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.entries import entries_of
from beaver_hooks.config.environment import is_reference
from beaver_hooks.config.loader import SettingsClasses
from beaver_hooks.config.locations import ConfigLocation
from beaver_hooks.config.model import Config
from beaver_hooks.config.parser import build_config, parse_json, read_bytes
from beaver_hooks.config.paths import located_in, printable
from beaver_hooks.config.spans import set_value, unset_value, value_at
from beaver_hooks.config.summaries import Change, compare
from beaver_hooks.config.trust import confirm, fingerprint, record_path, recorded_fingerprint
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import ConfigurationError, ConfigurationNotTrusted
from beaver_toolkit.files import replace, sweep
from beaver_toolkit.locks import LocksMissing, locked

UNSET = "not-set-yet"
"""Stands for an unset variable while a configuration is checked, as the variable need not be set yet."""

_BOM = "\ufeff"


@attrs.frozen(kw_only=True)
class Step:
    """One change of a setting.

    Attributes:
        path: the path of the setting.
        value: its new value.
        remove: whether to remove it instead.
    """

    path: tuple[str, ...]
    value: Any = None
    remove: bool = False


@attrs.frozen(kw_only=True)
class ConfigEdit:
    """The result of an edit.

    Attributes:
        config: the configuration after the edit.
        changes: the changed settings.
        differs: whether the text of the file changes.
        path: the file.
    """

    config: Config
    changes: tuple[Change, ...]
    differs: bool
    path: Path


@attrs.frozen(kw_only=True)
class _Document:
    """A configuration file as text and as data."""

    text: str
    raw: Mapping[str, Any]
    mode: int
    made: bool
    confirmed: bool


Steps = Callable[[Config], Iterable[Step]]
Check = Callable[[Config, Mapping[str, str]], None]


def edit_config(
    found: ConfigLocation,
    steps: Steps,
    *,
    environment: Mapping[str, str],
    classes: SettingsClasses,
    check: Check,
    write: bool = True,
) -> ConfigEdit:
    """Edit a configuration file, which is made if it is missing, and confirm its new content.

    A file that the caller did not name must have been confirmed before. A named file keeps its state of confirmation.

    Args:
        found: the file.
        steps: returns the changes to a configuration.
        environment: the variables in which `{"env": "NAME"}` is looked up; a variable need not be set.
        classes: returns the settings classes of the plugins.
        check: raises if a section of a plugin is wrong.
        write: whether to write the file.

    Raises:
        ConfigurationError: the file cannot be read or written, or would be wrong after the edit.
        ConfigurationNotTrusted: the file was not named, and its present content is not confirmed.
        KeyError: a setting to remove does not exist.
    """
    with _alone(environment):
        before = _read(found, environment)
        after = _edited(before, steps(_built(before.raw, found.path, environment)), found.path)
        config = _built(after.raw, found.path, environment)
        check(config, with_placeholders(after.raw, environment))
        known = classes(config)
        changes = compare(*(entries_of(each.raw, classes=known) for each in (before, after)))
        differs = after.text != before.text
        if write and differs:
            _write(after, found.path)
            if after.confirmed:
                confirm(found.path, after.raw, environment, known)
        return ConfigEdit(config=config, changes=changes, differs=differs, path=found.path)


def with_placeholders(raw: Mapping[str, Any], environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return an environment in which every variable that a configuration names is set."""
    return {**environment, **{name: environment.get(name) or UNSET for name in _variables(raw)}}


def _variables(value: object) -> Iterator[str]:
    if is_reference(value):
        yield value["env"]
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _variables(each)


def _built(raw: Mapping[str, Any], path: Path, environment: Mapping[str, str]) -> Config:
    return build_config(raw, environment=with_placeholders(raw, environment), source=path)


def _read(found: ConfigLocation, environment: Mapping[str, str]) -> _Document:
    name = printable(str(found.path))
    if found.path.is_symlink():
        raise ConfigurationError("", f"{name} is a symbolic link, which is never written through; name its target")
    if not os.path.lexists(found.path):
        return _Document(text="{}", raw={}, mode=0o600, made=True, confirmed=True)
    content = read_bytes(found.path)
    raw = located_in(found.path, partial(parse_json, content))
    confirmed = recorded_fingerprint(found.path, environment) == fingerprint(raw)
    if not (found.given or confirmed):
        problem = (
            f"the configuration {name} was not confirmed in its present form; review it with `beaver trust`, and run"
            " the command again"
        )
        raise ConfigurationNotTrusted("", problem)
    mode = stat.S_IMODE(found.path.stat().st_mode)
    return _Document(text=content.decode("utf-8"), raw=raw, mode=mode, made=False, confirmed=confirmed)


def _edited(document: _Document, steps: Iterable[Step], path: Path) -> _Document:
    bom = _BOM if document.text.startswith(_BOM) else ""
    text, wanted = document.text.removeprefix(_BOM), json.loads(json.dumps(document.raw))
    for step in steps:
        text = _step(text, wanted, step)
    if document.made:
        text = f"{json.dumps(wanted, indent=2, ensure_ascii=False)}\n"
    raw = located_in(path, partial(parse_json, text))
    if json.dumps(raw) != json.dumps(wanted):
        raise ConfigurationError(
            "", f"{printable(str(path))} cannot be edited without losing its formatting; edit it by hand"
        )
    return attrs.evolve(document, text=bom + text, raw=raw)


def _step(text: str, wanted: dict[str, Any], step: Step) -> str:
    """Return `text` after a step, and apply the step to `wanted` too."""
    if step.remove:
        path = _emptied(wanted, step.path)
        del value_at(wanted, path[:-1])[path[-1]]
        return unset_value(text, path)
    _put(wanted, step.path, step.value)
    return set_value(text, step.path, step.value)


def _emptied(wanted: dict[str, Any], path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path to remove for a value: that of the outermost object that would be empty without the value.

    Raises:
        KeyError: the value does not exist.
    """
    value_at(wanted, path)
    while len(path) > 1 and len(value_at(wanted, path[:-1])) == 1:
        path = path[:-1]
    return path


def _put(holder: dict[str, Any], path: Sequence[str], value: object) -> None:
    for key in path[:-1]:
        if not isinstance(holder.get(key), dict):
            holder[key] = {}
        holder = holder[key]
    holder[path[-1]] = value


def _write(document: _Document, path: Path) -> None:
    try:
        if document.made:
            make_state_folder(path.parent)
        sweep(path)
        replace(path, document.text.encode("utf-8"), mode=document.mode)
    except OSError as error:
        problem = f"{printable(str(path))} cannot be written ({error.strerror}); check the permissions of its folder"
    else:
        return
    raise ConfigurationError("", problem)


@contextmanager
def _alone(environment: Mapping[str, str]) -> Iterator[None]:
    """Hold the lock of all edits of this user. The lock file is beside the record, not beside the configuration."""
    folder = record_path(environment).parent
    with ExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(locked(folder / "edits.lock"))
        except LocksMissing:
            problem = "editing a configuration needs file locks, which this system lacks; edit the file by hand"
        except OSError as error:
            problem = (
                f"{printable(str(folder))} cannot be written ({error.strerror}); check its permissions, or set"
                " XDG_STATE_HOME"
            )
        else:
            yield
            return
    raise ConfigurationError("", problem)
