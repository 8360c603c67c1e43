"""What a person reviews before a configuration that was merely found takes effect."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from beaver_hooks.config.environment import is_reference
from beaver_hooks.config.paths import child, item, printable, shown_variable

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = re.compile(r"[A-Za-z0-9.:-]{1,253}")
_WORD = re.compile(r"[A-Za-z0-9._/~+-]{1,200}")
_ADDRESS_KEYS = ("url", "uri", "address", "host", "endpoint", "server")
_PROGRAM_KEYS = ("command", "program", "executable", "cmd", "exec")
# As whole words only: a `transcript` is no script, and of what is taken for a program the first word is shown.
_PROGRAM_WORDS = frozenset({"bin", "binary", "entrypoint", "interpreter", "run", "script", "shell"})
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@attrs.frozen(kw_only=True)
class Entry:
    """One setting of a configuration, without its value.

    Attributes:
        path: where it is.
        kind: `address`, `environment variable`, `program`, or what sort of value it is.
        name: the host, variable or program; empty for the other kinds, and where showing it could show a
            credential.
    """

    path: str
    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.kind} {self.name}".rstrip()


@attrs.frozen(kw_only=True)
class Summary:
    """A configuration as far as it can be shown: paths and kinds, and what it would use.

    Attributes:
        path: the real path of the file.
        changed: whether an earlier version of it was confirmed.
        entries: its settings, in the order of the file.
    """

    path: Path
    changed: bool
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return "\n".join([printable(str(self.path)), *(f"  {entry}" for entry in self.entries)])


def summarise(raw: Mapping[str, Any], path: Path, *, changed: bool) -> Summary:
    """Return what to show of a configuration."""
    effective = {key: value for key, value in raw.items() if key != "$schema"}
    return Summary(path=path, changed=changed, entries=tuple(_entries(effective, "", "")))


def _entries(value: object, path: str, key: str) -> Iterator[Entry]:
    if is_reference(value):
        yield Entry(path=path, kind="environment variable", name=shown_variable(value["env"]) or "")
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _entries(each, child(path, name), name)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            # Of a command given as a list only the first word names the program.
            yield from _entries(each, item(path, index), "" if index and _is_program(key) else key)
    elif isinstance(value, str):
        yield _text(value, path, key)
    else:
        yield Entry(path=path, kind=_kind(value))


def _text(value: str, path: str, key: str) -> Entry:
    if _is_program(key) or _is_programs(key):
        word = (value.split() or [""])[0]
        return Entry(path=path, kind="program", name=word if _WORD.fullmatch(word) else "")
    if _SCHEME.match(value) or key.casefold().endswith(_ADDRESS_KEYS):
        return Entry(path=path, kind="address", name=_host(value))
    return Entry(path=path, kind="text")


def _host(value: str) -> str:
    """Return host and port of an address; never its user, path or query, where credentials travel."""
    try:
        network = urlsplit(value if _SCHEME.match(value) else f"//{value}").netloc
    except ValueError:
        return ""
    host = network.rpartition("@")[2]
    return host if _HOST.fullmatch(host.replace("[", "").replace("]", "")) else ""


def _is_program(key: str) -> bool:
    """Whether what stands at `key` is started: a `cmd` is, a `buildScript` and a `run-cmd`."""
    words = [word.casefold() for word in _WORDS.findall(key)]
    return key.casefold().endswith(_PROGRAM_KEYS) or (bool(words) and words[-1] in _PROGRAM_WORDS)


def _is_programs(key: str) -> bool:
    """Whether each of what stands at `key` is started by itself: `commands`, `preRunScripts`."""
    return key.casefold().endswith("s") and _is_program(key[:-1])


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    return "yes or no" if isinstance(value, bool) else "number"
