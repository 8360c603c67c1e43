"""Names a place in the configuration for errors, without showing its value."""

import re

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.-]{0,39}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_MOST_DIGITS = 4


def child(path: str, key: str) -> str:
    """Return the path of the value under `key` in the object at `path`."""
    name = shown_name(key)
    return f"{path}.{name}" if path else name


def item(path: str, index: int) -> str:
    """Return the path of an element of the list at `path`."""
    return f"{path}[{index}]"


def shown_name(name: str) -> str:
    """Return `name` if it looks like a name, else `[?]`: a credential can stand in the place of a key."""
    return name if _NAME.fullmatch(name) and _few_digits(name) else "[?]"


def shown_variable(name: str) -> str | None:
    """Return the name of an environment variable if it looks like one, else `None`."""
    return name if _VARIABLE.fullmatch(name) and _few_digits(name) else None


def printable(text: str) -> str:
    """Return `text`, a file name for example, with control characters for a terminal replaced by `?`."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _few_digits(name: str) -> bool:
    return sum(character.isdigit() for character in name) <= _MOST_DIGITS
