"""`beaver chat`: a typed or piped conversation that survives Ctrl-C and failures."""

import asyncio
import builtins
import contextlib
import io
import json
import os
import pty
import readline
import signal
import subprocess
import sys

import pytest
from integration.openai_server import chunk, event, events, serve, streamed

from beaver_hooks import Host, __version__
from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.messages import Completion
from beaver_hooks.agent.providers.offline import NOTHING, OfflineProvider
from beaver_hooks.cli.terminal import CUT

FLAKY = """
    from pathlib import Path
    import apsw
    from beaver_hostspecs import Command, hookimpl

    async def fail(words, context, report):
        raise EOFError("a value that nobody should see")

    class Plugin:
        @hookimpl
        def provide_commands(self):
            return [Command(name="fail", summary="fails", run=fail)]

        @hookimpl
        async def before_prompt(self, turn):
            if turn.prompt == "lose it":
                connection = apsw.Connection(".beaver/sessions.db")
                connection.set_busy_timeout(10_000)
                connection.execute("DELETE FROM sessions")
                connection.close()
            if turn.prompt == "break" or Path("broken").exists():
                raise ValueError("content")
"""

OFF = "Memory is off for this session: nothing is recalled, kept or shown, and no memory tool runs. `/memory on` switches it on again.\n"
BROKEN_OFF = events(event(chunk({"content": "Hel"})), end="cut")
GREETING = "beaver {}, model offline, session {}\n/help lists the commands, Ctrl-D ends the chat.\n"
# A process of its own takes the pseudo-terminal as its controlling terminal, so that Ctrl-C reaches it.
ON_TERMINAL = (
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from beaver_hooks.cli import main; main()"
)


@pytest.fixture(autouse=True)
def _own_history():
    """Clear the lines that the arrow keys would bring back."""
    yield
    readline.clear_history()


def greeting(session="s"):
    return GREETING.format(__version__, session)


async def said(path, session="s"):
    async with await EngineLoader(path).load() as engine:
        return [each.text for each in (await engine.sessions.show(session)).messages]


def test_a_piped_conversation(cli, configured):
    """Without a terminal each line is a prompt, blank lines are skipped, and the end of the input ends the chat."""
    configured()
    ran = cli("chat", "--session", "s", stdin="remember that I like tea\n\n  \nwhat do I like?\n")
    answers = ran.out.removeprefix(greeting()).splitlines()

    assert (0, "") == (ran.code, ran.err)
    assert ['  [memory add user "I like tea": done]', "The tool memory answered: Entry added."] == answers[:2]
    assert "I like tea" in answers[2]


def test_a_new_session_is_named(cli, configured):
    """Without `--session` the chat begins a new session and shows its id."""
    configured()
    ran = cli("chat", stdin="/exit\nnever read\n")

    assert (0, True) == (ran.code, ran.out.startswith(f"beaver {__version__}, model offline, session session-"))
    assert 2 == ran.out.count("\n")


async def test_lines_that_go_on(cli, configured):
    """A backslash at the end of a line joins the next one to it; `//` at the beginning sends `/` to the agent."""
    path = configured()
    ran = await asyncio.to_thread(cli, "chat", "--session", "s", stdin="one\\\ntwo\n//help\n")

    assert (0, ["one\ntwo", NOTHING, "/help", NOTHING]) == (ran.code, await said(path))


async def test_bytes_that_are_no_text(cli, configured):
    """Bytes that are not UTF-8 are replaced, and the conversation goes on."""
    path = configured()
    ran = await asyncio.to_thread(cli, "chat", "--session", "s", stdin=b"caf\xe9\nxyzzy\n")

    assert (0, ["caf\ufffd", NOTHING, "xyzzy", NOTHING]) == (ran.code, await said(path))


def test_a_stdin_in_memory(cli, configured):
    """The chat reads a text stream in place of stdin."""
    configured()

    assert (0, greeting()) == cli("chat", "--session", "s", stdin=io.StringIO("/exit\nnever read\n"))[:2]


def test_slash_commands(cli, configured):
    """Slash commands run and show their output; an unknown one is an error on stderr, and the conversation goes on."""
    configured()
    ran = cli("chat", "--session", "s", stdin="/help\n/memory off\n/nope\n/\n/session\n/new\n/quit\n")

    assert (2, 2) == (ran.code, ran.out.count("/help     this list\n"))
    assert OFF in ran.out
    assert "s\nContinue it later: beaver chat --session s\nA new session: session-" in ran.out
    assert (
        "! there is no command /nope; /help lists them. To send this line to the agent, start it with //.\n" == ran.err
    )


