"""`beaver why`: one turn, explained by its receipt. Needs no plugin."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

from beaver_hooks.audit.database import RECEIPTS_KEPT
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.cli.absence import Absence
from beaver_hooks.cli.common import common, configured
from beaver_hooks.cli.receipt_texts import receipt_text
from beaver_hooks.cli.state import ambiguous, has_trail, keyed_hashes, nothing_yet, recorded_turns
from beaver_hooks.cli.terminal import show, waiting
from beaver_hooks.config import Config
from beaver_hooks.config.paths import printable
from beaver_hooks.receipts.receipts import Receipt
from beaver_hostspecs import AuditUnavailable, DropReason, UnknownTurn

if TYPE_CHECKING:
    from cattrs import Converter


NEWEST = "last"
MOST_EVENTS = 1_000
"""Audit events, the newest ones, among which those about a turn are looked for."""


BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors that reading arbitrary data can raise."""


@click.command(name="why")
@click.argument("turn", default=NEWEST)
@click.option("--json", "as_json", is_flag=True, help="Print the stored receipt, one JSON object.")
@common
def command(turn: str, *, as_json: bool, config: Path | None) -> None:
    """Explain a turn: the recalled, injected and kept memories, with the reasons.

    TURN is the id of a turn, or its beginning; without it, the newest turn is explained. Receipts hold no content:
    `beaver sessions show` shows the messages.

    Example: beaver why turn-8a8df2af
    """
    loaded = configured(config)
    folder = loaded.state_folder
    if not has_trail(folder):
        raise UnknownTurn(nothing_yet(folder))
    reader = TrailReader(folder)
    with waiting("Looking for the receipt"):
        name, receipt = _newest(reader, folder) if turn == NEWEST else _named(reader, folder, turn)
        health = {} if as_json else reader.health()
        later = () if as_json else later_events(reader, folder, name)
    show(json.dumps(dict(receipt)) if as_json else explanation(name, receipt, health, loaded.config, later))


def later_events(reader: TrailReader, folder: Path, turn: str) -> list[AuditEvent]:
    """Return the audit events of plugins that name a turn, by its recorded id, after its receipt was closed."""
    names = {turn, *keyed_hashes(folder, turn)}
    return [each for each in reader.tail(MOST_EVENTS) if not names.isdisjoint(_turns_of(each))]


def _turns_of(event: AuditEvent) -> set[str]:
    turns = event.facts.get("turns")
    # A keyed hash has the length of the id behind it.
    return {str(each).partition("/")[0] for each in turns} if isinstance(turns, list) else set()


def explanation(
    name: str,
    receipt: Mapping[str, Any],
    health: Mapping[str, Mapping[str, Any]],
    config: Config,
    later: Sequence[AuditEvent] = (),
) -> str:
    """Return a receipt in words, with what plugins reported about the turn afterwards.

    Raises:
        AuditUnavailable: the receipt is damaged, or of a newer version.
    """
    try:
        read = read_receipt(receipt)
    except ValueError:
        raise AuditUnavailable(
            f"The receipt of {printable(name)} is damaged, or was written by a newer version; `beaver why --json`"
            " shows it as it is, and `beaver doctor` examines the database."
        ) from None
    return receipt_text(read, health, Absence.under(config), later)


def _newest(reader: TrailReader, folder: Path) -> tuple[str, Mapping[str, Any]]:
    for name in reader.recorded_turns(1):
        if (receipt := reader.receipt(name)) is not None:
            return name, receipt
    raise UnknownTurn(nothing_yet(folder))


def _named(reader: TrailReader, folder: Path, given: str) -> tuple[str, Mapping[str, Any]]:
    """Return the receipt of exactly this id, else of the turn whose id begins with it."""
    for name in recorded_turns(folder, given):
        receipt = reader.receipt(name)
        if receipt is not None:
            return name, receipt
    found = [name for name in reader.recorded_turns(RECEIPTS_KEPT) if name.startswith(given)]
    if not found:
        raise UnknownTurn(_not_kept(folder, given))
    if len(found) > 1:
        raise UnknownTurn(ambiguous(given, found, "turn"))
    return found[0], reader.receipt(found[0]) or {}


def _not_kept(folder: Path, given: str) -> str:
    return (
        f"{printable(str(folder))} has no receipt of the turn `{printable(given)}`: the turn did not run here, is not"
        f" over yet, or is older than the newest {RECEIPTS_KEPT:,} turns. If it ran with another configuration, name"
        " that with --config; `beaver audit tail` lists the turns."
    )


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
