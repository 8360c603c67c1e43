"""`beaver why`: one turn, explained by its receipt. Needs no plugin."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from beaver_hooks.audit.database import RECEIPTS_KEPT
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.cli.absence import Absence
from beaver_hooks.cli.common import common, configured
from beaver_hooks.cli.receipt_lookup import read_receipt
from beaver_hooks.cli.receipt_texts import receipt_text
from beaver_hooks.cli.state import ambiguous, has_trail, keyed_hashes, nothing_yet, recorded_turns
from beaver_hooks.cli.terminal import show, waiting
from beaver_hooks.config import Config
from beaver_hooks.config.paths import printable
from beaver_hostspecs import AuditUnavailable, UnknownTurn

NEWEST = "last"
MOST_EVENTS = 1_000
"""Audit events, the newest ones, among which those about a turn are looked for."""

Receipt = Mapping[str, Any]


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
    receipt: Receipt,
    health: Mapping[str, Receipt],
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


def _newest(reader: TrailReader, folder: Path) -> tuple[str, Receipt]:
    for name in reader.recorded_turns(1):
        if (receipt := reader.receipt(name)) is not None:
            return name, receipt
    raise UnknownTurn(nothing_yet(folder))


def _named(reader: TrailReader, folder: Path, given: str) -> tuple[str, Receipt]:
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
