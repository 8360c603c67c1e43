"""Other programs that run the entries of Claude Code's settings files are recognised and get no memory.

The events have the fields that each program sent where it was run with a hook that records: Claude Code 2.1.327, Grok
1.0.41 and Copilot 1.0.102.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from beaver_hooks.coding_agents.claude_code import client

TIMEOUT = 30
ID, WHEN = "490ed7d2-d121-4861-a956-48fb0b716e76", "2026-11-19T07:12:50.743Z"
CLAUDE = {"session_id": ID, "transcript_path": "/h/.claude/projects/-p/1.jsonl", "cwd": "/p"}
ASKED = {**CLAUDE, "prompt_id": "4245c33c", "permission_mode": "default"}
USED = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}
CLAUDE_CODE = [
    {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"},
    {**ASKED, "hook_event_name": "UserPromptSubmit", "prompt": "What is it"},
    {**ASKED, "hook_event_name": "PreToolUse", **USED},
    {**ASKED, "hook_event_name": "PostToolUse", **USED, "tool_response": {"stdout": "a"}, "duration_ms": 3},
    {**ASKED, "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "It is a.",
     "background_tasks": [], "session_crons": []},
    {**CLAUDE, "prompt_id": "4245c33c", "hook_event_name": "SessionEnd", "reason": "other"},
]  # fmt: skip
# A prompt or a tool call may hold the very words that identify a program.
IN_DOUBT = [
    {**ASKED, "hook_event_name": "UserPromptSubmit", "prompt": "hookEventName"},
    {**ASKED, "hook_event_name": "PostToolUse", **USED, "tool_input": {"hookEventName": "x"}},
    {**ASKED, "hook_event_name": "UserPromptSubmit", "prompt": 'What is "hookEventName": "stop"?'},
    {**CLAUDE, "transcript_path": None, "hook_event_name": "SessionStart", "source": "startup"},
]
GROK = {"sessionId": ID, "cwd": "/p", "workspaceRoot": "/p", "timestamp": WHEN, "permissionMode": "default"}
SNAKE = {"session_id": ID, "permission_mode": "default"}
LATER = {"transcriptPath": "/h/.grok/sessions/p/updates.jsonl", "transcript_path": "/h/.grok/sessions/p/updates.jsonl"}
BY_GROK = [
    {"hookEventName": "session_start", **GROK, "source": "new", "hook_event_name": "SessionStart", **SNAKE},
    {"hookEventName": "user_prompt_submit", **GROK, "promptId": "d701", "prompt": "What is it",
     "hook_event_name": "UserPromptSubmit", **SNAKE},
    {"hookEventName": "post_tool_use", **GROK, "toolName": "run_terminal_command", "toolUseId": "call_1",
     "toolInput": {"command": "ls"}, "toolResult": {"type": "Bash"}, "hook_event_name": "PostToolUse", **SNAKE, **LATER},
    {"hookEventName": "stop", **GROK, **LATER, "lastAssistantMessage": "It is a.", "hook_event_name": "Stop", **SNAKE},
    {"hookEventName": "session_end", **GROK, **LATER, "reason": "shutdown", "hook_event_name": "SessionEnd", **SNAKE},
]  # fmt: skip
COPILOT = {"session_id": ID, "timestamp": WHEN, "cwd": "/p"}
BY_COPILOT = [
    {"hook_event_name": "SessionStart", **COPILOT, "source": "new", "initial_prompt": "What is it"},
    {"hook_event_name": "UserPromptSubmit", **COPILOT, "prompt": 'What is "transcript_path"?'},
    {"hook_event_name": "PostToolUse", **COPILOT, "tool_name": "Bash", "tool_input": {"command": "ls"},
     "tool_result": {"result_type": "success"}},
    {"hook_event_name": "SessionEnd", **COPILOT, "reason": "complete"},
]  # fmt: skip


@pytest.fixture
def say(environment):
    """Return a function that sends an event to a client with `--start`; it gives exit code, stdout and stderr."""

    def say(event, **more):
        command = [sys.executable, "-I", "-S", client.__file__, "--seconds=20", "--start"]
        ran = subprocess.run(
            command, input=json.dumps(event, separators=(",", ":")).encode(), env=environment | more,
            capture_output=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
        return ran.returncode, ran.stdout, ran.stderr

    return say


@pytest.mark.parametrize("event", [*CLAUDE_CODE, *IN_DOUBT], ids=lambda each: each["hook_event_name"])
def test_claude_code(event):
    """Every event of Claude Code is recognised, with any prompt, tool call and spacing."""
    assert (True, True) == (
        client.is_claude_code(json.dumps(event).encode()),
        client.is_claude_code(json.dumps(event, separators=(",", ":")).encode()),
    )


def test_claude_code_is_recognised_without_parsing():
    """Most events are recognised without the JSON parser, whose import would cost more than the rest."""
    code = f"import sys; sys.path[:0] = [{os.path.dirname(client.__file__)!r}]; import client; "  # noqa: PTH120
    code += "print([client.is_claude_code(each) for each in sys.argv[1:] for each in [each.encode()]], 'json' in sys.modules)"
    events = [json.dumps(event) for event in CLAUDE_CODE]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *events], capture_output=True, check=True, timeout=TIMEOUT, text=True
    )

    assert f"{[True] * len(events)} False\n" == ran.stdout


@pytest.mark.parametrize("event", [*BY_GROK, *BY_COPILOT], ids=lambda each: each["hook_event_name"])
def test_another_program(event):
    """No event of another program passes for one of Claude Code's."""
    assert not client.is_claude_code(json.dumps(event).encode())


@pytest.mark.parametrize("said", [b"hello", b"[]", b'{"session_id": "s"}', b"\xff", b"[" * 100_000])
def test_no_event(said):
    """Data that is no event is not one of Claude Code's."""
    assert not client.is_claude_code(said)


def test_nothing_is_started_for_another_program(say, environment):
    """Another program's event starts no resident and gets no output, and the program's name is noted once."""
    ran = [say(event, GROK_HOOK_EVENT="x") for event in BY_GROK]
    ran += [say(event, COPILOT_CLI="1") for event in BY_COPILOT]
    ran += [say(BY_COPILOT[0])]
    path = Path(client.socket_path([], environment))
    others = Path(client.others_path(str(path)))

    assert [(0, b"", b"")] * len(ran) == ran
    assert [others] == list(path.parent.iterdir())
    assert f"Grok\nCopilot\n{client.UNKNOWN}\n" == others.read_text()


def test_a_folder_that_is_not_private(say, runtime):
    """The client notes no program in a folder that other users can use."""
    folder = runtime / f"beaver-hooks-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o755)

    assert (0, b"", b"beaver hooks: Unsafe\n") == say(BY_COPILOT[0])
    assert [] == list(folder.iterdir())
