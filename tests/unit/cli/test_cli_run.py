"""`beaver run`: one prompt, one answer, and nothing else on stdout."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from integration.openai_server import Reply, Server, chunk, event, events, serve, whole

from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.providers.offline import NOTHING, OfflineProvider
from beaver_hooks.cli import run
from beaver_hooks.cli.terminal import CUT

BROKEN_OFF = events(event(chunk({"content": "Hel"})), end="cut")
KEYS = {"text", "status", "sessionId", "turnId", "toolCalls", "usage", "receiptId"}

DELETING = """
    import apsw
    from beaver_hostspecs import hookimpl

    class Plugin:
        @hookimpl
        async def before_prompt(self, turn):
            if turn.prompt == "lose it":
                connection = apsw.Connection(".beaver/sessions.db")
                connection.set_busy_timeout(10_000)
                connection.execute("DELETE FROM sessions")
                connection.close()
"""

WATCHING = """
    from pathlib import Path
    from beaver_hostspecs import hookimpl

    class Plugin:
        @hookimpl
        async def before_prompt(self, turn):
            with Path("seen").open("a") as file:
                file.write(f"{turn.trust.value} {turn.user} {turn.prompt}\\n")
"""

WAITING = """
    import asyncio
    from pathlib import Path
    from beaver_hostspecs import Deadlines, PluginInfo, hookimpl

    class Plugin:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", deadlines=Deadlines(after_prompt=60))

        @hookimpl
        async def after_prompt(self, answer):
            said = await asyncio.to_thread(Path("gate").read_text)
            Path("learned").write_text(f"{answer.text} {said}")
"""


def openai(server: Server) -> dict[str, object]:
    return {"kind": "openai", "baseUrl": server.base_url, "model": "m", "maxRetries": 0}


async def started(*words):
    """Start `beaver` as a process of its own."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "beaver_hooks.cli", *words)
    return await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)


async def stored(path, session="s"):
    """Return the messages of a session, and the names of its hidden events."""
    async with await EngineLoader(path).load() as engine:
        shown = await engine.sessions.show(session, hidden=True)
    return [each.text for each in shown.messages], {each.name for each in shown.events}


def test_the_answer_alone_is_on_stdout(cli, configured):
    """Without a terminal stdout has the answer with a line end, and stderr is empty."""
    configured()

    assert (0, f"{NOTHING}\n", "") == cli("run", "hello")


def test_json_is_one_object_with_the_documented_keys(cli, configured):
    """`--json` prints exactly the documented keys, on a terminal and with `--stream` too."""
    configured()
    ran = cli("run", "remember that I like tea", "--json", "--session", "s", "--stream", terminal=True)

    (line,) = ran.out.splitlines()
    result = json.loads(line)
    (called,) = result["toolCalls"]
    assert (0, "", KEYS) == (ran.code, ran.err, {*result})
    assert ("completed", "s", "memory", "success") == (
        result["status"],
        result["sessionId"],
        called["name"],
        called["outcome"],
    )
    assert {"inputTokens", "outputTokens"} == {*result["usage"]}
    assert result["turnId"] == result["receiptId"]


def test_the_help_names_the_keys(cli):
    """The help documents every key that `--json` prints."""
    assert [] == [key for key in KEYS if key not in cli("run", "--help").out]


@pytest.mark.parametrize(
    ("typed", "kept"), [(b"two\nlines\n", "two\nlines\n"), (b"caf\xe9\0", "caf\ufffd\ufffd"), ("日本".encode(), "日本")]
)
async def test_a_dash_reads_the_prompt_from_stdin(cli, configured, typed, kept):
    """`-` takes all of stdin as the prompt, and replaces bytes that are not UTF-8."""
    path = configured()
    ran = await asyncio.to_thread(cli, "run", "-", "--session", "s", stdin=typed)

    assert (0, [kept, NOTHING]) == (ran.code, (await stored(path))[0])


@pytest.mark.parametrize("session", ["s", "Ünï/../cörn", " a 'b' ", "--session"])
def test_the_session_is_used_as_it_is(cli, configured, session):
    """The given id is the id of the session, and the next run continues that session."""
    configured()
    first = cli("run", "the map hangs in the hall", f"--session={session}", "--json")
    second = cli("run", "where hangs the map?", f"--session={session}", "--json")

    assert [session, session] == [first.json["sessionId"], second.json["sessionId"]]
    assert "the map hangs in the hall" in second.json["text"]


def test_a_session_stays_its_users(cli, configured):
    """A session belongs to its `--user`: a run of another user is refused."""
    configured()

    assert 0 == cli("run", "hello", "--session", "s", "--user", "ada").code
    assert (2, "") == cli("run", "hello", "--session", "s", "--user", "bob")[:2]


