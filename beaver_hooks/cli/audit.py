"""`beaver audit`: verifies and shows the audit trail. Needs no plugin."""

import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from beaver_hooks.audit.chain import ChainedEvent, Head, verify
from beaver_hooks.audit.database import Database
from beaver_hooks.audit.reader import TrailReader, unavailable
from beaver_hooks.cli.audit_texts import Filter, record_json, record_text, verdict_json, verdict_text
from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.common import common, configured
from beaver_hooks.cli.state import has_trail, nothing_yet, recorded_turns
from beaver_hooks.cli.terminal import show, waiting
from beaver_toolkit.sqlite.errors import DatabaseError

POLL = 0.5
"""Seconds between two reads of a followed trail."""

HEAD = re.compile("[0-9]{1,18}:[0-9a-f]{64}")

STEP = 200


def _as_head(ctx: click.Context, param: click.Parameter, value: str | None) -> Head | None:
    if value is None:
        return None
    if HEAD.fullmatch(value) is None:
        raise click.BadParameter(
            "a head is what `beaver audit verify` prints: a number, a colon and 64 digits.", ctx, param
        )
    number, _, mac = value.partition(":")
    return Head(seq=int(number), mac=mac)


@click.group(name="audit")
def command() -> None:
    """Verify and read the audit trail: content-free records, each chained to the one before."""


@command.command(name="verify")
@click.option(
    "--expect",
    metavar="HEAD",
    callback=_as_head,
    help="A head that `verify` printed before and that you kept elsewhere.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
@click.pass_context
def verify_command(ctx: click.Context, *, expect: Head | None, as_json: bool, config: Path | None) -> None:
    """Check the whole trail. The exit code is 1 if a record was changed or is missing between others.

    A missing end can be found only by comparison with a head that was printed before and kept elsewhere (--expect).
    """
    folder = configured(config).state_folder
    there = has_trail(folder)
    with waiting("Verifying the audit trail"):
        # A missing trail is intact, unless a head is expected.
        verdict = TrailReader(folder).verify(expected_head=expect) if there else verify((), b"", expected_head=expect)
    if as_json:
        show(json.dumps(verdict_json(verdict)))
    else:
        show(verdict_text(verdict, expected=expect is not None) if there or expect else nothing_yet(folder))
    if not verdict.ok or verdict.missing_triggers:
        ctx.exit(FOUND)


@command.command(name="tail")
@click.option("-n", "--number", type=click.IntRange(min=1), default=20, show_default=True, help="The number of events.")
@click.option("-f", "--follow", is_flag=True, help="Follow new events until Ctrl-C.")
@click.option("--plugin", metavar="NAME", help="Only events of this plugin.")
@click.option("--turn", metavar="TURN", help="Only events of this turn; the beginning of its id is enough.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, one object per event.")
@common
def tail_command(
    *, number: int, follow: bool, plugin: str | None, turn: str | None, as_json: bool, config: Path | None
) -> None:
    """Show the last events, the newest last, with their numbers and times in UTC."""
    folder = configured(config).state_folder
    wanted = Filter(plugin=plugin, turns=() if turn is None else recorded_turns(folder, turn))
    with waiting("Reading the audit trail"):
        last, records = newest(folder, number, wanted.takes if wanted else None) if has_trail(folder) else (0, [])
    if not records:
        show("No event matches the options." if last else nothing_yet(folder), err=as_json or follow)
    _print(records, as_json=as_json)
    if follow:
        for record in _following(folder, last):
            if wanted.takes(record):
                _print([record], as_json=as_json)


def _following(folder: Path, last: int) -> Iterator[ChainedEvent]:
    """Yield the records appended after the record `last`, for ever."""
    while True:
        time.sleep(POLL)
        for record in after(folder, last) if has_trail(folder) else ():
            last = record.seq
            yield record


def _print(records: Iterable[ChainedEvent], *, as_json: bool) -> None:
    for record in records:
        show(json.dumps(record_json(record)) if as_json else record_text(record))


def newest(folder: Path, number: int, fits: Callable[[ChainedEvent], bool] | None) -> tuple[int, list[ChainedEvent]]:
    """Return the number of the last record, and the newest records that fit, oldest first.

    Raises:
        AuditUnavailable: the trail cannot be read.
    """
    with _reading(folder) as database:
        last = database.head().seq
        # With a filter, one pass in constant memory: matching records may be anywhere.
        some = database.tail(number) if fits is None else deque(filter(fits, database.records()), maxlen=number)
        found = [*some]
    # Other processes append meanwhile; a record must not be shown twice.
    return max([last, *(each.seq for each in found[-1:])]), found


def after(folder: Path, last: int) -> list[ChainedEvent]:
    """Return the records after number `last`; all of them if the trail was begun anew since.

    Raises:
        AuditUnavailable: the trail cannot be read.
    """
    with _reading(folder) as database:
        newest_now = database.head().seq
        if newest_now == last:
            return []
        known = last if newest_now > last else 0
        limit = STEP
        while True:
            found = database.tail(limit)
            if len(found) < limit or found[0].seq <= known + 1:
                return [each for each in found if each.seq > known]
            limit *= 4


@contextmanager
def _reading(folder: Path) -> Iterator[Database]:
    try:
        with closing(Database.read(folder)) as database:
            yield database
    except DatabaseError as error:
        raise unavailable(folder, error.category) from error
