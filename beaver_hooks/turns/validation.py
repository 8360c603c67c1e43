"""Makes records from the arguments of a host's caller; an error names the fault without showing a value."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from beaver_hooks.config.suggestions import meant_or_known
from beaver_hostspecs import InvalidTurn


def checked(kind: Callable[..., Any], /, *args: Any, **fields: Any) -> Any:
    """Return `kind(...)`, or raise `InvalidTurn` for invalid arguments. The errors of the records show no value."""
    try:
        return kind(*args, **fields)
    except RecursionError:
        raise InvalidTurn(f"{kind.__name__}: a value is nested too deeply, or holds itself") from None
    except (TypeError, ValueError) as error:
        raise InvalidTurn(f"{kind.__name__}: {_names_at_fault(kind, fields) or error}") from None


def checked_id(turn_id: object) -> str:
    """Return the id of a turn, or raise `InvalidTurn` unless it is a str."""
    if not isinstance(turn_id, str):
        raise InvalidTurn("the id of a turn must be a str")
    return turn_id


def _names_at_fault(kind: Callable[..., Any], given: Mapping[str, object]) -> str | None:
    """Return the fault in the names of the fields, or `None` if they are right."""
    if not (isinstance(kind, type) and attrs.has(kind)):
        return None
    fields = {each.alias: each for each in attrs.fields(kind) if each.name == each.alias}
    for name in given:
        if name not in fields and f"_{name}" not in attrs.fields_dict(kind):
            return f"there is no field `{name}`{meant_or_known(name, fields, 'fields')}"
    missing = [name for name, each in fields.items() if each.default is attrs.NOTHING and name not in given]
    return f"{_listed(missing)} must be given" if missing else None


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)
