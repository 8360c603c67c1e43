"""Claude Code's settings as bytes: finds, adds and removes the entries of Beaver Hooks ("our entries"). Pure.

1. All other entries stay unchanged and in order.
2. A file of another shape than Claude Code's settings is refused and never written.
3. An entry is ours if it runs our client, wherever that is or was installed.
"""

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import attrs

from beaver_hooks.config.paths import shown_name
from beaver_hostspecs import ConfigurationError

CLIENT = ("beaver_hooks", "coding_agents", "claude_code", "client.py")
"""The end of the path of our client, in any installation."""

FLAGS = ["-I", "-S"]
"""The options of the interpreter before the client."""

HOOKS = "hooks"


@attrs.frozen
class _Number:
    """A number as it is written, so that another program reads the same digits."""

    digits: str


@attrs.frozen(kw_only=True)
class Wanted:
    """The wanted entry of one event.

    Attributes:
        seconds: the time limit of our client.
        start: whether the client starts a resident if none listens.
    """

    seconds: float
    start: bool = False

    @property
    def timeout(self) -> int:
        """The seconds after which Claude Code ends the client: later than the client ends itself."""
        return math.ceil(self.seconds) + 2


EVENTS: Mapping[str, Wanted] = {
    "SessionStart": Wanted(seconds=6, start=True),
    "UserPromptSubmit": Wanted(seconds=6, start=True),
    "PostToolUse": Wanted(seconds=2),
    "PostToolUseFailure": Wanted(seconds=2),
    "Stop": Wanted(seconds=2),
    "PreCompact": Wanted(seconds=11),
    "SessionEnd": Wanted(seconds=1),
}
"""The events. A prompt waits a second longer than the default deadline of a plugin, and a compaction a second longer
than two of them: a queued call ends, and then the hook. Without a resident, nothing waits to be stored."""


@attrs.frozen(kw_only=True)
class Entries:
    """Our entries in a file: the commands per event, with repetitions."""

    commands: Mapping[str, tuple[str, ...]]
    switched_off: bool

    @property
    def complete(self) -> bool:
        """Whether each event has one entry."""
        return {name: len(found) for name, found in self.commands.items()} == dict.fromkeys(EVENTS, 1)

    @property
    def missing(self) -> tuple[str, ...]:
        """The events that have none."""
        return tuple(name for name in EVENTS if name not in self.commands)

    @property
    def programs(self) -> frozenset[str]:
        """The interpreters and clients that they run."""
        commands = [shlex.split(each) for found in self.commands.values() for each in found]
        return frozenset(word for words in commands for word in (words[0], _client(words)) if word)

    @property
    def options(self) -> tuple[str, ...]:
        """The options after the client in the first entry; empty without an entry."""
        words = next((shlex.split(each) for found in self.commands.values() for each in found), [])
        return tuple(words[2 + len(FLAGS) :])


def command(interpreter: str, client: str, wanted: Wanted, options: Sequence[str]) -> str:
    """Return the command of an entry: a line for a shell."""
    start = ["--start"] if wanted.start else []
    return shlex.join([interpreter, *FLAGS, client, f"--seconds={wanted.seconds:g}", *start, *options])


def put_in(content: bytes, commands: Mapping[str, str]) -> bytes:
    """Return the file with these entries, one per event, in place of our present entries.

    A file that has exactly these comes back unchanged.

    Raises:
        ConfigurationError: it is not what Claude Code reads.
    """
    if _ours(_parsed(content)) == {name: (each,) for name, each in commands.items()}:
        return content
    settings = _parsed(take_out(content))
    hooks = settings.setdefault(HOOKS, {})
    for name, each in commands.items():
        entry = {"type": "command", "command": each, "timeout": EVENTS[name].timeout}
        hooks.setdefault(name, []).append({"hooks": [entry]})
    return _written(settings, content)


def take_out(content: bytes) -> bytes:
    """Return the file without our entries and the containers that they leave empty; unchanged if it has none.

    Raises:
        ConfigurationError: the file is no settings file of Claude Code.
    """
    settings = _parsed(content)
    if not _ours(settings):
        return content
    hooks = settings[HOOKS]
    for name, groups in list(hooks.items()):
        kept = [each for each in map(_without_ours, groups) if each is not None]
        if kept or not groups:
            hooks[name] = kept
        else:
            del hooks[name]
    if not hooks:
        del settings[HOOKS]
    return _written(settings, content)


