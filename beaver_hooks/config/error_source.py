"""Adds the file to a configuration error."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError

T = TypeVar("T")


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