def test_trust(cli, configured):
    """`--trust` limits every turn and command, never above `agent.trust`; each run logs the memory left out once."""
    configured()
    cli("run", "remember that I like tea", "--session", "owner's")
    lines = "what do I like?\nremember that I like mate\n/memory curated show\n/exit\n"
    ran = [cli("chat", "--session", "s", "--trust", "public", stdin=lines)]
    configured(agent={"trust": "public"})
    ran += [cli("chat", "--session", "t", *more, stdin=lines) for more in ((), ("--trust", "full"))]
    configured()
    shown = cli("memory", "curated", "show").out

    said = "! the command `show` of the plugin `curated` is not allowed for the trust `public`.\n"
    assert [(2, 1, True, 0)] * 3 == [
        (each.code, each.err.count("\n"), each.err.endswith(said), each.out.count("tea")) for each in ran
    ]
    log = (configured().parent / ".beaver" / "beaver.log").read_text()
    assert 3 == log.count("memory_left_out plugin=curated trust=public")
    assert (True, False) == ("tea" in shown, "mate" in shown)


def test_without_memory(cli, configured):
    """`--no-memory` announces that memory is off and switches it off, in new sessions too, until `/memory on`."""
    configured()
    cli("run", "remember that I like tea", "--session", "other")
    lines = "what do I like?\n/new\nand now?\n/memory on\nwhat do I like?\n"
    ran = cli("chat", "--no-memory", "--session", "s", stdin=lines)
    first, *rest = ran.out.removeprefix(greeting() + OFF).splitlines()
    # Another process finds memory off without the option.
    again = cli("chat", "--session", "s", stdin="what do I like?\n/memory\n")

    assert (0, NOTHING, OFF.strip(), NOTHING) == (ran.code, first, rest[1], rest[2])
    assert (True, True) == (rest[0].startswith("A new session: session-"), rest[3] == "Memory is on for this session.")
    assert "tea" in rest[4]
    assert (NOTHING, OFF in again.out) == (again.out.removeprefix(greeting()).splitlines()[0], True)


def test_continue_goes_on_with_the_session_used_last(cli, configured):
    """`--continue` takes the newest session of the given user, and begins a new one where the user has none."""
    configured()
    first = cli("chat", "--continue", stdin="")
    cli("run", "hello", "--session", "older", "--user", "ada")
    cli("run", "hello", "--session", "newer")
    one, other = cli("chat", "-c", stdin=""), cli("chat", "-c", "--user", "ada", stdin="")

    assert "session session-" in first.out
    assert (f"{greeting('newer')}\n", f"{greeting('older')}\n") == (one.out, other.out)


def test_continue_passes_over_sessions_in_which_nothing_was_said(cli, configured):
    """`--continue` skips a session without messages, whose only turn was dropped."""
    configured()
    cli("run", "hello", "--session", "said")
    configured(provider={"kind": "openai", "baseUrl": "http://127.0.0.1:1/v1", "model": "m", "maxRetries": 0})
    assert 4 == cli("run", "hello", "--session", "silent").code
    configured()

    assert f"{greeting('said')}\n" == cli("chat", "-c", stdin="").out


def test_skills(cli, scratch, configured):
    """`--skill` activates a skill from the start; an unknown one is an error before the first prompt."""
    (scratch / ".beaver" / "skills" / "one").mkdir(parents=True)
    (scratch / ".beaver" / "skills" / "one" / "SKILL.md").write_text("---\nname: one\ndescription: d\n---\nBe one.\n")
    configured()

    assert "Active: one\n" in cli("chat", "--skill", "one", stdin="/skill\n").out
    assert (2, "", True) == ((ran := cli("chat", "--skill", "two")).code, ran.out, "there is no skill `two`" in ran.err)


def test_a_memory_that_is_not_well_is_said(cli, install, configured, scratch):
    """The chat reports a memory that an earlier process left degraded, and reports once when it works again."""
    install("flaky", FLAKY)
    configured()
    (scratch / "broken").touch()
    cli("run", "hello")
    (scratch / "broken").unlink()
    ran = cli("chat", "--session", "s", stdin="hello\nbreak\nagain\n")
    lines = ran.out.removeprefix(greeting()).splitlines()

    since = "! flaky is degraded since "
    assert [since, NOTHING, "! flaky works again", NOTHING, since, NOTHING, "! flaky works again", ""] == [
        line[: len(since)] if line.startswith(since) else line for line in lines
    ]


