"""`beaver sessions`: the stored conversations. Needs no plugin."""

import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from beaver_hooks.agent.errors import UnknownSession
from beaver_hooks.agent.sessions.records import ForgetReport, SearchHit, Session, SessionInfo
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.cli import terminal
from beaver_hooks.cli.common import common, configured, in_loop
from beaver_hooks.cli.options import IDENTIFIER
from beaver_hooks.cli.session_files import export_command, import_command
from beaver_hooks.cli.session_texts import (
    forget_json,
    forget_text,
    hit_json,
    hits_text,
    info_json,
    list_text,
    session_json,
    session_text,
)
from beaver_hooks.cli.state import has_sessions, nothing_yet, session_named, sessions_in
from beaver_hooks.cli.terminal import show, waiting
from beaver_hooks.cli.text_format import counted, cut

T = TypeVar("T")
ID = "SESSION"
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
user_option = click.option("--user", metavar="ID", type=IDENTIFIER, help="Only the sessions of this user.")


@click.group(name="sessions")
def command() -> None:
    """List, search, export and delete stored conversations.

    The beginning of a session's id is enough, as long as only one id begins with it.
    """


@command.command(name="list")
@user_option
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The most to show.")
@as_json_option
@common
def list_command(*, user: str | None, limit: int, as_json: bool, config: Path | None) -> None:
    """List the sessions, the last used one first."""
    folder = configured(config).state_folder
    there = has_sessions(folder)
    # One more than shown, to know whether there are more.
    found = _answer(folder, lambda store: store.list(limit + 1, user)) if there else ()
    infos, more = found[:limit], len(found) > limit
    if as_json:
        show(json.dumps({"sessions": [info_json(each) for each in infos], "more": more}))
    elif infos:
        show(list_text(infos) + (f"\nThere are more than {limit:,}; raise --limit to see them." if more else ""))
    else:
        show(_no_session(user) if there else nothing_yet(folder))


@command.command(name="show")
@click.argument("session", metavar=ID)
@click.option("--hidden", is_flag=True, help="Show hidden events too, such as activated skills.")
@as_json_option
@common
def show_command(session: str, *, hidden: bool, as_json: bool, config: Path | None) -> None:
    """Show a whole session, with times in UTC."""

    async def whole(store: SessionStore) -> Session:
        return await store.show(await session_named(store, session), hidden=hidden)

    found = _answer(_folder(config), whole)
    show(json.dumps(session_json(found, hidden=hidden)) if as_json else session_text(found), paint=terminal.role)


@command.command(name="search")
@click.argument("words", nargs=-1, required=True)
@click.option("--session", metavar=ID, type=IDENTIFIER, help="Only in this session.")
@user_option
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="The most hits to show.")
@as_json_option
@common
def search_command(
    words: tuple[str, ...], *, session: str | None, user: str | None, limit: int, as_json: bool, config: Path | None
) -> None:
    """Search the messages of all sessions, the best match first.

    Example: beaver sessions search green tea --user ann
    """

    async def search(store: SessionStore) -> tuple[SearchHit, ...]:
        within = None if session is None else await session_named(store, session)
        return await store.search(" ".join(words), limit, session_id=within, user_id=user)

    folder = configured(config).state_folder if session is None else _folder(config)
    there = has_sessions(folder)
    hits = _answer(folder, search) if there else ()
    if as_json:
        show(json.dumps({"hits": [hit_json(each) for each in hits]}))
    elif hits:
        show(hits_text(hits), paint=terminal.hit_role)
    else:
        show("No stored message has these words." if there else nothing_yet(folder))


@command.command(name="rename")
@click.argument("session", metavar=ID)
@click.argument("title")
@common
def rename_command(session: str, title: str, *, config: Path | None) -> None:
    """Give a session a title; with an empty one its first words are its title again."""

    async def rename(store: SessionStore) -> SessionInfo:
        name = await session_named(store, session)
        await store.rename(name, title)
        return (await store.show(name)).info

    info = _answer(_folder(config), rename)
    show(f"The title of {info.id} is: {info.title or '(none)'}")


