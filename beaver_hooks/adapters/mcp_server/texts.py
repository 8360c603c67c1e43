"""Texts for a client: without secrets, and valid in JSON and UTF-8. Pure."""

from collections.abc import Mapping

from beaver_hooks.text import presentable
from beaver_hostspecs import scrub


def clean(text: str) -> str:
    """Return `text` in a form that any client may get."""
    return presentable(scrub(str.__str__(text)))


def clean_all(value: object) -> object:
    """Return plain data with every text in it clean."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_all(item) for item in value]
    return value