def test_failures_do_not_end_the_conversation(cli, install, configured):
    """A plugin's command that raises and an answer that cannot be stored are reported; the next prompt is answered."""
    install("flaky", FLAKY)
    configured()
    ran = cli("chat", "--session", "s", stdin="hello\n/memory flaky fail\nlose it\nagain\n")

    unexpected, lost = [line for line in ran.err.splitlines() if line.startswith("! ")]
    first, degraded, *rest = ran.out.removeprefix(greeting()).splitlines()
    assert (6, NOTHING, [NOTHING, NOTHING, ""]) == (ran.code, first, rest)
    assert (True, False) == (degraded.startswith("! flaky is degraded since "), "nobody" in ran.err + ran.out)
    assert "! `flaky fail` failed unexpectedly (EOFError); `beaver audit tail` shows the failure." == unexpected
    assert lost.startswith("! The answer could not be stored, so the turn was dropped. ")


def test_a_provider_that_fails_is_said(cli, configured):
    """The chat reports a model that it cannot reach, and goes on until the input ends."""
    configured(provider={"kind": "openai", "baseUrl": "http://127.0.0.1:1/v1", "model": "m", "maxRetries": 0})
    ran = cli("chat", stdin="one\ntwo\n")

    assert (4, 2, True) == (ran.code, ran.err.count("! "), ", model m, session " in ran.out)


def test_the_code_of_a_piped_conversation_is_that_of_its_first_failure(cli, install, configured):
    """The exit code of a piped conversation is that of its first failure, also when later prompts succeed."""
    install("flaky", FLAKY)
    configured()
    lines = "hello\nlose it\n/memory flaky fail\nagain\n"

    assert 5 == cli("chat", "--session", "s", stdin=lines).code
    assert 0 == cli("chat", "--session", "s", stdin="again\n").code


def typing(monkeypatch, *lines):
    """Let the user type these lines and keys, then Ctrl-D; return the prompts that stand before them."""
    left, prompts = iter(lines), []

    def typed(prompt):
        prompts.append(prompt)
        line = next(left, EOFError)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr(builtins, "input", typed)
    return prompts


def test_at_a_terminal_failures_are_no_exit_code(cli, configured, monkeypatch):
    """At a terminal the conversation exits with 0, because the user has read its failures."""
    configured()
    typing(monkeypatch, "/nope")

    assert 0 == cli("chat", terminal=True).code


def test_the_end_of_the_process_is_no_prompt_taken_back(cli, configured, monkeypatch):
    """A signal at the prompt ends the conversation with the exit code of that signal."""
    configured()
    monkeypatch.setattr(builtins, "input", lambda _prompt: os.kill(os.getpid(), signal.SIGTERM))

    assert (143, True) == ((ran := cli("chat", terminal=True)).code, ran.err.endswith("Interrupted.\n"))


async def test_an_error_does_not_stand_behind_an_answer(cli, configured):
    """An answer that breaks off ends its line, so that the next answer begins on one of its own."""
    async with serve(BROKEN_OFF, streamed("Good ", "morning")) as server:
        configured(provider={"kind": "openai", "baseUrl": server.base_url, "model": "m", "maxRetries": 0})
        ran = await asyncio.to_thread(cli, "chat", "--session", "s", stdin="one\ntwo\n")

    assert (4, f"{greeting().replace('offline', 'm')}Hel\nGood morning\n\n") == (ran.code, ran.out)


@pytest.mark.usefixtures("cut")
def test_an_answer_that_was_cut_off_is_said(cli, configured):
    """A line after the answer reports that the provider cut it off."""
    configured()
    ran = cli("chat", "--session", "s", stdin="hello\n")

    assert (0, f"{greeting()}{NOTHING}\n! {CUT}\n\n") == (ran.code, ran.out)


