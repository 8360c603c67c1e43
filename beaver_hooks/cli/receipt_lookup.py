"""Receipts as they are kept, read back into records."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from beaver_hooks.receipts.receipts import Receipt
from beaver_hostspecs import DropReason

if TYPE_CHECKING:
    from cattrs import Converter

BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading anything at all can end in."""


def read_receipt(body: Mapping[str, Any]) -> Receipt:
    """Return the receipt that `beaver_hooks.receipts.receipts.to_json` has written.

    Fields that a newer version has written are passed over.

    Raises:
        ValueError: this is no receipt.
    """
    try:
        return _converter().structure(body, Receipt)
    except BROKEN as error:
        raise ValueError("no receipt") from error


@cache
def _converter() -> "Converter":
    from cattrs import Converter  # noqa: PLC0415 - only who explains a turn pays for it

    converter = Converter(detailed_validation=False)
    converter.register_structure_hook(datetime, lambda value, _: _moment(value))
    converter.register_structure_hook(str, lambda value, _: str.__str__(value))
    # A str itself: the hook above would take any other for it.
    converter.register_structure_hook(DropReason, lambda value, _: DropReason(value))
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    converter.register_structure_hook_func(_is_literal, _one_of)
    return converter


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _one_of(value: object, kind: Any) -> object:
    # The stock hook raises an error that is in no family but its own.
    if value not in get_args(kind):
        raise ValueError("none of them")
    return value


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    return moment.astimezone(UTC)
