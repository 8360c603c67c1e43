"""The demo shows what it promises, with processes and failures that are real."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.test_code_blocks import blocks

pytestmark = pytest.mark.campaign

README = Path(__file__).parents[2] / "README.md"
DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
MOST_LINES, MOST_COLUMNS = 64, 96


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder that the demo is run in."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(folder):
    """What the demo prints, run as `make demo` runs it."""
    done = subprocess.run(
        [sys.executable, DEMO], cwd=folder, text=True, capture_output=True, check=True, timeout=120
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def parts(shown):
    """Return what each command said, by the command."""
    said, command = {}, ""
    for line in shown.splitlines():
        if line.startswith("  $ "):
            command = line.removeprefix("  $ ")
            said.setdefault(command, []).append([])
        elif line.startswith("    "):
            said[command][-1].append(line.strip())
    return said


def test_it_fits_a_screen(shown):
    """The output of the demo is short enough for one screen."""
    lines = shown.splitlines()
    assert (True, []) == (len(lines) <= MOST_LINES, [line for line in lines if len(line) > MOST_COLUMNS])


def test_another_process_knows_the_fact(shown):
    """What one process was told, another one answers, and says from where."""
    answer = 'From the references of the memory plugin "local": We release on Thursday.'
    assert [[answer]] == parts(shown)["beaver run 'When do we release?'"]


def test_it_is_explained(shown):
    """The part of the receipt that is about the local memory is shown."""
    ((first, second, *_),) = parts(shown)["beaver why"]
    assert ("local", True) == (first, second.startswith("Recalled  1 reference of 1 considered"))


def test_it_learns_and_is_corrected(shown):
    """A fact from a chat is known to another process, a correction takes its place, and the older one is found as of then."""
    said = parts(shown)
    (search,) = [command for command in said if command.startswith("beaver memory search sister --as-of ")]
    answers = [line.rpartition(": ")[2] for (line,) in said["beaver run 'Where does my sister live?'"]]
    ((_, found),) = said[search]
    assert ["My sister lives in Oslo.", "My sister lives in Rome."] == answers
    assert "superseded" in found
    assert found.endswith("My sister lives in Oslo.")


def test_what_was_forgotten_is_in_no_file(shown):
    """After it was forgotten only the conversation quotes it, and without that no file does."""
    looked = parts(shown)["grep --recursive --files-with-matches 'We release on Thursday.' ."]
    assert [[".beaver/sessions.db"], ["(no file)"]] == looked


def test_it_is_proved(shown):
    """A planted memory is found in the files, and in none after it was forgotten."""
    (said,) = parts(shown)["beaver memory forget --prove"]
    held = {line.partition(":")[0].rpartition(".")[2] for line in said if ": as it is" in line or ": indexed" in line}
    assert ({"db", "index"}, "Proved: it was there, and it is gone.") == (held, said[-1])


def test_a_failing_plugin_costs_the_user_nothing(shown):
    """With a failing plugin the user gets the answer, and the overview names the plugin and the reason."""
    ((answer,),) = parts(shown)["beaver run 'Who tests the release?'"]
    ((health,),) = parts(shown)["beaver memory"]
    name, state, *_ = health.split()
    assert (True, "broken", "degraded", True) == (
        "Kim tests the release." in answer, name, state, health.endswith("before_prompt: raised"),
    )  # fmt: skip


def test_the_readme_shows_it(shown):
    """What the README shows of the demo is printed, in this order; a count of tokens and a time may differ."""
    (block,) = [block for block in blocks(README.read_text("utf-8")) if block.info == "text"]
    printed = iter(re.sub(r"\d+ tokens", "N tokens", shown).splitlines())
    expected = re.sub(r"\d+ tokens", "N tokens", block.code).splitlines()

    assert [] == [line for line in expected if line not in printed]


def test_the_readme_is_short():
    """The README has at most 150 lines and begins with what it is, a command and what that shows."""
    text = README.read_text("utf-8")

    assert len(text.splitlines()) <= 150
    assert ["sh", "text"] == [block.info for block in blocks(text)][:2]


def test_it_leaves_nothing(shown, folder):
    """The demo keeps its state in a temporary folder, and leaves the working directory empty."""
    assert ("\n", []) == (shown[0], list(folder.iterdir()))
