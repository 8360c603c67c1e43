"""Which file an error is about."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError

T = TypeVar("T")


def located_in(file: Path | None, read: Callable[[], T]) -> T:
    """Return what `read` returns; a configuration error ends with the file, and its `path` stays the field's.

    Raises:
        ConfigurationError: that of `read`; as it is where there is no file.
    """
    try:
        return read()
    except ConfigurationError as error:
        if file is None:
            raise
        path, problem = error.path, f"{error.problem} (in {printable(str(file))})"
    # From here, so that nothing is chained to it.
    raise ConfigurationError(path, problem)
