"""Renamed settings: the old names that a configuration gives, and the remedy.

The classes of the host and of plugins declare the old name of a setting as `setting(..., was="oldName")`. It still
takes effect; a host and `beaver check` report its new name.
"""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import attrs

from beaver_hooks.config.paths import child, item
from beaver_hooks.config.type_hints import (
    OBJECTS,
    array_of,
    key_of,
    old_keys_of,
    optional_of,
    origin_of,
    settings_fields,
)

COMMAND = "beaver config migrate"
"""The command that renames them in the file."""


@attrs.frozen(kw_only=True)
class Renamed:
    """A setting that a configuration gives under its old name.

    Attributes:
        old: its path with the old name.
        new: its path with the new name.
    """

    old: str
    new: str

    @property
    def text(self) -> str:
        """The rename in a few words."""
        return f"`{self.old}` is called `{self.new}` now"

    def __str__(self) -> str:
        return f"{self.text} and goes on working for a while; `{COMMAND}` renames it in the file"


def renamed_in(cls: type, value: Any, path: str = "") -> tuple[Renamed, ...]:
    """Return the settings that `value`, which is at `path` and fits `cls`, gives under old names."""
    return tuple(_found(cls, value, path))


def _found(kind: Any, value: Any, path: str) -> Iterator[Renamed]:
    kind = optional_of(kind) or kind
    if isinstance(value, Mapping) and isinstance(kind, type) and attrs.has(kind):
        for attribute in settings_fields(kind):
            new = child(path, key_of(attribute))
            old = [each for each in old_keys_of(attribute) if each in value]
            yield from (Renamed(old=child(path, each), new=new) for each in old)
            for key in (key_of(attribute), *old):
                yield from _found(attribute.type, value.get(key), child(path, key))
    elif isinstance(value, Mapping) and origin_of(kind) in OBJECTS:
        for key, each in value.items():
            yield from _found((*get_args(kind), None, None)[1], each, child(path, key))
    elif isinstance(value, list | tuple) and array_of(kind) is not None:
        for index, each in enumerate(value):
            yield from _found((*get_args(kind), None)[0], each, item(path, index))
