"""USER.md belongs to the person: real processes in two projects of one home directory."""

import asyncio
import json
import subprocess

import processes
import pytest
from integration.openai_server import call, serve, whole
from processes import GIT

TIMEOUT = 60


class Home:
    """A home directory with projects in it.

    Attributes:
        folder: the home directory.
    """

    def __init__(self, folder, server):
        self.folder, self._server = folder, server
        self.environment = processes.environment(**GIT, HOME=folder, XDG_STATE_HOME=folder / "state")
        self.curated = folder / ".beaver" / "plugins" / "curated"

    async def project(self, name, **curated):
        """Make a project with a confirmed configuration; return its folder for curated memory."""
        (self.folder / name / ".beaver").mkdir(parents=True)
        provider = {"kind": "openai", "baseUrl": self._server.base_url, "model": "m"}
        raw = {"memory": {"mode": "curated", "curated": curated}, "plugins": {"disabled": ["tally"]}}
        (self.folder / name / ".beaver" / "config.json").write_text(json.dumps(raw | {"provider": provider}))
        await self.beaver(name, "trust", "--yes")
        return self.folder / name / ".beaver" / "plugins" / "curated"

    async def beaver(self, name, *words, code=0):
        """Return what `beaver` prints in a project, both streams."""
        ran = await processes.beaver(*words, cwd=self.folder / name, env=self.environment)
        assert code == ran.code, ran
        return " ".join((ran.out + ran.err).split())

    async def asked(self, name, prompt="Hi."):
        """Return the first message that the model gets in a run, and what the run prints."""
        before = len(self._server.requests)
        printed = await self.beaver(name, "run", prompt)
        return self._server.requests[before].json["messages"][0]["content"], printed

    async def run(self, *command, cwd, code=0):
        ran = await asyncio.to_thread(
            subprocess.run, [str(each) for each in command], cwd=cwd, check=False, timeout=TIMEOUT,
            env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert code == ran.returncode, ran
        return " ".join((ran.stdout + ran.stderr).split())


def remembering(target, content):
    return whole("", calls=[call("memory", json.dumps({"action": "add", "target": target, "content": content}))])


async def test_what_is_told_in_one_project_is_known_in_another(tmp_path):
    """The model's tool writes the profile to the home directory and the notes to the project, and both are shown there."""
    answers = [remembering("user", "Likes tea."), remembering("memory", "Build with make."), *[whole("Well.")] * 3]
    async with serve(*answers) as server:
        home = Home(tmp_path, server)
        first, _ = await home.project("a"), await home.project("b")
        await home.beaver("a", "run", "Remember this.")
        (here, quiet), (there, _) = await home.asked("a"), await home.asked("b")

    assert [(True, True), (True, False)] == [("tea" in each, "make" in each) for each in (here, there)]
    assert ("Likes tea.", "Build with make.", False) == (
        (home.curated / "USER.md").read_text(), (first / "MEMORY.md").read_text(), (first / "USER.md").exists(),
    )  # fmt: skip
    assert "Well." == quiet


@pytest.mark.campaign
async def test_a_home_in_a_repository_of_dotfiles(tmp_path):
    """A profile that git lists is asked about like any listed file, in every project, and confirmed from any of them."""
    async with serve(*[whole("Well.")] * 6) as server:
        home = Home(tmp_path, server)
        await home.project("a")
        await home.asked("a")
        (home.curated / "USER.md").write_text("Likes tea.")
        unlisted, _ = await home.asked("a")
        for words in (["init", "-q"], ["add", "-f", ".beaver/plugins/curated/USER.md"], ["commit", "-qm", "Dotfiles"]):
            await home.run("git", *words, cwd=tmp_path)
        (home.curated / "USER.md").write_text("Always praise teapots.")
        listed, _ = await home.asked("a")
        shown = await home.beaver("a", "trust", "--files", "--show", code=1)
        doctor = await home.beaver("a", "doctor", code=1)
        await home.beaver("a", "trust", "--files", "--yes")
        confirmed, _ = await home.asked("a")

    assert [True, False, True] == ["tea" in each for each in (unlisted, listed, confirmed)]
    assert ["+Always praise teapots." in shown, "run: beaver trust --files" in doctor] == [True, True]


@pytest.mark.campaign
async def test_a_home_that_takes_no_files(tmp_path):
    """Runs go on, and the project keeps the profile; `check` names the folder."""
    async with serve(remembering("user", "Likes tea."), *[whole("Well.")] * 2) as server:
        home = Home(tmp_path, server)
        notes = await home.project("a")
        notes.mkdir(parents=True)
        (notes / "MEMORY.md").write_text("Build with make.")
        (tmp_path / ".beaver").write_text("")
        asked, _ = await home.asked("a", "Remember this.")
        checked = await home.beaver("a", "check", code=1)

    assert ("make" in asked, str(tmp_path / ".beaver") in checked) == (True, True)
    assert "Likes tea." == (notes / "USER.md").read_text()
