"""The adapter for Hermes-style hosts on the page before-and-after.md, with what the page does not say."""

from pathlib import Path

import pytest
from docs.test_code_blocks import of_kind, run

from beaver_hooks.adapters.before_after import MOST_OPEN, Given

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "adapters" / "before-and-after.md"


class Memory:
    """Remembers the calls that it receives."""

    def __init__(self):
        self.told = []

    def before(self, prompt, **_):
        return Given(turn_id=f"turn of {prompt}", system="", references=())

    def tool(self, turn_id, tool, **told):
        self.told.append((turn_id, tool, told))

    def after(self, turn_id, answer):
        self.told.append((turn_id, answer))


@pytest.fixture
def hermes(tmp_path, monkeypatch):
    """Return the page's adapter over a memory that remembers."""
    monkeypatch.chdir(tmp_path)
    return run(str(PAGE), of_kind(PAGE, "python"), monkeypatch)["HermesMemory"](Memory())


def test_turns_without_an_end_do_not_pile_up(hermes):
    """The adapter keeps a bounded number of unfinished turns, the newest included."""
    for number in range(MOST_OPEN + 3):
        hermes.pre_llm_call(user_message=str(number), session_id=f"s{number}", turn_id=f"t{number}")

    assert (MOST_OPEN, f"turn of {MOST_OPEN + 2}") == (len(hermes.turns), hermes.turns[f"t{MOST_OPEN + 2}"])


def test_tools_are_told(hermes):
    """The adapter reports a tool's result or error in its turn, and an answer after the end without a turn."""
    said = {"session_id": "s", "turn_id": "t"}
    hermes.pre_llm_call(user_message="when?", **said)
    hermes.post_tool_call(tool_name="look", args={"at": 1}, result="free", tool_call_id="c1", status="ok", **said)
    hermes.post_tool_call(tool_name="look", args={}, result="no such day", error_type="ValueError", **said)
    hermes.post_llm_call(assistant_response="On Thursday.", **said)
    hermes.post_llm_call(assistant_response="Again.", **said)

    assert [
        ("turn of when?", "look", {"arguments": {"at": 1}, "call_id": "c1", "output": "free"}),
        ("turn of when?", "look", {"arguments": {}, "call_id": None, "error": "no such day"}),
        ("turn of when?", "On Thursday."),
        ("", "Again."),
    ] == hermes.memory.told
