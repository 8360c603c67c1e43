"""`beaver memory export --subject` and `erase --subject`: the data of one person, in all plugins and the host."""

import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.common import common, configured
from beaver_hooks.cli.options import IDENTIFIER
from beaver_hooks.cli.terminal import show, waiting
from beaver_hooks.config.paths import printable
from beaver_hooks.subjects.audit_record import ERASED, EXPORTED, record
from beaver_hooks.subjects.holders import Holders, Summary
from beaver_hostspecs import Subject
from beaver_toolkit.files import flush, publish

Function = TypeVar("Function", bound=Callable[..., Any])

SUBJECT = "--subject"
"""The option that tells the export of a person's data from the command `export` of a plugin."""

REPORT = "report.json"
_BLOCK = 2**20


def _whose(function: Function) -> Function:
    """Give a command the options that name a person."""
    user = click.option(
        SUBJECT, "user", metavar="USER", required=True, type=IDENTIFIER, help="The id of the user, as agents give it."
    )
    tenant = click.option(
        "--tenant", metavar="NAME", type=IDENTIFIER, help="The tenant of the user; without it, data without a tenant."
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    return user(tenant(as_json(common(function))))


@click.command(name="export")
@click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="The zip file to write, which must not exist.",
)  # fmt: skip
@_whose
@click.pass_context
def export_command(
    ctx: click.Context, *, user: str, tenant: str | None, output: Path, as_json: bool, config: Path | None
) -> None:
    """Write all data of one person that the plugins and the host keep into one zip file.

    It holds a folder for each plugin, with text files, and report.json with counts and with the places that were not
    reached. Only you can read it. Each holder is asked, also if another one fails. The exit code is 1 if one failed, if
    something is left, or if a plugin that is on or has files cannot be asked. If nothing is stored
    of the user, the file holds the report alone, and the command says so.
    """
    loaded, subject = configured(config), Subject(user=user, tenant=tenant)
    path = output.absolute()
    if os.path.lexists(path):
        raise click.UsageError(f"The file {printable(str(output))} exists; name another one.")
    with work_folder(path) as folder:
        with waiting("Collecting the data"):
            summary = Holders.under(loaded, os.environ).export(subject, folder)
        now = datetime.now(UTC)
        report = {"subject": user, "tenant": tenant, "made": now.isoformat(), **_plain(summary)}
        if not write_export(path, folder, report):
            raise click.UsageError(f"The file {printable(str(output))} exists; name another one.")
    unrecorded = record(loaded.state_folder, EXPORTED, subject, summary, now=now)
    if as_json:
        show(json.dumps({"file": str(path), **report, "unrecorded": unrecorded}))
    else:
        if not summary.count:
            show(_missing(subject))
        written = "Exported" if summary.count else "The report alone was written"
        show(f"{written} to {printable(str(output))}, which only you can read.")
        _tell(summary, unrecorded, "Not exported")
    _leave(ctx, summary, unrecorded)


@click.command(name="erase")
@_whose
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be erased, and erase nothing.")
@click.pass_context
def erase_command(
    ctx: click.Context, *, user: str, tenant: str | None, yes: bool, dry: bool, as_json: bool, config: Path | None
) -> None:
    """Erase all data of one person that the plugins and the host keep; this cannot be undone.

    The report counts by place, and names the places that still hold data and those that were not reached. Each holder
    is asked, also if another one fails. The exit code is 1 if one failed, if something is left, or if a plugin that is
    on or has files cannot be asked. Data without a user, and that of other users, stays, even if it mentions the
    person.
    """
    loaded, subject = configured(config), Subject(user=user, tenant=tenant)
    holders = Holders.under(loaded, os.environ)
    if dry or not yes:
        with waiting("Counting the data"):
            found = holders.count(subject)
        if dry:
            _show(found, subject, as_json=as_json, dry_run=True)
            _leave(ctx, found, "")
            return
        _ensure_meant(found, subject)
    with waiting("Erasing the data"):
        summary = holders.erase(subject)
    unrecorded = record(loaded.state_folder, ERASED, subject, summary, now=datetime.now(UTC))
    _show(summary, subject, as_json=as_json, dry_run=False, unrecorded=unrecorded)
    _leave(ctx, summary, unrecorded)