def test_a_reader_that_has_enough_ends_it(configured):
    """The conversation ends without output on stderr when the reader of stdout is gone, though more input follows."""
    configured()
    command = [sys.executable, "-m", "beaver_hooks.cli", "chat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        greeted = [process.stdout.readline(), process.stdout.readline()]
        process.stdout.close()
        process.stdin.write("/help\n")
        process.stdin.flush()
        said = process.stderr.read()

    assert ("/help lists the commands, Ctrl-D ends the chat.\n", 1, "") == (greeted[1], process.returncode, said)


def test_what_cannot_be_loaded_is_said(cli, configured):
    """Where a missing plugin keeps the agent from loading, the chat exits with 6 and prints nothing on stdout."""
    configured(plugins={"disabled": ["curated"]})
    ran = cli("chat", stdin="hello\n")

    assert (6, "") == (ran.code, ran.out)


@pytest.mark.parametrize("terminal", [True, False])
def test_ctrl_c_at_the_prompt_keeps_the_conversation(cli, configured, monkeypatch, terminal):
    """Ctrl-C at the prompt discards only that line; at a terminal the chat names the key that ends it."""
    configured()
    typing(monkeypatch, KeyboardInterrupt, "hello")
    ran = cli("chat", "--session", "s", terminal=terminal)

    taken = "\nThe prompt was cancelled. Ctrl-D ends the chat.\n" if terminal else "\n"
    assert (0, f"{greeting()}{taken}{NOTHING}\n\n") == (ran.code, ran.out)


def test_what_was_said_before_is_offered(cli, configured, monkeypatch):
    """The arrow keys bring back the session's prompts of one line; the prompt of the terminal marks continued lines."""
    configured()
    cli("chat", "--session", "s", stdin="first\none\\\ntwo\nlast\n")
    prompts = typing(monkeypatch, "a\\", "b")
    readline.clear_history()
    ran = cli("chat", "--session", "s", terminal=True)
    offered = [readline.get_history_item(at + 1) for at in range(readline.get_current_history_length())]

    assert (0, ["first", "last"]) == (ran.code, offered)
    assert ["you> ", "...> ", "you> "] == prompts


def test_a_python_without_readline_is_enough(cli, configured, monkeypatch):
    """A Python without readline runs the chat, only without arrow keys."""
    configured()
    monkeypatch.setitem(sys.modules, "readline", None)

    assert 0 == cli("chat", stdin="/exit\n", terminal=True).code


class Typist:
    """The other end of a terminal."""

    def __init__(self, end):
        self._end = end
        self.seen = ""
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(end, self._read)

    def _read(self):
        # Linux reports an error once no process has the terminal open.
        with contextlib.suppress(OSError):
            if piece := os.read(self._end, 4096):
                self.seen += piece.decode("utf-8", "replace")
                self._more.set()
                return
        asyncio.get_running_loop().remove_reader(self._end)

    def type(self, text):
        os.write(self._end, text.encode())

    async def until(self, text):
        """Wait until `text` is on the screen; return the text before it, and forget both."""
        while text not in self.seen:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), 30)
        before, _, self.seen = self.seen.partition(text)
        return before


@contextlib.asynccontextmanager
async def at_terminal(*words):
    """Start `beaver` at a terminal of its own; give the process and its typist."""
    outer, inner = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ON_TERMINAL, *words, stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
        env=os.environ | {"TERM": "dumb", "INPUTRC": os.devnull},
    )  # fmt: skip
    os.close(inner)
    typist = Typist(outer)
    try:
        yield process, typist
    finally:
        asyncio.get_running_loop().remove_reader(outer)
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(outer)


async def test_ctrl_c_takes_back_the_turn_and_keeps_the_session(configured):
    """At a real terminal Ctrl-C takes back a prompt during the answer; the model gets the next one without it."""
    async with serve(streamed("Hel", end="hang"), streamed("Good ", "morning")) as server:
        path = configured(provider={"kind": "openai", "baseUrl": server.base_url, "model": "m", "maxRetries": 0})
        async with at_terminal("chat", "--session", "s") as (process, typist):
            await typist.until("you> ")
            typist.type("lost\n")
            await typist.until("Hel")
            typist.type("\x03")
            await typist.until("The prompt was cancelled. Ctrl-D ends the chat.")
            await server.gone.wait()
            await typist.until("you> ")
            typist.type("hello\n")
            await typist.until("Good morning")
            await typist.until("you> ")
            typist.type("\x04")
            code = await asyncio.wait_for(process.wait(), 30)

    second = [each["content"] for each in server.requests[1].json["messages"] if each["role"] != "system"]
    assert (0, ["hello"], ["hello", "Good morning"]) == (code, second, await said(path))


