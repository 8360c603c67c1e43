"""Makes records of what a host says, or says what is wrong with it without showing it."""

import re
from collections.abc import Callable
from typing import Any

import attrs

from beaver_hostspecs import InvalidTurn

_NOT_A_MEMBER = re.compile(r".* is not a valid (\w+)", re.DOTALL)


def checked(kind: Callable[..., Any], *args: Any, **fields: Any) -> Any:
    """Return `kind(...)`; whatever does not fit is an `InvalidTurn` that shows no value."""
    try:
        return kind(*args, **fields)
    except RecursionError:
        raise InvalidTurn(f"{kind.__name__}: a value is nested too deeply, or holds itself") from None
    except (TypeError, ValueError) as error:
        raise InvalidTurn(f"{kind.__name__}: {_without_values(error)}") from None


def _without_values(error: Exception) -> str:
    """Return what is wrong; attrs gives the field and the value, of which only the field may be shown."""
    attribute = error.args[1] if len(error.args) > 1 else None
    if isinstance(attribute, attrs.Attribute):
        return f"`{attribute.name}` does not fit"
    # An enum shows the value that it does not know.
    enum = _NOT_A_MEMBER.fullmatch(str(error))
    return f"not a valid {enum[1]}" if enum else str(error)
