"""Names a place in the configuration for errors, without showing its value."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from beaver_hostspecs import ConfigurationError

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.-]{0,39}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_MOST_DIGITS = 4

_LONGEST = 64

T = TypeVar("T")


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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a parenthesis that names the closest known word, or an empty text if none is close."""
    # Imported late, as a configuration without a typo does not need it.
    from difflib import get_close_matches  # noqa: PLC0415

    if len(word) > _LONGEST:
        return ""  # the comparison takes quadratic time, and so long a word is no typo
    by_folded = {name.casefold(): name for name in known}
    closest = get_close_matches(word.casefold(), by_folded, n=1)
    return f" (did you mean `{by_folded[closest[0]]}`?)" if closest else ""


def meant_or_known(word: str, known: Iterable[str], noun: str) -> str:
    """Return a parenthesis that names the closest known word, or a list of all known words when none is close."""
    names = list(known)
    listed = ", ".join(f"`{name}`" for name in names)
    return did_you_mean(word, names) or (f"; the {noun} are {listed}" if names else "")


def located_in(file: Path | None, read: Callable[[], T]) -> T:
    """Return the result of `read`; add the file to the text of a configuration error, and keep the field's `path`.

    Raises:
        ConfigurationError: that of `read`; unchanged without a file.
    """
    try:
        return read()
    except ConfigurationError as error:
        if file is None:
            raise
        path, problem = error.path, f"{error.problem} (in {printable(str(file))})"
    # Raised outside the `except` block, so that no other error is chained to it.
    raise ConfigurationError(path, problem)
