"""`beaver run` as a process of its own, against an OpenAI-compatible server on the loopback interface."""

import asyncio
import json
import os
import subprocess
import sys

import processes
import pytest
from integration.openai_server import call, serve, status, streamed, whole
from processes import Ran

TIMEOUT = 30
KEY = "sk-canary-4711-run"


@pytest.fixture
def beaver(tmp_path):
    """Return a function that runs `beaver` in a folder of its own."""

    async def run(*arguments, stdin=b"", cwd=tmp_path, **environment):
        return await processes.beaver(*arguments, cwd=cwd, env=surroundings(cwd, **environment), stdin=stdin)

    return run


async def start(*arguments, cwd, **environment):
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "beaver_hooks.cli", *arguments,
        cwd=cwd, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=surroundings(cwd, **environment),
    )  # fmt: skip


def surroundings(folder, **more):
    return processes.environment(XDG_STATE_HOME=folder / "state", TEST_KEY=KEY) | more


@pytest.fixture
def configure(tmp_path):
    """Return a function that writes the configuration of the README: six lines, and no example plugin."""

    def write(server, **more):
        path = tmp_path / "config.json"
        provider = {"kind": "openai", "baseUrl": server.base_url, "model": "m", "apiKey": {"env": "TEST_KEY"}}
        raw = {
            "memory": {"mode": "curated"},
            "plugins": {"disabled": ["tally"]},
            "provider": provider,
            "host": {"stateFolder": "kept"},
            "agent": {"systemPrompt": "Base."},
        }
        path.write_text(json.dumps(raw | more))
        return str(path)

    return write


def told(server):
    """Return the messages of each request."""
    return [request.json["messages"] for request in server.requests]


def said(role, content):
    return {"role": role, "content": content}


@pytest.mark.parametrize("stream", [True, False])
async def test_the_provider_gets_these_messages_and_no_others(beaver, configure, stream):
    """System prompt, history and prompt, in this order; in the second run of a session the first exchange is history."""
    answer = streamed if stream else lambda *texts: whole("".join(texts))
    async with serve(answer("On ", "Thursday."), answer("Kim.")) as server:
        config = configure(server)
        how = "--stream" if stream else "--no-stream"
        first = await beaver("run", "When do we release?", "--session", "s 1", "--config", config, how)
        second = await beaver("run", "--config", config, "--session", "s 1", how, "Who tests it?")

    system = told(server)[0][0]
    history = [said("user", "When do we release?"), said("assistant", "On Thursday.")]
    assert (Ran(out="On Thursday.\n", err="", code=0), Ran(out="Kim.\n", err="", code=0)) == (first, second)
    assert system["content"].startswith("Base.\n\n")
    assert [[system, history[0]], [system, *history, said("user", "Who tests it?")]] == told(server)
    assert [stream] * 2 == [request.json.get("stream", False) for request in server.requests]
    assert [f"Bearer {KEY}"] * 2 == [request.headers["authorization"] for request in server.requests]


async def test_a_skill_is_sent_before_the_history_and_stored_nowhere(beaver, configure, tmp_path):
    """A skill's activation is a message of the user after the system prompt, and is not stored in the session."""
    folder = tmp_path / "skills" / "review"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: review\ndescription: How we review.\n---\nBe kind.\n")
    async with serve(whole("One."), whole("Two.")) as server:
        config = configure(server, agent={"systemPrompt": "Base.", "skillFolders": ["skills"]})
        await beaver("run", "First.", "--session", "s", "--config", config)
        ran = await beaver("run", "Second.", "--session", "s", "--skill", "review", "--config", config)
        shown = await beaver("sessions", "show", "s", "--json", "--config", config)

    roles = [(message["role"], message["content"].splitlines()[-1][:12]) for message in told(server)[1]]
    assert ("Two.\n", 0) == (ran.out, ran.code)
    assert [("user", "End of the s"), ("user", "First."), ("assistant", "One."), ("user", "Second.")] == roles[1:]
    assert "Be kind." not in shown.out


async def test_tools_run_and_the_result_is_one_json_object(beaver, configure):
    """The tool's answer goes back to the model; `--json` prints one object with the documented keys."""
    arguments = json.dumps({"action": "add", "target": "memory", "content": "The release is on Thursday."})
    async with serve(whole("", calls=[call("memory", arguments)]), whole("Noted.")) as server:
        config = configure(server)
        ran = await beaver("run", "Note it: Thursday.", "--session", "s", "--json", "--config", config)
        why = await beaver("why", "--json", "--config", config)
        hidden = await beaver("sessions", "show", "s", "--hidden", "--json", "--config", config)

    found = json.loads(ran.out)
    turn = found["turnId"]
    (tool,) = found.pop("toolCalls")
    assert {
        "text": "Noted.",
        "status": "completed",
        "sessionId": "s",
        "turnId": turn,
        "usage": {"inputTokens": 22, "outputTokens": 14},
        "receiptId": turn,
    } == found
    assert ("call-1", "memory", "success") == (tool["id"], tool["name"], tool["outcome"])
    assert ["assistant", "tool"] == [message["role"] for message in told(server)[1][2:]]
    assert turn in why.out
    assert "turn_committed" in hidden.out
    assert [] == [each for each in (ran, why, hidden) if KEY in each.out + each.err]


