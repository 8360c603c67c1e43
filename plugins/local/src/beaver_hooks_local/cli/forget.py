"""`forget`: shows memories, asks, and erases them."""

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import attrs
import click

from beaver_hooks_local.cli.change import own_option
from beaver_hooks_local.cli.options import FILTER_OPTIONS, ID, MOMENT, WORD, OwnerOptions, debug_option, json_option
from beaver_hooks_local.cli.output import HEADS, counted, record, row, say, say_json, table
from beaver_hooks_local.cli.plugin_calls import NAME, ask, call
from beaver_hooks_local.cli.progress import Bar
from beaver_hooks_local.cli.prove import Proof, as_record, say_proof, tell
from beaver_hooks_local.cli.prove import proved as prove_planted
from beaver_hooks_local.cli.prove import proved_of as prove_forgotten
from beaver_hooks_local.cli.search import ensure_all
from beaver_hooks_local.errors import damaged_text
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.plugin import Local
from beaver_hostspecs import BeaverError, PluginError, Shell
from beaver_memory.filters import Filters
from beaver_memory.records import Memory
from beaver_memory.runtime.reports import ForgetReport
from beaver_memory.runtime.requests import DamagedRequest, ForgetRequest, InspectionRequest

BATCH = 100
"""Memories that one call forgets."""

SHOWN = 50
"""Memories that the question for confirmation lists."""

REMAINS = 1
"""The exit code if something of a forgotten memory is left."""


