"""`beaver chat`: a conversation at the terminal."""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from beaver_hooks import __version__
from beaver_hooks.agent.conversation import Conversation, Ended
from beaver_hooks.agent.factory import EngineLoader, EngineLoadResult
from beaver_hooks.agent.sessions.texts import new_session_id
from beaver_hooks.cli import terminal
from beaver_hooks.cli.common import common, configured, logging_to_file, tell_once
from beaver_hooks.cli.errors import UNEXPECTED, exit_code, sentence
from beaver_hooks.cli.markdown import MarkdownPieces
from beaver_hooks.cli.options import IDENTIFIER, no_memory_option, trust_option
from beaver_hooks.cli.session_texts import recap
from beaver_hooks.cli.signals import Terminated
from beaver_hooks.cli.streams import Unwritable, unreadable
from beaver_hooks.cli.terminal import CUT, Pieces, ended, is_screen, show, waiting
from beaver_hooks.cli.why import explanation
from beaver_hooks.config import LoadedConfig
from beaver_hooks.loop_thread import LoopThread
from beaver_hooks.receipts.health import Health
from beaver_hooks.tools import ToolOutcome
from beaver_hooks.tools.outcomes import one_line
from beaver_hostspecs import BeaverError, NotOffered, thaw

PROMPT = "you> "
MORE = "...> "
"""The prompt sign after a line that ended with a backslash."""

RECALLED = 4
"""Messages that are shown when a session is continued."""

PATIENCE = 5.0
"""Seconds that `/why` waits for the plugins' work on the last answer."""

RED, YELLOW, DIM = terminal.whole("red"), terminal.whole("yellow"), terminal.whole("bright_black")
WHY = "what memory recalled for your last prompt and kept of it, and why"


@click.command(name="chat")
@click.option("--session", metavar="ID", type=IDENTIFIER, help="The session to continue, or the id of a new one.")
@click.option("-c", "--continue", "again", is_flag=True, help="Continue the session that was used last.")
@click.option("--user", metavar="ID", type=IDENTIFIER, help="The id of the user who speaks.")
@trust_option
@no_memory_option
@click.option("--skill", "skills", metavar="NAME", multiple=True, help="Activate a skill; may be given several times.")
@common
@click.pass_context
def command(
    ctx: click.Context,
    *,
    session: str | None,
    again: bool,
    user: str | None,
    trust: str | None,
    no_memory: bool,
    skills: tuple[str, ...],
    config: Path | None,
) -> None:
    """Talk to the agent.

    Ctrl-D or /exit ends the chat. Ctrl-C cancels the prompt that is being answered and keeps the session. /help lists
    the commands; a line that ends with a backslash continues in the next one.

    Where lines are piped in, the exit code is that of the first one that failed.
    """
    if session is not None and again:
        raise click.UsageError("Give either --session or --continue.")
    loaded = configured(config)
    wanted = {"user": user, "no_memory": no_memory, "skills": list(skills)}
    with logging_to_file(loaded.state_folder):
        code = _talk(loaded, session, again=again, trust=trust, wanted=wanted)
    ctx.exit(code)


def _talk(loaded: LoadedConfig, session: str | None, *, again: bool, trust: str | None, wanted: dict[str, Any]) -> int:
    """Load the agent, and let the user talk to it; return the exit code.

    Args:
        loaded: the configuration.
        session: the session, or `None`.
        again: whether to continue the session that was used last.
        trust: the trust in the user, if it is less than configured.
        wanted: the other fields of the conversation.
    """
    thread = LoopThread()
    engine: EngineLoadResult | None = None
    try:
        with waiting("Loading the plugins"):
            engine = thread.call(EngineLoader(loaded).load)
        tell_once(*thread.call(_told, engine), loaded.state_folder)
        chosen = session or (thread.call(_newest, engine, wanted["user"]) if again else None) or new_session_id()
        conversation = Conversation(engine=engine, session=chosen, trust=engine.trust(trust), **wanted)
        conversation.further = {"why": (WHY, partial(_why, conversation))}
        return _Terminal(thread, conversation).talk()
    finally:
        with waiting("Waiting for the plugins to store this turn"):
            thread.end(_nothing if engine is None else engine.close)


