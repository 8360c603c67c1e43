"""Lists the settings of a configuration for display: every setting, no credential."""

import enum
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

import attrs

from beaver_hooks.config.environment import is_reference
from beaver_hooks.config.model import FAIL_CLOSED, Config, Memory
from beaver_hooks.config.paths import child, item, shown_variable
from beaver_hooks.config.type_hints import (
    OBJECTS,
    array_of,
    key_of,
    optional_of,
    origin_of,
    rest_field,
    settings_fields,
)
from beaver_hostspecs import Secret, scrub

Classes = Mapping[str, type]
"""The settings class of each known plugin, by the path of its section."""

NO_CLASSES: Classes = MappingProxyType({})

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = re.compile(r"[A-Za-z0-9.:-]{1,253}")
_WORD = re.compile(r"[A-Za-z0-9._/~+-]{1,200}")
_ADDRESS_KEYS = ("url", "uri", "address", "host", "endpoint", "server")
_PROGRAM_KEYS = ("command", "program", "executable", "cmd", "exec")
# As whole words only: a `transcript` is no script, and the first word of a program is shown.
_PROGRAM_WORDS = frozenset({"bin", "binary", "entrypoint", "interpreter", "run", "script", "shell"})
_SECRET_WORDS = frozenset(
    {
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "key",
        "passphrase",
        "password",
        "pin",
        "secret",
        "token",
    }
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#]*@|(?P<query>://[^\s?#]*[?#])[^\s]+")
_DIGITS = 16

MASK = "***"
"""Stands for a secret in the file itself, and for the texts and numbers of unknown plugins."""

LONGEST = 400
"""The shown characters of one text; a longer text is shown as its start and its end, with its length."""

HEAD, TAIL, AROUND = 240, 120, 40
DOTS = "\u2026"


@attrs.frozen(kw_only=True)
class Entry:
    """One setting of a configuration, in the form that can be shown.

    Attributes:
        path: its path.
        kind: `address`, `environment variable`, `program`, `secret`, or the type of its value.
        name: the host, variable or program; empty for the other kinds, and if it could show a credential.
        value: its value; `None` if that could show a credential.
        digest: equals that of another entry with the same salt if both have the same value.
    """

    path: str
    kind: str
    name: str = ""
    value: str | None = attrs.field(default=None, repr=False)
    digest: str = attrs.field(default="", eq=False, repr=False)

    @property
    def shown(self) -> str:
        """The value, or its kind and name if the value is hidden."""
        if self.value is None:
            return f"{self.kind} {self.name}".rstrip()
        return quoted(self.value) if self.kind == "text" else self.value

    def __str__(self) -> str:
        return f"{self.path}: {self.shown}"


def entries_of(raw: Mapping[str, Any], *, salt: str = "", classes: Classes = NO_CLASSES) -> tuple[Entry, ...]:
    """Return the settings of a configuration.

    Args:
        raw: the configuration.
        salt: the salt of the digests.
        classes: define which settings of plugins are secrets. The texts of other plugins are not shown.
    """
    effective = {key: value for key, value in raw.items() if key != "$schema"}
    return tuple(_Listing(salt, classes).entries(effective, "", "", Config)) if effective else ()


@attrs.frozen
class _Listing:
    """Lists the settings of one configuration."""

    salt: str
    classes: Classes

    def entries(self, value: object, path: str, key: str, kind: Any) -> Iterator[Entry]:
        """Yield the settings in `value`, which is at `path` under `key` and has the annotation `kind`."""
        if is_reference(value):
            yield self._entry(value, path, "environment variable", name=shown_variable(value["env"]) or "")
        elif isinstance(value, Mapping) and value:
            for name, each in value.items():
                inside = child(path, name)
                yield from self.entries(each, inside, name, _kind_within(kind, inside, name, self.classes))
        elif isinstance(value, list | tuple) and value and self._is_list_of_texts(value, key, kind):
            texts = ", ".join(quoted(_presentable(each)) for each in value)
            yield self._entry(value, path, "list", value=f"[{texts}]")
        elif isinstance(value, list | tuple) and value:
            for index, each in enumerate(value):
                # In a command given as a list only the first word names the program.
                name = "" if index and _is_program(key) else key
                yield from self.entries(each, item(path, index), name, _kind_in_list(kind))
        elif isinstance(value, str):
            yield self._text(value, path, key, optional_of(kind) or kind)
        else:
            hidden = _last_word(key) in _SECRET_WORDS
            yield self._entry(value, path, _sort(value), value=None if hidden else json.dumps(value))

    def _text(self, value: str, path: str, key: str, kind: Any) -> Entry:
        if kind is Secret or _last_word(key) in _SECRET_WORDS:
            return self._entry(value, path, "secret")
        if _is_program(key) or _is_programs(key):
            word = (value.split() or [""])[0]
            return self._entry(value, path, "program", name=word if _WORD.fullmatch(word) else "")
        declared = _is_text(kind)
        if _is_address(key) or (_SCHEME.match(value) and not declared):
            return self._entry(value, path, "address", name=_host(value))
        return self._entry(value, path, "text", value=_presentable(value) if declared else None)

    @staticmethod
    def _is_list_of_texts(value: Iterable[object], key: str, kind: Any) -> bool:
        """Whether a list can be shown as one: no secrets, addresses or programs, and only texts by its class."""
        special = _last_word(key) in _SECRET_WORDS or _is_program(key) or _is_programs(key) or _is_address(key)
        return not special and _is_text(_kind_in_list(kind)) and all(isinstance(each, str) for each in value)

    def _entry(self, whole: object, path: str, kind: str, *, name: str = "", value: str | None = None) -> Entry:
        digest = hashlib.sha256(f"{self.salt} {json.dumps(whole)}".encode("ascii")).hexdigest()[:_DIGITS]
        return Entry(path=path, kind=kind, name=name, value=value, digest=digest)


def _kind_within(kind: Any, path: str, key: str, classes: Classes) -> Any:
    """Return the annotation of the value under `key`, at `path`, in an object; `None` if it is unknown."""
    kind = optional_of(kind) or kind
    if isinstance(kind, type) and attrs.has(kind):
        try:
            fields = settings_fields(kind)
        except NameError:  # an annotation cannot be resolved
            return None
        known = {key_of(each): each.type for each in fields}
        return known.get(key, classes.get(path) if rest_field(kind) is not None else None)
    return (*get_args(kind), None, None)[1] if origin_of(kind) in OBJECTS else None


def _kind_in_list(kind: Any) -> Any:
    kind = optional_of(kind) or kind
    return (*get_args(kind), None)[0] if array_of(kind) is not None else None


def _is_text(kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return True
    return isinstance(kind, type) and (kind in {str, Path} or issubclass(kind, enum.Enum))


def _presentable(text: str) -> str:
    """Return `text` without known secrets, and with the user, query and fragment of each address in it masked."""
    mask = _CREDENTIALS.sub(lambda found: f"{found['scheme']}***@" if found["scheme"] else f"{found['query']}***", text)
    return scrub(mask)


def _host(value: str) -> str:
    """Return host and port of an address; never its user, path or query, which may hold credentials."""
    try:
        network = urlsplit(value if _SCHEME.match(value) else f"//{value}").netloc
    except ValueError:
        return ""
    host = network.rpartition("@")[2]
    return host if _HOST.fullmatch(host.replace("[", "").replace("]", "")) else ""


def _is_address(key: str) -> bool:
    return key.casefold().endswith(_ADDRESS_KEYS)


def _is_program(key: str) -> bool:
    """Whether the value of `key` is a program: that of `cmd`, `buildScript` or `run-cmd`, for example."""
    return key.casefold().endswith(_PROGRAM_KEYS) or _last_word(key) in _PROGRAM_WORDS


def _is_programs(key: str) -> bool:
    """Whether each item of the list at `key` is a program: `commands`, `preRunScripts`, for example."""
    return key.casefold().endswith("s") and _is_program(key[:-1])


def _last_word(key: str) -> str:
    words: list[str] = _WORDS.findall(key)
    return words[-1].casefold() if words else ""


def _sort(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping | list | tuple):
        return "empty"
    return "yes or no" if isinstance(value, bool) else "number"


def effective(config: Config, raw: Mapping[str, Any], classes: Classes, environment: Mapping[str, str]) -> Any:
    """Return every setting with its effective value.

    Args:
        config: the configuration.
        raw: the JSON data that it was made from.
        classes: the settings class of each known plugin, by the path of its section.
        environment: the variables in which `{"env": "NAME"}` is looked up.

    Raises:
        ConfigurationError: the section of a plugin does not fit.
    """
    made = _plain(attrs.evolve(config, memory=config.memory or Memory()), raw)
    for path, section in config.plugin_sections.items():
        if path not in classes:
            _put(made, path, _hidden(section))
    for path, cls in classes.items():
        settings: Any = config.settings(cls, path, environment=environment)
        _put(made, path, _plain(settings, config.section(path) or {}))
    for name, closed in config.plugins.fail_closed.items():
        _put(made, f"plugins.{name}", {FAIL_CLOSED: closed, **made["plugins"].get(name, {})})
    return made


def _put(made: dict[str, Any], path: str, section: object) -> None:
    root, _, name = path.partition(".")
    made[root][name] = section


def _plain(value: Any, raw: Any) -> Any:
    """Return a setting as plain data; `raw` is the file's data in its place."""
    if isinstance(value, Secret) or (value is None and is_reference(raw)):
        return dict(raw) if is_reference(raw) else MASK
    if attrs.has(type(value)):
        fields = settings_fields(type(value))
        return {key_of(each): _plain(getattr(value, each.name), _in(raw, key_of(each))) for each in fields}
    if isinstance(value, Mapping):
        return {key: _plain(each, _in(raw, key)) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return _listed(value, raw)
    return _scalar(value)


def _listed(value: Collection[Any], raw: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        return sorted((_plain(each, None) for each in value), key=str)
    rest = raw if isinstance(raw, list | tuple) else ()
    return [_plain(each, rest[index] if index < len(rest) else None) for index, each in enumerate(value)]


def _scalar(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _in(raw: Any, key: str) -> Any:
    return raw.get(key) if isinstance(raw, Mapping) else None


def _hidden(value: Any) -> Any:
    """Return the section of an unknown plugin, masked, as its secrets are unknown too."""
    if is_reference(value):
        return dict(value)
    if isinstance(value, Mapping):
        return {key: _hidden(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(each) for each in value]
    return value if value is None or isinstance(value, bool) else MASK


def quoted(text: str) -> str:
    """Return `text` in quotation marks; a longer one as its start, its end and its length."""
    if len(text) <= LONGEST:
        return f'"{_escaped(text)}"'
    return f"{_excerpt(text, 0, 0)} ({len(text):,} characters)"


def quoted_change(before: str, after: str) -> str:
    """Return two texts as `"before" -> "after"`; longer ones as the parts around their difference."""
    if max(len(before), len(after)) <= LONGEST:
        return f"{quoted(before)} -> {quoted(after)}"
    same = _alike(before, after)
    same_end = _alike(before[same:][::-1], after[same:][::-1])
    start, end = max(0, same - AROUND), max(0, same_end - AROUND)
    lengths = f"{len(before):,} -> {len(after):,} characters"
    return f"{_excerpt(before, start, end)} -> {_excerpt(after, start, end)} ({lengths})"


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (first, second) in pairs if first != second), min(len(one), len(other)))


def _excerpt(text: str, start: int, end: int) -> str:
    """Return `text` without `start` and `end` characters at its ends; cut a long rest in the middle."""
    middle = text[start : len(text) - end]
    if len(middle) > LONGEST:
        left_out = len(middle) - HEAD - TAIL
        shown = f"{_escaped(middle[:HEAD])}{DOTS} {left_out:,} more {DOTS}{_escaped(middle[-TAIL:])}"
    else:
        shown = _escaped(middle)
    return f'"{DOTS if start else ""}{shown}{DOTS if end else ""}"'


def _escaped(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)[1:-1]
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in written)
