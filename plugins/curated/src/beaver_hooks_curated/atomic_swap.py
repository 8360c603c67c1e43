"""Replaces a file by a new one and, where the system can, keeps the old one.

A plain rename destroys an edit that the user saved a moment before. Linux can exchange two names in one step; then
the replaced file can be read afterwards.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

_HERE = -100
_EXCHANGE = 2

Exchange = Callable[[int, bytes, int, bytes, int], int]


def put(new: Path, place: Path) -> bool:
    """Put `new` at `place`, atomically. `True`: the old file is at `new` now; `False`: it is lost, if there was one.

    Raises:
        OSError: it could not be done.
    """
    exchange = _exchange()
    if exchange is not None and exchange(_HERE, os.fsencode(new), _HERE, os.fsencode(place), _EXCHANGE) == 0:
        return True
    # The place is empty, or this system or file system cannot exchange.
    new.replace(place)
    return False


@cache
def _exchange() -> Exchange | None:
    try:
        function = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function
