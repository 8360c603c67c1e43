"""Examines the databases of a memory that need not be open."""

from pathlib import Path

from beaver_memory.errors import StoreError
from beaver_memory.store.sqlite.examination import Examination, examine

__all__ = ["Examination", "examined"]


def examined(path: Path) -> Examination:
    """Return the examination of a database; a fault that stops it is itself a problem.

    Raises:
        StoreError: it cannot be read for a reason other than damage; says why.
    """
    try:
        return examine(path)
    except StoreError as error:
        if error.category != "corrupt":
            raise
        return Examination(memories=0, examined=0, problems=(str(error),))