class _Terminal:
    """Reads lines and shows answers, in the thread that gets Ctrl-C; the conversation runs in the other one."""

    def __init__(self, thread: LoopThread, conversation: Conversation) -> None:
        self._thread = thread
        self._conversation = conversation
        self._interactive = sys.stdin.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            # Input that is not UTF-8 does not end the chat: the agent replaces it.
            sys.stdin.reconfigure(errors="surrogateescape")
        self._troubles: dict[str, str] = {}
        self._failed = 0

    def talk(self) -> int:
        """Go on until the user ends it; return the exit code. Only a program needs one for failures."""
        started = self._thread.call(self._conversation.start)
        # A missing skill is reported before the first prompt.
        self._thread.call(self._conversation.command, " ".join(["/skill", *self._conversation.skills]))
        self._greet()
        if started:
            show(started)
        if self._interactive:
            self._help_typing()
        with contextlib.suppress(Ended):
            while True:
                self._take_turn()
        return 0 if self._interactive else self._failed

    def _take_turn(self) -> None:
        try:
            self._show_troubles()
            line = self._read()
            if line.strip():
                self._try(line)
        except EOFError:
            show()
            raise Ended from None
        except Terminated:
            raise
        except KeyboardInterrupt:
            show("\nThe prompt was cancelled. Ctrl-D ends the chat." if self._interactive else "")

    def _try(self, line: str) -> None:
        """Answer a line, or show the error: the conversation goes on."""
        try:
            self._answer(line)
        except (Ended, BrokenPipeError, Unwritable):
            raise
        except BeaverError as error:
            self._fail(error, sentence(error))
        except Exception as error:  # noqa: BLE001 - an error of a plugin
            known = "`beaver audit tail` shows the failure."
            self._fail(error, f"{UNEXPECTED.format(type(error).__name__)} {known}")

    def _fail(self, error: Exception, text: str) -> None:
        self._failed = self._failed or exit_code(error)
        show(f"! {text}", err=True, paint=RED)

    def _answer(self, line: str) -> None:
        if line.startswith("/") and not line.startswith("//"):
            show(self._thread.call(self._conversation.command, line))
            return
        prompt = line[1:] if line.startswith("//") else line
        make = MarkdownPieces if is_screen(sys.stdout) else Pieces
        with waiting("Thinking") as over, ended(over, make) as pieces:
            result = self._thread.call(self._conversation.say, prompt, pieces, partial(_show_tool, pieces))
        if result.status == "truncated":
            show(f"! {CUT}")

    def _greet(self) -> None:
        provider = self._conversation.engine.loaded.config.provider
        show(f"beaver {__version__}, model {provider.model or provider.kind}, session {self._conversation.session}")
        show("/help lists the commands, Ctrl-D ends the chat.")
        if complaint := self._conversation.complaint:
            show(f"! {complaint}", err=True, paint=RED)

    def _help_typing(self) -> None:
        """Show the end of the session, and set up history and completion for the user's input."""
        history = self._thread.call(self._conversation.history)
        if history:
            show(recap(history[-RECALLED:], prompt=PROMPT), paint=DIM)
        prompts = [message.text for message in history if message.role == "user"]
        set_up(prompts, partial(self._thread.call, self._conversation.completions))

    def _show_troubles(self) -> None:
        """Show each trouble of a memory once when it begins, and once when it ends."""
        now = self._thread.call(self._conversation.troubles)
        for name, text in now.items():
            if name not in self._troubles:
                show(f"! {name} is {text}. You can go on; `beaver doctor` shows the details.", paint=YELLOW)
        for name in self._troubles.keys() - now.keys():
            show(f"! {name} works again")
        self._troubles = now

    def _read(self) -> str:
        line = _input(PROMPT if self._interactive else "")
        while line.endswith("\\"):
            line = f"{line[:-1]}\n{_input(MORE if self._interactive else '')}"
        return line


def _input(prompt: str) -> str:
    try:
        return input(prompt)
    except OSError as error:
        raise unreadable(error) from error


def _show_tool(pieces: Pieces, outcome: ToolOutcome) -> None:
    """Show the outcome of a tool call, in a line of its own between the model's texts."""
    pieces.over()
    pieces.end()
    show(tool_line(outcome), paint=DIM)


async def _newest(engine: EngineLoadResult, user: str | None) -> str | None:
    sessions = await engine.sessions.list(1, user)
    return sessions[0].id if sessions else None


async def _why(conversation: Conversation, words: list[str]) -> str:
    """Explain the newest answer of a conversation by its receipt."""
    if words:
        raise NotOffered("/why takes no words; `beaver why TURN` explains an earlier turn")
    if conversation.last is None:
        raise NotOffered("this session has no answer yet; `beaver why` explains the last turn of any session")
    engine, turn = conversation.engine, conversation.last.turn_id
    await engine.host.drain(PATIENCE)
    receipt = await engine.host.receipt(turn)
    if receipt is None:
        raise NotOffered("no receipt of the last turn is kept; `beaver doctor` shows the details")
    return explanation(turn, receipt, {}, engine.loaded.config)


async def _told(engine: EngineLoadResult) -> tuple[dict[str, Health], dict[str, tuple[str, ...]]]:
    return engine.status, engine.notices


async def _nothing() -> None:
    """Nothing was loaded."""


def set_up(prompts: Iterable[str], complete: Callable[[str], list[str]]) -> None:
    """Offer earlier prompts and completions while lines are read by `input`.

    Args:
        prompts: the earlier prompts, oldest first.
        complete: returns the completions of the last word of a line.
    """
    with contextlib.suppress(ImportError):  # not every Python has it
        import readline  # noqa: PLC0415 - needed only for a user who types

        for prompt in prompts:
            if "\n" not in prompt:
                readline.add_history(prompt)
        readline.set_completer_delims(" ")
        readline.set_completer(Completer(lambda: readline.get_line_buffer()[: readline.get_endidx()], complete))
        # The editor that macOS has instead of GNU readline takes another command.
        readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")


class Completer:
    """Answers `readline`, which asks for one completion after the other.

    Args:
        line: returns the typed text up to the cursor.
        complete: see `set_up`.
    """

    def __init__(self, line: Callable[[], str], complete: Callable[[str], list[str]]) -> None:
        self._line = line
        self._complete = complete
        self._found: list[str] = []

    def __call__(self, _begun: str, number: int) -> str | None:
        """Return the completion of that number, or `None` after the last one."""
        if number == 0:
            found = self._complete(self._line())
            # Python disables the blank that the editor itself would add after a whole word.
            self._found = [f"{found[0]} "] if len(found) == 1 else found
        return self._found[number] if number < len(self._found) else None


def tool_line(outcome: ToolOutcome) -> str:
    """Return the tool, its arguments unless it is private, and the outcome."""
    given = "" if outcome.private else one_line(" ".join(map(_value, thaw(outcome.arguments).values())))
    call = " ".join(filter(None, (outcome.call.name, given)))
    ended = "done" if outcome.error is None else f"failed, {one_line(outcome.error)}"
    return f"  [{call}: {ended}]"


def _value(value: object) -> str:
    """Return an argument for people: a word unchanged, a longer value in quotes or as JSON."""
    if isinstance(value, str) and value and not any(map(str.isspace, value)):
        return value
    return json.dumps(value, ensure_ascii=False)