def test_an_answer_is_rendered_on_a_terminal(cli, configured, monkeypatch):
    """A terminal shows rendered Markdown; a pipe gets the text of the model unchanged."""
    configured()

    async def marked(self, messages, *, tools=(), on_delta=None):
        for piece in ("# Tea", "\n\n- gre", "en\n- **black**\n"):
            on_delta(piece)
        return Completion(text="# Tea\n\n- green\n- **black**\n")

    monkeypatch.setattr(OfflineProvider, "complete", marked)
    piped = cli("chat", "--session", "s", stdin="hello\n").out
    typing(monkeypatch, "hello")
    monkeypatch.setenv("TERM", "xterm")
    shown = cli("chat", "--session", "t", terminal=True).out

    assert f"{greeting()}# Tea\n\n- green\n- **black**\n\n" == piped
    assert (True, True, False) == (
        " \u2022 \x1b[0mgreen" in shown, "\x1b[1mblack\x1b[0m" in shown, "**" in shown,
    )  # fmt: skip


def test_a_tool_stands_before_the_answer(cli, configured, monkeypatch):
    """On a terminal too the line of a tool, with the text that it saved, comes before the answer."""
    configured()
    monkeypatch.setenv("NO_COLOR", "1")
    typing(monkeypatch, "remember that I like tea")
    monkeypatch.setenv("TERM", "xterm")
    shown = cli("chat", "--session", "s", terminal=True).out.removeprefix(greeting()).splitlines()

    assert ['  [memory add user "I like tea": done]', "The tool memory answered: Entry added."] == [
        each.rstrip() for each in shown[:2]
    ]


def test_why_explains_the_last_answer(cli, configured):
    """`/why` shows the same receipt of the newest turn as `beaver why`, once the plugins have processed that turn."""
    configured()
    ran = cli("chat", "--session", "s", stdin="hello\n/why\n/help\n")
    receipt = cli("why").out.partition("\n\nPlugins that are out")[0]

    assert (0, True, True) == (ran.code, receipt in ran.out, "/why      what memory recalled" in ran.out)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/why", "! this session has no answer yet; `beaver why` explains the last turn of any session.\n"),
        ("/why me", "! /why takes no words; `beaver why TURN` explains an earlier turn.\n"),
    ],
)
def test_why_without_an_answer(cli, configured, line, said):
    """Without an answer in this session, or with a word after it, `/why` names the command to use instead."""
    configured()

    assert (2, said) == ((ran := cli("chat", stdin=line)).code, ran.err)


def test_why_without_a_receipt(cli, configured, monkeypatch):
    """Where no receipt is kept, `/why` reports that and names `beaver doctor`."""
    configured()

    async def none(_host, _turn):
        return None

    monkeypatch.setattr(Host, "receipt", none)

    assert (
        "! no receipt of the last turn is kept; `beaver doctor` shows the details.\n"
        == cli("chat", stdin="hi\n/why\n").err
    )


def test_going_on_shows_the_end_of_the_session(cli, configured, monkeypatch):
    """On a terminal `-c` shows the last messages, of a long one its last lines; a pipe gets none."""
    configured()
    monkeypatch.setenv("NO_COLOR", "1")
    said = ["first", "second", "\\\n".join(map(str, range(1, 11)))]
    cli("chat", "--session", "s", stdin="".join(f"{each}\n" for each in said))
    typing(monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    shown, piped = cli("chat", "-c", terminal=True).out, cli("chat", "-c").out

    last = "\n".join(map(str, range(3, 11)))
    assert f"{greeting()}you> second\n{NOTHING}\nyou> [...]\n{last}\n{NOTHING}\n\n" == shown
    assert f"{greeting()}\n" == piped


def test_a_missing_key_is_complained_of_at_the_start(cli, configured):
    """The conversation reports a missing API key before the first prompt, by its setting and its variable."""
    path = configured()
    key = {"kind": "openai", "baseUrl": "http://127.0.0.1:1/v1", "model": "m", "apiKey": {"env": "NOT_SET_ANYWHERE"}}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"provider": key}))
    ran = cli("chat", stdin="/exit\n")

    assert (0, 1, True) == (ran.code, ran.err.count("\n"), "NOT_SET_ANYWHERE" in ran.err)
    assert "! provider.apiKey " == ran.err[:18]


async def test_tab_completes(configured):
    """At a real terminal Tab completes a slash command, a plugin's name, and that plugin's command."""
    configured()
    async with at_terminal("chat", "--session", "s") as (process, typist):
        await typist.until("you> ")
        typist.type("/mem\tcur\tsh\t\n")
        await typist.until("/memory curated show")
        await typist.until("you> ")
        typist.type("\x04")
        code = await asyncio.wait_for(process.wait(), 30)

    assert 0 == code
