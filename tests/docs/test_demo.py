"""The demo shows what it promises, with failures that are real."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return what the demo prints, run as `make demo` runs it, from a folder of its own."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "examples" / "demo.py"],
        cwd=tmp_path_factory.mktemp("demo"), text=True, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def part(shown, title):
    """Return what stands under a heading."""
    _, _, rest = shown.partition(f"== {title}")
    return re.split(r"^== ", rest, flags=re.MULTILINE)[0]


def test_columns(shown):
    """Everything fits into 80 columns."""
    assert [] == [line for line in shown.splitlines() if len(line) > 80]


def test_the_turn_with_the_failure(shown):
    """It says that it will fail, and shows prompt, system prompt, the other plugin's message and the answer."""
    text = part(shown, "The turn to watch")

    assert "`before_prompt` will raise ConnectionError" in text
    assert "| You are a helpful assistant." in text
    assert ["tally"] == re.findall(r"^reference message from (\w+)", text, re.MULTILINE)
    assert "user: What did I just ask you?\nassistant: You asked when we release.\n" in text


def test_health(shown):
    """Health is `ok` before, says since when and why after the failure, and is `ok` again at the end."""
    healths = re.findall(r"^health  notes: (\w+)", shown, re.MULTILINE)

    assert ["ok", "degraded", "ok"] == healths
    assert "before_prompt: raised" in part(shown, "Health afterwards")


def test_receipt(shown):
    """The receipt names both faults, the injected id and the outcome."""
    text = part(shown, "The receipt")

    assert ["before_prompt: raised (ConnectionError)", "after_prompt: timeout"] == re.findall(r"FAILED in (.+)", text)
    assert "injected ['prompt-1']" in text
    assert "outcome prompts stored" in text


def test_log_and_audit(shown):
    """Both failures are in the log and in the audit trail, whose chain is verified, and the recovery is there too."""
    assert 2 == part(shown, "What the log says").count("beaver_hooks.plugin_failed")
    assert 2 == part(shown, "The audit trail").count("plugin_failed notes")
    assert "plugin_recovered notes" in part(shown, "The audit trail")
    assert re.search(r"verified: the chain of \d+ records is whole\n$", shown)


def test_it_leaves_nothing(tmp_path):
    """Its state is in a temporary folder: the working directory stays empty."""
    subprocess.run(
        [sys.executable, ROOT / "docs" / "examples" / "demo.py"], cwd=tmp_path, capture_output=True, check=True
    )

    assert [] == list(tmp_path.iterdir())


def test_the_story_of_two_runs(tmp_path):
    """The second process answers from what the first was told, says so, and its receipt shows the block."""
    story = subprocess.run(
        [sys.executable, ROOT / "docs" / "examples" / "story.py"],
        cwd=tmp_path, text=True, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    parts = dict(re.findall(r"^\$ beaver (\w+)(?:.*?)\n(.*?)(?=^==|\Z)", story.stdout, re.MULTILINE | re.DOTALL))
    runs = re.findall(r"^\$ beaver run .*\n  (.+)$", story.stdout, re.MULTILINE)

    assert [
        "The tool memory answered: Entry added.",
        "From the blocks in the system prompt: we release on Thursday.",
    ] == runs
    assert "1 block in the system prompt reached the model" in parts["why"]
    assert "The audit trail is whole" in parts["audit"]
    assert ("", []) == (story.stderr, [line for line in story.stdout.splitlines() if len(line) > 80])
    assert [] == list(tmp_path.iterdir())
