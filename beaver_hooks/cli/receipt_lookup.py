"""Conversion of stored receipts back into records."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from beaver_hooks.receipts.receipts import Receipt
from beaver_hostspecs import DropReason

if TYPE_CHECKING:
    from cattrs import Converter

BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors that reading arbitrary data can raise."""


def read_receipt(body: Mapping[str, Any]) -> Receipt:
    """Return the receipt that `beaver_hooks.receipts.receipts.to_json` has written.

    Fields of a newer version are ignored.

    Raises:
        ValueError: this is no receipt.
    """
    try:
        return _converter().structure(body, Receipt)
    except BROKEN as error:
        raise ValueError("no receipt") from error


@cache
def _converter() -> "Converter":
    from cattrs import Converter  # noqa: PLC0415 - needed only to explain a turn

    converter = Converter(detailed_validation=False)
    converter.register_structure_hook(datetime, lambda value, _: _moment(value))
    converter.register_structure_hook(str, lambda value, _: str.__str__(value))
    # It is a str itself, and the hook above would accept any other str for it.
    converter.register_structure_hook(DropReason, lambda value, _: DropReason(value))
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    converter.register_structure_hook_func(_is_literal, _one_of)
    return converter


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _one_of(value: object, kind: Any) -> object:
    # The stock hook raises an error that is not in `BROKEN`.
    if value not in get_args(kind):
        raise ValueError("none of them")
    return value


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    return moment.astimezone(UTC)