@command.command(name="delete")
@click.argument("sessions", metavar=f"{ID}...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@common
def delete_command(sessions: tuple[str, ...], *, yes: bool, config: Path | None) -> None:
    """Delete sessions with all their messages; this cannot be undone.

    What memory plugins learned from them stays; use the plugins' own commands to forget it (`beaver memory`).
    """

    async def find(store: SessionStore) -> list[SessionInfo]:
        names = dict.fromkeys([await session_named(store, each) for each in sessions])
        return [(await store.show(name)).info for name in names]

    async def delete(store: SessionStore) -> None:
        for each in found:
            await store.delete(each.id)

    folder = _folder(config)
    found = _answer(folder, find)
    _ensure_meant(found, yes=yes)
    _answer(folder, delete)
    show(f"Deleted {counted(len(found), 'session')}.")


@command.command(name="forget")
@click.argument("words", nargs=-1, required=True)
@user_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@click.option("--dry-run", "dry", is_flag=True, help="Show what would be forgotten, and forget nothing.")
@as_json_option
@common
def forget_command(
    words: tuple[str, ...], *, user: str | None, yes: bool, dry: bool, as_json: bool, config: Path | None
) -> None:
    """Erase the turns in which a message holds all WORDS; this cannot be undone.

    A turn is a prompt and its answer. Other forms of a word count too. A session without another turn is deleted.
    `beaver memory forget` erases memories, and says how many sessions may still quote them.

    Example: beaver sessions forget release thursday
    """
    folder, text = configured(config).state_folder, " ".join(words)
    found = _answer(folder, lambda store: store.holding(text, user_id=user)) if has_sessions(folder) else ()
    if found and not dry:
        _ensure_forgettable(found, yes=yes)
        report = _answer(folder, lambda store: store.forget(text, user_id=user))
    else:
        report = ForgetReport(sessions=len({each.session for each in found}) if dry else 0)
    if as_json:
        show(json.dumps(forget_json(report, found if dry else (), dry_run=dry)))
    elif not found:
        show("No stored message has all of these words.")
    elif dry:
        show(f"{hits_text(found)}\n\nNothing was forgotten; without --dry-run, these and their turns would be.")
    else:
        show(forget_text(report))


command.add_command(export_command)
command.add_command(import_command)


def _no_session(user: str | None) -> str:
    return "No session is stored." if user is None else f"No session of `{user}` is stored."


def _folder(config: Path | None) -> Path:
    """Return the folder of the stored sessions."""
    folder = configured(config).state_folder
    if not has_sessions(folder):
        raise UnknownSession(nothing_yet(folder))
    return folder


def _answer(folder: Path, ask: Callable[[SessionStore], Awaitable[T]]) -> T:
    """Return the answer of the store in a folder."""

    async def asked() -> T:
        async with sessions_in(folder) as store:
            return await ask(store)

    with waiting("Working on the sessions"):
        return in_loop(asked())


def _ensure_meant(infos: list[SessionInfo], *, yes: bool) -> None:
    """Ask whether sessions may be deleted; without a terminal, require --yes."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "Deleting cannot be undone, and there is no terminal to ask for confirmation; add --yes."
        )
    for each in infos:
        show(f"{each.id}  {counted(each.messages, 'message')}  {cut(each.title, 40)}", err=True)
    click.confirm(f"Delete {counted(len(infos), 'session')} for good?", abort=True, err=True)


def _ensure_forgettable(found: Sequence[SearchHit], *, yes: bool) -> None:
    """Ask whether the turns of these messages may be erased; without a terminal, require --yes."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "Forgetting cannot be undone, and there is no terminal to ask for confirmation; add --yes, or --dry-run"
            " to see the messages."
        )
    show(hits_text(found), err=True)
    click.confirm(f"Erase {counted(len(found), 'message')} and their turns for good?", abort=True, err=True)
