"""Read-only copies of plain data, so that no plugin changes the data of another one."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")


def freeze(value: Any) -> Any:
    """Return a read-only copy of plain data: mappings, lists and sets all the way down, other values as they are."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(value)
    return value


def thaw(value: Any) -> Any:
    """Return plain dicts and lists for frozen data, for example to write it as JSON."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple | frozenset):
        return [thaw(item) for item in value]
    return value


def members(values: Iterable[T], kind: type[T]) -> tuple[T, ...]:
    """Return `values` as a tuple.

    Raises:
        TypeError: one of them is no `kind`, or `values` is one str. Shows no value.
    """
    if isinstance(values, str):
        raise TypeError(f"expected several {kind.__name__}, not one str")
    collected = tuple(values)
    for item in collected:
        if not isinstance(item, kind):
            raise TypeError(f"expected {kind.__name__}, not {type(item).__name__}")
    return collected


def texts(values: Iterable[str]) -> tuple[str, ...]:
    """Return `values` as a tuple of str; see `members`."""
    return members(values, str)