@attrs.frozen(kw_only=True)
class Selection:
    """The memories that the options of a command name.

    Attributes:
        which: whose memories.
        ids: the memories; all that fit without any.
        every: whether all of the user are meant.
        query: words that a memory holds.
        session: the session in which a memory was said.
        every_user: whether the memories of all users are meant.
    """

    which: OwnerOptions
    ids: tuple[int, ...] = ()
    every: bool = False
    query: str = ""
    session: str = ""
    every_user: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether it gives a condition beside ids."""
        return bool(self.query or self.session or self.which.narrowed)

    @property
    def is_session(self) -> bool:
        """Whether it means a whole session."""
        return bool(self.session) and not (self.ids or self.query or self.which.narrowed)

    def own(self, memory: LocalMemory) -> Filters:
        """Return the filters of memories that may be forgotten."""
        own = attrs.evolve(self.which.own(memory, lapsed=True), **self.which.narrowed)
        if not self.every_user:
            return own
        owners = memory.operations.inspect(InspectionRequest(every_owner=True, embeddings=False, figures=False)).owners
        return own.within(owners=[each for each in owners if each.tenant == own.view.tenant])

    def found(self, memory: LocalMemory) -> tuple[Memory, ...]:
        """Return the memories, the newest first."""
        every = self.every or (self.is_narrow and not self.ids)
        words = {"query": self.query, "session": self.session}
        request = ForgetRequest(ids=self.ids, own=self.own(memory), every=every, **words, dry_run=True)
        return memory.operations.forget(request).memories

    def damaged(self, memory: LocalMemory) -> tuple[int, ...]:
        """Return the first memories of the users that fail their checksums, which `found` leaves out."""
        rows = memory.operations.damaged(DamagedRequest(visible=self.own(memory))).rows
        return tuple(row.id for row in rows if row.kind == "memory" and isinstance(row.id, int))


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, type=ID)
@own_option
@click.option("--tenant", metavar="NAME", type=WORD, help="The tenant whose memories are meant.")
@click.option(
    "--all-users",
    "every_user",
    is_flag=True,
    help="The memories of all users of the tenant, in this project if several share the database.",
)
@click.option("--all", "everything", is_flag=True, help="Forget all memories of that user.")
@click.option("--query", metavar="WORDS", type=WORD, help="Only memories with all of these words, in any form.")
@click.option("--session", metavar="ID", type=WORD, help="Only what was said in this session.")
@FILTER_OPTIONS["file"]
@click.option("--since", "after", type=MOMENT, help="Only what was said at this time or later.")
@click.option("--until", "before", type=MOMENT, help="Only what was said before this time.")
@FILTER_OPTIONS["types"]
@FILTER_OPTIONS["tags"]
@FILTER_OPTIONS["people"]
@click.option("--damaged", is_flag=True, help="The memories fail their checksums; `check` names them.")
@click.option("--prove", is_flag=True, help="Show that nothing is left in any file; alone, with a planted memory.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be forgotten, and forget nothing.")
@json_option
@debug_option
@click.pass_context
def forget(
    ctx: click.Context,
    /,
    ids: tuple[int, ...],
    *,
    user: str | None,
    tenant: str | None,
    every_user: bool,
    everything: bool,
    query: str | None,
    session: str | None,
    damaged: bool,
    prove: bool,
    yes: bool,
    dry: bool,
    as_json: bool,
    **narrowing: Any,
) -> None:
    """Erase memories, also expired and superseded ones; this cannot be undone.

    Ids and options select the memories that fit all of them. Their texts, their vectors, the texts in their history and
    the summaries of their sessions are erased from the database and its indexes. The copy that a migration makes of the
    database is deleted, and so are damaged logs that were kept. Only the fact that a memory existed, when it was
    forgotten, and keyed hashes of its statements are kept: capture does not learn the same words again. The report
    counts rows and files by place, and names the places that it does not reach; the exit code is 1 if a row still holds
    content.
    Files of `beaver backup` that are older than this still hold them: delete those.

    With --prove, sequences of words that only the forgotten memories have are looked for in the files of the memory,
    before and after. --prove alone plants a random memory of a throwaway owner, sees that it is detectable, forgets it,
    looks for it in every file of the state folder, and removes the owner. The exit code is 1 if anything is left.
    """
    shell: Shell = ctx.obj
    narrowed = {name: value for name, value in narrowing.items() if value}
    which = OwnerOptions(user=user, tenant=tenant, narrowed=narrowed)
    selection = Selection(
        which=which, ids=ids, every=everything, query=query or "", session=session or "", every_user=every_user
    )
    if prove and not (ids or everything or selection.is_narrow or dry or damaged):
        planted = prove_planted(shell)
        say_proof(planted, as_json=as_json)
        clean = planted.holds
    elif damaged:
        every = attrs.evolve(selection, every_user=every_user or user is None)
        _forget_damaged(shell, every, yes=yes and not dry, as_json=as_json)
        clean = True
    else:
        clean = _forget_selected(shell, selection, prove=prove, yes=yes, dry=dry, as_json=as_json)
    if not clean:
        ctx.exit(REMAINS)


def _forget_selected(shell: Shell, selection: Selection, *, prove: bool, yes: bool, dry: bool, as_json: bool) -> bool:
    """Forget the selected memories and report it, or with `dry` only name them; return whether nothing is left."""
    found = _selected(shell, selection)
    clean = True
    if not found:
        waiting = 0 if dry else _forget_waiting(shell, selection, as_json=as_json)
        if not as_json:
            _ensure_whole(shell, selection)
            if not waiting:
                say("There are no memories to forget.")
            return clean
    if dry:
        _tell_dry(found, as_json=as_json)
    else:
        _ensure_meant(found, yes=yes)
        clean = _forget_found(shell, found, selection, prove=prove, as_json=as_json)
        if found and not selection.every:
            _forget_waiting(shell, selection, as_json=as_json)
    _ensure_whole(shell, selection)
    return clean


def _selected(shell: Shell, selection: Selection) -> tuple[Memory, ...]:
    _ensure_one_way(selection)
    found = ask(shell, selection.found)
    if not selection.is_narrow:
        ensure_all(shell, selection.ids, found, selection.which)
    return found


def _forget_waiting(shell: Shell, selection: Selection, *, as_json: bool) -> int:
    """Erase the turns that wait to become memories, if all of a user or of a session are meant; return their number."""
    if not (selection.every or selection.is_session):
        return 0

    def work(memory: LocalMemory) -> int:
        sight = selection.which.sight(memory)
        return memory.operations.turns.erase(sight.owner, sight.project, selection.session or None)

    waiting = ask(shell, work, wrote=True)
    if waiting and not as_json:
        say(f"Forgot {counted(waiting, 'turn')} that waited to be captured.")
    return waiting


def _forget_found(shell: Shell, found: Sequence[Memory], selection: Selection, *, prove: bool, as_json: bool) -> bool:
    """Forget the memories and report it; return whether nothing is left of them."""
    user = selection.which.user
    proof = None
    if prove:
        proof, report = prove_forgotten(shell, found, lambda: _forgotten(shell, found, selection))
    else:
        report = _forgotten(shell, found, selection)
    _tell(report, _quoting(shell, found, user), proof, user=user, as_json=as_json)
    return not report.left and (proof is None or proof.holds)


def _ensure_one_way(selection: Selection) -> None:
    """Refuse options that do not say which memories are meant.

    Raises:
        UsageError: they do not.
    """
    if selection.every and (selection.ids or selection.is_narrow):
        raise click.UsageError("--all means all memories of the user; leave out either --all or the other selection.")
    if not (selection.every or selection.ids or selection.is_narrow):
        raise click.UsageError(
            "Name the memories (forget ID...), select them (for example --query WORDS or --since DAY), or forget all of"
            " them (forget --all)."
        )


def _ensure_whole(shell: Shell, selection: Selection) -> None:
    """Name the damaged memories that forgetting all memories leaves.

    Raises:
        PluginError: there are such memories.
    """
    if selection.every and (damaged := ask(shell, selection.damaged)):
        raise PluginError(damaged_text(damaged), plugin=NAME)


def _tell_dry(found: Sequence[Memory], *, as_json: bool) -> None:
    if as_json:
        say_json({"dry_run": True, "forgotten": [record(each) for each in found]})
    else:
        say(f"{_listed(found)}\nNothing was forgotten; without --dry-run, {counted(len(found), 'memory')} would be.")


def _tell(report: ForgetReport, quoting: int | None, proof: Proof | None, *, user: str | None, as_json: bool) -> None:
    if as_json:
        say_json(
            {
                "dry_run": False,
                "forgotten": [{"id": id_} for id_ in report.forgotten],
                "quoting_sessions": quoting,
                "erased": {**report.erased},
                "left": {**report.left},
                "unreached": [*report.unreached],
                **({} if proof is None else {"proof": as_record(proof)}),
            }
        )
        return
    gone = counted(len(report.forgotten), "memory")
    say(f"Forgot {gone}: texts, vectors and the texts in the history are erased.")
    if quoting:
        whose = f" --user {shlex.quote(user)}" if user else ""
        say(f"{counted(quoting, 'session')} may quote it; to erase that: beaver sessions forget WORDS{whose}")
    say(f"Erased rows and files: {_places(report.erased)}.")
    if report.left:
        say(f"Still there: {_places(report.left)}. Run `beaver memory check`, and forget again.", err=True)
    say(f"Out of reach: {'; '.join(report.unreached)}.")
    if proof is not None:
        tell(proof)


def _places(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{place} {count:,}" for place, count in sorted(counts.items())) or "none"


def _forget_damaged(shell: Shell, selection: Selection, *, yes: bool, as_json: bool) -> None:
    """Erase memories that fail their checksums, which no command can show before."""
    _ensure_one_way(selection)
    if not (selection.ids and yes):
        raise click.UsageError(
            "Name the damaged memories (see `beaver memory check`) and add --yes; none can be shown."
        )

    def work(memory: LocalMemory) -> tuple[int, ...]:
        return memory.operations.forget(ForgetRequest(ids=selection.ids, own=selection.own(memory))).forgotten

    gone = ask(shell, work, wrote=True)
    if as_json:
        say_json({"dry_run": False, "forgotten": [{"id": id_} for id_ in gone]})
    elif gone:
        say(f"Forgot {counted(len(gone), 'damaged memory')}.")
    if missing := [id_ for id_ in selection.ids if id_ not in gone]:
        whose = "here" if selection.every_user else "of this user"
        raise click.UsageError(f"There is no memory {', '.join(map(str, missing))} {whose}.")


def _quoting(shell: Shell, forgotten: Sequence[Memory], user: str | None) -> int | None:
    """Return how many stored sessions may still quote forgotten memories; `None` if that cannot be known."""
    texts = [text for each in forgotten for text in (each.title, each.narrative) if text]
    try:
        return shell.quoting_sessions(texts, user=user)
    except BeaverError as error:
        say(f"It is unknown whether stored sessions quote what was forgotten. {error}", err=True)
        return None


def _ensure_meant(found: Sequence[Memory], *, yes: bool) -> None:
    """Ask the user to confirm that memories are forgotten; without a terminal, require --yes."""
    if yes or not found:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "Forgetting cannot be undone, and there is no terminal to ask for confirmation; add --yes, or --dry-run"
            " to see the memories."
        )
    say(_listed(found), err=True)
    click.confirm(f"Forget {counted(len(found), 'memory')} for good?", abort=True, err=True)


def _listed(found: Sequence[Memory]) -> str:
    now = datetime.now(UTC)
    lines = table([HEADS, *(row(each, now) for each in found[:SHOWN])])
    return lines if len(found) <= SHOWN else f"{lines}\nand {len(found) - SHOWN:,} more"


def _forgotten(shell: Shell, found: Sequence[Memory], selection: Selection) -> ForgetReport:
    """Forget memories, and put each into the audit trail; return the report of all batches."""
    stores = {each.id: each.store.value for each in found}
    bar = Bar()

    def work(memory: LocalMemory, ids: list[int]) -> ForgetReport:
        own, every = selection.own(memory), selection.every
        request = ForgetRequest(ids=ids, own=own, every=every, query=selection.query, session=selection.session)
        report = memory.operations.forget(request)
        for id_ in report.forgotten:
            memory.trace("memory_forgotten", memory=id_)
        return report

    async def forgotten(plugin: Local) -> ForgetReport:
        report = ForgetReport()
        ids = list(stores)
        try:
            for begin in range(0, len(ids), BATCH):
                done = await plugin.serve(partial(work, ids=ids[begin : begin + BATCH]), wrote=True)
                for id_ in done.forgotten:
                    plugin.setup.report.event("memory_forgotten", memory=id_, store=stores[id_])
                report = _both(report, done)
                bar(len(report.forgotten), len(ids), "forgetting")
        except BaseException:
            if gone := len(report.forgotten):
                say(f"Before this failed, {gone} of {counted(len(ids), 'memory')} were forgotten.", err=True)
            raise
        finally:
            bar.end()
        return report

    return call(shell, forgotten)


def _both(one: ForgetReport, other: ForgetReport) -> ForgetReport:
    return ForgetReport(
        forgotten=(*one.forgotten, *other.forgotten),
        erased=Counter(one.erased) + Counter(other.erased),
        left=Counter(one.left) + Counter(other.left),
        unreached=other.unreached,
    )
