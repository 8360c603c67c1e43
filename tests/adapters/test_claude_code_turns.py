"""The real Claude Code, the installed hooks, and the resident process that they start: nothing stands in for anything."""

import asyncio
import json
import os
import select
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from adapters import harness_claude_code
from adapters.fake_anthropic import called, cli, environment, refused, said, serve, texts
from adapters.harness_claude_code import ClaudeCodeHarness

from beaver_hooks.coding_agents.claude_code import client
from beaver_hostspecs.conformance import Ask, Say
from beaver_hostspecs.conformance.probes import RECALLED, Probe

pytestmark = pytest.mark.skipif(cli() is None, reason="the `claude` that claude-agent-sdk bundles is not here")

CURATED = {"memory": {"mode": "curated"}, "plugins": {"disabled": ["tally", "gateway"]}}
FOREIGN = b'{"env": {"A": "b"}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}'
TIMEOUT = 30


class Place:
    """A home, a project, and what runs in it."""

    def __init__(self, folder, base_url):
        self.project = folder / "project"
        self.settings = folder / "claude" / "settings.json"
        self.environment = environment(folder, base_url) | {"XDG_RUNTIME_DIR": str(folder / "run")}
        for each in (self.project, folder / "claude", folder / "run"):
            each.mkdir()

    async def run(self, *command, check=True):
        process = await asyncio.create_subprocess_exec(
            *map(str, command), cwd=self.project, env=self.environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), TIMEOUT)
        assert not (check and process.returncode), (out, err)
        return out.decode()

    async def beaver(self, *words, check=True):
        return await self.run(sys.executable, "-m", "beaver_hooks.cli", *words, check=check)

    async def claude(self, prompt, *more, check=True):
        return await self.run(cli(), "-p", prompt, "--model", "claude-haiku-4-5", *more, check=check)

    async def status(self):
        return json.loads(await self.beaver("hooks", "status", "--json", check=False))

    def end(self, number=signal.SIGTERM):
        """End the resident, if there is one, and wait for that."""
        request = json.dumps({"hook_event_name": client.STATUS}).encode()
        path = client.socket_path([], {**self.environment, "CLAUDE_PROJECT_DIR": str(self.project)})
        if Path(path).exists():
            pid = json.loads(client.ask(path, request, TIMEOUT))["pid"]
            descriptor = os.pidfd_open(pid)
            os.kill(pid, number)
            ended, _, _ = select.select([descriptor], [], [], TIMEOUT)
            os.close(descriptor)
            assert ended


@pytest.fixture
def folder():
    """A folder with a name that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="bc-") as name:
        yield Path(name)


def configure(place, raw):
    path = place.project / ".beaver" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(raw))


def ends(trail):
    """Return how turns ended, in order, as the audit trail has it."""
    events = [json.loads(line) for line in trail.splitlines()]
    told = [(each["name"], each["facts"].get("reason")) for each in events]
    return [each for each in told if each[0] in {"turn_committed", "turn_dropped"}]


async def test_from_installing_to_uninstalling(folder):
    """Turns are recalled for and committed, one that failed is dropped, and the settings are as they were."""

    async def answer(request):
        told = [text for _, text in texts(request)]
        if "Third?" not in told:
            return refused() if "Second?" in told else said("One.")
        ran = "tool_result" in json.dumps(request["messages"])
        return said("Three.") if ran else called("Bash", {"command": "echo hi", "description": "Say hi"})

    async with serve(answer=answer) as fake:
        place = Place(folder, fake.base_url)
        place.settings.write_bytes(FOREIGN)
        configure(place, CURATED)
        await place.beaver("trust", "--yes")
        await place.beaver("hooks", "install", "claude-code")
        try:
            answers = [await place.claude("First?"), await place.claude("Second?", check=False)]
            answers.append(await place.claude("Third?", "--continue", "--allowedTools", "Bash"))
            found = await place.status()
        finally:
            place.end()
        trail = await place.beaver("audit", "tail", "--json", "-n", "100")
        await place.beaver("hooks", "uninstall", "claude-code")

    assert ("One.\n", "Three.\n") == (answers[0], answers[2])
    assert 1 == fake.all_text(0).count("Curated memory: the blocks")
    assert ("installed", "on", 0) == (
        found["files"][0]["state"],
        found["memory"][0]["resident"]["memory"],
        found["memory"][0]["resident"]["open_turns"],
    )
    assert [("turn_committed", None), ("turn_dropped", "abandoned"), ("turn_committed", None)] == ends(trail)
    assert FOREIGN == place.settings.read_bytes()


async def test_a_configuration_that_nobody_confirmed(folder):
    """Memory is off, the turn is what it would be without hooks, and the status says why."""
    async with serve(said("One.")) as fake:
        place = Place(folder, fake.base_url)
        configure(place, CURATED)
        await place.beaver("hooks", "install", "claude-code")
        try:
            answer = await place.claude("First?")
            found = await place.status()
        finally:
            place.end()

    (memory,) = found["memory"]
    assert "One.\n" == answer
    assert not any("hook additional context" in text for _, text in texts(fake.requests[0]))
    assert "is not confirmed" in memory["problem"]
    assert ("off", True) == (memory["resident"]["memory"], memory["resident"]["failed"])


async def test_what_is_installed_and_gone(folder):
    """An installation whose interpreter is gone costs no turn."""
    async with serve(said("One.")) as fake:
        place = Place(folder, fake.base_url)
        await place.beaver("hooks", "install", "claude-code")
        settings = place.settings.read_bytes()
        place.settings.write_bytes(settings.replace(sys.executable.encode(), b"/gone/python"))

        assert "One.\n" == await place.claude("First?")


async def test_another_model(monkeypatch):
    """With some models references are a message of the system's, after the user's text: the card says so."""
    monkeypatch.setattr(harness_claude_code, "MODEL", "claude-opus-5-5")
    harness, probe = ClaudeCodeHarness(), Probe()
    try:
        await harness.open({"probe": probe})
        await harness.run(Ask(prompt="First?", steps=(Say(text="One."),)))
    finally:
        await harness.close()
    messages = harness.calls[0].messages
    index, role = next((index, each.role) for index, each in enumerate(messages) if RECALLED in each.text)

    assert ("system", True) == (role, index > [each.text for each in messages].index("First?"))
    assert {"reference_placement", "reference_role"} <= set(harness.card.notes)