@pytest.mark.parametrize(
    ("configuration", "given", "seen"),
    [
        (None, None, "full"),
        (None, "inner", "inner"),
        ("familiar", None, "familiar"),
        ("familiar", "full", "familiar"),
        ("familiar", "public", "public"),
    ],
)
def test_trust(cli, install, configured, *, configuration, given, seen):
    """`--trust` lowers `agent.trust` and never raises it; without the option the configured trust applies, or full."""
    install("watching", WATCHING)
    configured(**({} if configuration is None else {"agent": {"trust": configuration}}))
    ran = cli("run", "hello", *([] if given is None else ["--trust", given]))

    assert (0, f"{seen} None hello\n") == (ran.code, Path("seen").read_text())


def test_what_the_owner_said_is_not_shown_at_less_trust(cli, configured):
    """A run with less trust sees neither the owner's files nor a session of more trust."""
    configured()
    cli("run", "remember that I like tea", "--session", "s")
    stranger = cli("run", "what do I like?", "--trust", "public")
    again = cli("run", "what do I like?", "--trust", "public", "--session", "s")

    # One line on stderr with the remedy reports the memory left out.
    assert (0, f"{NOTHING}\n", 1, True) == (*stranger[:2], stranger.err.count("\n"), "use trust `full`" in stranger.err)
    assert (2, "") == again[:2]
    assert "Error: The session was started with more trust; leave the id out to start a new session.\n" == again.err


def test_an_unknown_trust_is_refused(cli, configured, scratch):
    """An unknown trust, as option or setting, is an error that lists the known ones, and no state folder is made."""
    configured()
    word = cli("run", "hello", "--trust", "boss")
    configured(agent={"trust": "boss"})
    field = cli("run", "hello")

    assert ((2, ""), (3, "")) == (word[:2], field[:2])
    assert "'boss' is not one of 'full', 'inner', 'familiar', 'public'" in word.err
    assert "agent.trust: must be one of `full`, `inner`, `familiar`, `public`" in field.err
    assert not (scratch / ".beaver").exists()


def test_without_memory(cli, install, configured, scratch):
    """`--no-memory` asks no plugin and keeps nothing; memory stays off in that session until it is switched on."""
    install("watching", WATCHING)
    configured()
    quiet = cli("run", "one", "--no-memory", "--session", "s", "--user", "ada")
    cli("run", "two", "--session", "s", "--user", "ada")
    # Without an id the session is a new one, where memory is off too.
    new = cli("run", "three", "--no-memory", "--json").json["sessionId"]
    cli("run", "four", "--session", new)
    cli("run", "five", "--session", "other", "--user", "ada")
    cli("memory", "on", "s", "--user", "ada")
    cli("run", "six", "--session", "s", "--user", "ada")

    assert (0, f"{NOTHING}\n", "") == quiet
    assert "full ada five\nfull ada six\n" == (scratch / "seen").read_text()


@pytest.mark.parametrize(("first", "then"), [([], ["--user", "ada"]), (["--user", "ada"], [])])
def test_without_memory_in_a_session_of_a_user(cli, install, configured, *, first, then):
    """`--no-memory` holds for the whole session, for its named user and for the owner who continues it."""
    install("watching", WATCHING)
    configured()
    cli("run", "one", "--session", "s", "--user", "ada")
    cli("run", "two", "--no-memory", "--session", "s", *first)
    cli("run", "three", "--session", "s", *then)

    assert "full ada one\n" == Path("seen").read_text()


async def test_skills_reach_the_model(cli, scratch, configured):
    """`--skill` sends the instructions of each named skill to the model."""
    for name in ("one", "two", "three"):
        folder = scratch / ".beaver" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\nBe {name}.\n")
    async with serve(whole("yes")) as server:
        configured(provider=openai(server))
        ran = await asyncio.to_thread(cli, "run", "hello", "--skill", "one", "--skill", "two")

    sent = json.dumps(server.requests[0].json["messages"])
    assert (0, "yes\n", "") == ran
    assert [True, True, False] == [f"Be {name}." in sent for name in ("one", "two", "three")]