async def test_a_provider_that_refuses(beaver, configure):
    """The command prints one sentence with a remedy, exits with 4, and stores no prompt in the session."""
    async with serve(status(401, f"wrong key {KEY}"), whole("Better.")) as server:
        config = configure(server)
        failed = await beaver("run", "Hello.", "--session", "s", "--config", config)
        ran = await beaver("run", "Again.", "--session", "s", "--config", config)

    expected = "Error: The provider does not accept the credential (HTTP 401). Set provider.apiKey to a valid key.\n"
    assert Ran(out="", err=expected, code=4) == failed
    assert ("Better.\n", [said("user", "Again.")]) == (ran.out, told(server)[1][1:])


async def test_a_cloned_folder_is_asked_about_before_anything_is_sent(beaver, tmp_path):
    """A configuration that merely lies there names a server and a variable: nothing is contacted, exit code 3."""
    async with serve(whole("Gotcha.")) as server:
        folder = tmp_path / "cloned" / ".beaver"
        folder.mkdir(parents=True)
        provider = {"kind": "openai", "baseUrl": server.base_url, "model": "m", "apiKey": {"env": "TEST_KEY"}}
        (folder / "config.json").write_text(json.dumps({"memory": {"mode": "curated"}, "provider": provider}))
        cwd = folder.parent
        refused = await beaver("run", "Hello.", cwd=cwd)
        contacted = server.connections
        trusted = await beaver("trust", "--yes", cwd=cwd)
        ran = await beaver("run", "Hello.", cwd=cwd)

    assert ("", 3, 0) == (refused.out, refused.code, contacted)
    assert "is not confirmed" in refused.err
    assert (0, "Gotcha.\n") == (trusted.code, ran.out)


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        (b"a\0b", "a\ufffdb"),
        (b"broken \xff byte", "broken \ufffd byte"),
        ("Grüße 🦫\n".encode(), "Grüße 🦫\n"),
        (b"x" * 1_000_000, "x" * 1_000_000),
    ],
    ids=["nul", "surrogate", "unicode", "megabyte"],
)
async def test_odd_prompts_arrive(beaver, configure, prompt, sent):
    """A character that UTF-8 cannot encode becomes U+FFFD; the rest of the prompt arrives unchanged at any length."""
    async with serve(whole("Yes.")) as server:
        ran = await beaver("run", "-", "--config", configure(server), stdin=prompt)

    assert (Ran(out="Yes.\n", err="", code=0), sent) == (ran, told(server)[0][-1]["content"])


@pytest.mark.parametrize("prompt", [b"", b" \n\t ", b"\0\0"])
async def test_a_prompt_that_says_nothing_is_refused(beaver, configure, prompt):
    """Nothing is sent, and the exit code is that of a wrong command line."""
    async with serve() as server:
        ran = await beaver("run", "-", "--config", configure(server), stdin=prompt)

    assert (Ran(out="", err="Error: the prompt is empty; write one.\n", code=2), 0) == (ran, server.connections)


LIMITED = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); from beaver_hooks.cli import main; main()"
"""Runs `beaver` where no file can grow beyond some bytes, as on a full disk."""


@pytest.mark.campaign
async def test_a_full_disk_loses_no_answer(beaver, configure, tmp_path):
    """The command prints the answer and the reason why it is not stored, and leaves the session as it was."""
    async with serve(whole("One."), whole("Two."), whole("Three.")) as server:
        config = configure(server)
        first = await beaver("run", "First.", "--session", "s", "--config", config)
        long = "Second. " + "word " * 25_000
        size = max(each.stat().st_size for each in (tmp_path / "kept").iterdir() if each.is_file())
        full = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", LIMITED.format(size=size), "run", long, "--session", "s", "--config", config],
            cwd=tmp_path, env={**os.environ, "TEST_KEY": KEY}, capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        third = await beaver("run", "Third.", "--session", "s", "--config", config)

    history = [message["content"] for message in told(server)[-1][1:]]
    assert ("One.\n", "Two.\n", 5, "Three.\n") == (first.out, full.stdout, full.returncode, third.out)
    assert "Error: The answer could not be stored, so the turn was dropped." in full.stderr
    assert ["First.", "One.", "Third."] == history


async def test_a_state_folder_that_cannot_be_made(beaver, configure, tmp_path):
    """The command names the path and the remedy before it sends anything."""
    (tmp_path / "file").write_text("in the way")
    async with serve() as server:
        ran = await beaver("run", "Hello.", "--config", configure(server, host={"stateFolder": "file/kept"}))

    assert ("", 5, 0) == (ran.out, ran.code, server.connections)
    assert f"Error: The state folder {tmp_path}/file/kept cannot be used" in ran.err
    assert "\n" not in ran.err.rstrip()