def _ensure_meant(found: Summary, subject: Subject) -> None:
    """Ask the user to confirm; without a terminal, require --yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "Erasing cannot be undone, and there is no terminal to ask for confirmation; add --yes, or --dry-run to see"
            " what would be erased."
        )
    for line in (*_lines(found), *(() if found.count else (_missing(subject),))):
        show(line, err=True)
    click.confirm("Erase this for good?", abort=True, err=True)


def _show(summary: Summary, subject: Subject, *, as_json: bool, dry_run: bool, unrecorded: str = "") -> None:
    if as_json:
        show(json.dumps({"dry_run": dry_run, **_plain(summary), "unrecorded": unrecorded}))
        return
    if not summary.count:
        show(_missing(subject))
    show("Would erase:" if dry_run else "Erased:")
    _tell(summary, unrecorded)
    if dry_run:
        show("Nothing was erased; this was a dry run.")


def _tell(summary: Summary, unrecorded: str, head: str = "Still there") -> None:
    for line in _lines(summary):
        show(line)
    for name, each in summary.reports.items():
        for place, count in each.left.items():
            show(f"{head}: {name}: {place} {count:,}.", err=True)
    if any(each.left for each in summary.reports.values()):
        show("Run `beaver doctor`, which names damaged data with its remedy, and repeat the command.", err=True)
    for name, why in summary.failures.items():
        show(f"Not done: {name}: {why}", err=True)
    for name in summary.unasked:
        show(f"Not asked: {name}; the reason is under `Not reached`.", err=True)
    if unrecorded:
        show(unrecorded, err=True)
    show("Not reached, or kept:")
    for sentence in _unreached(summary):
        show(f"  {sentence}")


def _missing(subject: Subject) -> str:
    tenant = "" if subject.tenant is None else f" of the tenant {printable(subject.tenant)}"
    return (
        f"Nothing was found for the user {printable(subject.user)}{tenant}. Ids are compared exactly: check the"
        " spelling, upper and lower case, and the tenant."
    )


def _lines(summary: Summary) -> list[str]:
    return [f"  {name}: {_amounts(each.places) or 'nothing'}" for name, each in summary.reports.items()]


def _amounts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{place} {count:,}" for place, count in counts.items() if count)


def _unreached(summary: Summary) -> list[str]:
    own = (f"{name}: {sentence}" for name, each in summary.reports.items() for sentence in each.unreached)
    return [*own, *summary.unreached]


def _plain(summary: Summary) -> dict[str, Any]:
    return {
        "places": {name: dict(each.places) for name, each in summary.reports.items()},
        "left": {name: dict(each.left) for name, each in summary.reports.items() if each.left},
        "failed": dict(summary.failures),
        "unasked": list(summary.unasked),
        "unreached": _unreached(summary),
    }


def _leave(ctx: click.Context, summary: Summary, unrecorded: str) -> None:
    if unrecorded or not summary.is_whole:
        ctx.exit(FOUND)


@contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """Yield a new private folder beside a new file, and remove the folder afterwards.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=".beaver-export-", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_export(path: Path, folder: Path, report: dict[str, Any]) -> bool:
    """Write the report, and the files below a folder that are not empty, into a new archive (0600).

    Returns whether its name was free.

    Raises:
        StorageError: it cannot be written.
    """
    archive = folder.with_name(f"{folder.name}.zip")
    try:
        descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as to:
                to.writestr(REPORT, json.dumps(report, indent=2, ensure_ascii=False))
                for each in sorted(each for each in folder.rglob("*") if each.is_file() and each.stat().st_size):
                    with each.open("rb") as source, to.open(each.relative_to(folder).as_posix(), "w") as target:
                        shutil.copyfileobj(source, target, _BLOCK)
            file.flush()
            flush(descriptor)
        return publish(archive, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        archive.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"The file {printable(str(path))} cannot be written ({error.strerror}); name another one.")