@pytest.mark.parametrize(
    ("words", "terminal", "streamed"),
    [
        ([], False, False),
        ([], True, True),
        (["--stream"], False, True),
        (["--no-stream"], True, False),
        (["--stream", "--json"], True, False),
    ],
)
def test_the_answer_is_streamed_on_a_terminal_or_when_asked(cli, configured, monkeypatch, *, words, terminal, streamed):
    """The provider streams where the answer is shown while it arrives; the printed text is the same."""
    configured()
    asked, complete = [], OfflineProvider.complete

    async def spied(self, messages, *, tools=(), on_delta=None):
        asked.append(on_delta is not None)
        return await complete(self, messages, tools=tools, on_delta=on_delta)

    monkeypatch.setattr(OfflineProvider, "complete", spied)
    ran = cli("run", "hello", *words, terminal=terminal)

    assert [streamed] == asked
    assert "--json" in words or f"{NOTHING}\n" == ran.out


@pytest.mark.parametrize("words", [[], ["--stream"]], ids=["plain", "stream"])
def test_an_answer_that_cannot_be_stored_is_not_lost(cli, install, configured, words):
    """An answer that the store loses is on stdout in a line of its own, and the error names the cause."""
    install("deleting", DELETING)
    configured()
    cli("run", "hello", "--session", "s")
    ran = cli("run", "lose it", "--session", "s", *words)

    assert (5, f"{NOTHING}\n") == ran[:2]
    assert "Error: The answer could not be stored, so the turn was dropped. " in ran.err


def test_with_json_an_answer_that_cannot_be_stored_is_on_stderr(cli, install, configured):
    """With `--json` stdout stays empty; stderr has the error, a line that announces the answer, and the answer."""
    install("deleting", DELETING)
    configured()
    cli("run", "hello", "--session", "s")
    ran = cli("run", "lose it", "--session", "s", "--json")
    *_, error, mark, answer = ran.err.splitlines()

    assert (5, "") == ran[:2]
    assert error.startswith("Error: The answer could not be stored, so the turn was dropped. ")
    assert ("The answer that could not be stored:", NOTHING) == (mark, answer)


@pytest.mark.campaign
async def test_an_error_does_not_stand_behind_a_streamed_answer(configured):
    """An answer that breaks off ends its line on stdout before the error on stderr."""
    async with serve(BROKEN_OFF) as server:
        configured(provider=openai(server))
        process = await started("run", "hello", "--stream")
        out, err = await process.communicate()

    assert (4, b"Hel\n", True) == (process.returncode, out, err.startswith(b"Error: "))


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("words", [[], ["--stream"], ["--json"]])
def test_an_answer_that_was_cut_off_is_said(cli, configured, words):
    """An answer that the provider cut off is printed, and stderr reports that its end is missing."""
    configured()
    ran = cli("run", "hello", *words)

    assert (0, f"{CUT}\n") == (ran.code, ran.err)
    assert ("truncated" if "--json" in words else f"{NOTHING}\n") == (
        ran.json["status"] if "--json" in words else ran.out
    )


@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, 2)])
def test_how_long_a_prompt_from_stdin_may_be(cli, configured, monkeypatch, more, code):
    """A prompt from stdin above the limit is refused."""
    configured()
    monkeypatch.setattr(run, "MOST_BYTES", 64)
    ran = cli("run", "-", stdin=b"x" * (64 + more))

    assert (code, more == 1) == (ran.code, "A prompt from stdin has at most 16 MiB; " in ran.err)


async def test_the_answer_is_printed_before_the_plugins_learn(install, configured, scratch):
    """A reader has the answer while a plugin still waits to learn from it; the process ends after the plugin."""
    install("patient", WAITING)
    configured()
    os.mkfifo(scratch / "gate")
    process = await started("run", "hello")
    answer = await asyncio.wait_for(process.stdout.readline(), 30)
    before = (scratch / "learned").exists()
    assert f"{NOTHING}\n" == answer.decode()
    # Opening the pipe waits for the plugin, which has the answer by then or soon.
    await asyncio.to_thread((scratch / "gate").write_text, "opened by the reader")
    rest = await process.communicate()

    assert (False, 0, (b"", b"")) == (before, process.returncode, rest)
    assert f"{NOTHING} opened by the reader" == (scratch / "learned").read_text()


async def test_ctrl_c_drops_the_turn(configured):
    """Ctrl-C while the model is silent exits with 130, drops the turn, and leaves the session without the prompt."""
    async with serve(Reply(parts=(b"{",), end="hang")) as server:
        path = configured(provider=openai(server))
        process = await started("run", "lost", "--session", "s")
        await asyncio.wait_for(server.arrived.wait(), 30)
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
        await server.gone.wait()
    messages, events = await stored(path)

    assert (130, b"", ["Interrupted."]) == (process.returncode, out, err.decode().split("\n")[-2:-1])
    assert ([], True, False) == (messages, "turn_dropped" in events, "turn_committed" in events)