def look(content: bytes) -> Entries:
    """Return our entries in a file.

    Raises:
        ConfigurationError: the file is no settings file of Claude Code.
    """
    settings = _parsed(content)
    return Entries(commands=_ours(settings), switched_off=settings.get("disableAllHooks") is True)


def is_empty(content: bytes) -> bool:
    """Whether a file has no settings."""
    return not _parsed(content)


def _ours(settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    entries = {
        name: tuple(each["command"] for group in groups for each in group[HOOKS] if _is_ours(each))
        for name, groups in settings.get(HOOKS, {}).items()
    }
    return {name: found for name, found in entries.items() if found}


def _without_ours(group: dict[str, Any]) -> dict[str, Any] | None:
    """Return a group without our entries; `None` if it had no others."""
    kept = [each for each in group[HOOKS] if not _is_ours(each)]
    return None if group[HOOKS] and not kept else {**group, HOOKS: kept}


def _is_ours(entry: Mapping[str, Any]) -> bool:
    line = entry.get("command")
    if not isinstance(line, str):
        return False
    try:
        return _client(shlex.split(line)) is not None
    except ValueError:  # an unclosed quote: not one of our entries
        return False


def _client(words: Sequence[str]) -> str | None:
    """Return the path of our client, if it is the program that a command runs."""
    *before, path = words[: 2 + len(FLAGS)] or [""]
    return path if before[1:] == FLAGS and tuple(re.split(r"[/\\]", path)[-4:]) == CLIENT else None


def _parsed(content: bytes) -> dict[str, Any]:
    """Return the settings, after a check that they can be written back."""
    if not content.strip():
        return {}
    try:
        text = content.decode()
        settings = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_Number, parse_int=_Number
        )
    except (ValueError, RecursionError):
        pass
    else:
        if not isinstance(settings, dict):
            raise _fault("is not a JSON object")
        if not _has_shape(settings.get(HOOKS, {})):
            raise _fault("has `hooks` in a form that Claude Code does not document")
        return settings
    raise _fault("is not JSON")


def _has_shape(hooks: object) -> bool:
    """Whether `hooks` is an object of lists of groups, each with a list of objects."""
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        return False
    groups = [group for each in hooks.values() for group in each]
    if not all(isinstance(group, dict) and isinstance(group.get(HOOKS), list) for group in groups):
        return False
    return all(isinstance(entry, dict) for group in groups for entry in group[HOOKS])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a repeated key, which would lose a value."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _fault(f"has the key {shown_name(key)} twice in one object")
        found[key] = value
    return found


def _refuse(_: str) -> NoReturn:
    raise ValueError("not a JSON number")


def _written(settings: Mapping[str, Any], like: bytes) -> bytes:
    """Return the settings as bytes, with the indentation, line ends and last line of the original file."""
    found = re.search(rb"\n([ \t]+)\S", like)
    indent = found[1].decode() if found else "  "
    end = "\n" if like.endswith(b"\n") or not like.strip() else ""
    try:
        content = (_text(settings, indent, ascii_only=False) + end).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape and UTF-8 cannot write
        content = (_text(settings, indent, ascii_only=True) + end).encode()
    return content.replace(b"\n", b"\r\n") if b"\r\n" in like else content


def _text(settings: Mapping[str, Any], indent: str, *, ascii_only: bool) -> str:
    """Return the settings as text, with each number as it was written."""
    # Numbers go in as strings with a mark that occurs nowhere else, and then lose the mark and the quotes.
    mark, plain = "#", json.dumps(settings, default=lambda each: each.digits)
    while mark in plain:
        mark += "#"
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only, default=lambda each: mark + each.digits)
    return re.sub(f'"{mark}([^"]+)"', r"\1", text)


def _fault(problem: str) -> ConfigurationError:
    return ConfigurationError(
        "",
        f"the settings file of Claude Code {problem}; nothing was changed; correct the file, and run the command again",
    )
