"""`beaver run`: one prompt, one answer."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from beaver_hooks.agent.commands import MemoryCommands
from beaver_hooks.agent.errors import AnswerNotStored
from beaver_hooks.agent.loop import AgentLoop, AgentRunResult
from beaver_hooks.agent.sessions.texts import new_session_id
from beaver_hooks.cli.common import common, configured, in_loop, opened
from beaver_hooks.cli.options import IDENTIFIER, no_memory_option, trust_option
from beaver_hooks.cli.streams import unreadable
from beaver_hooks.cli.terminal import CUT, ended, show, waiting
from beaver_hooks.config import LoadedConfig
from beaver_hostspecs import CommandContext, Trust

STANDARD = "-"
MOST_BYTES = 16 * 1024 * 1024
"""The most bytes of a prompt from stdin."""


class AnswerOnStderr(AnswerNotStored):
    """An answer that is not stored, when stdout is for JSON alone: it follows its error on stderr.

    Attributes:
        afterword: the text after the sentence.
    """

    def __init__(self, error: AnswerNotStored) -> None:
        super().__init__(str(error), text=error.text)
        self.afterword = f"The answer that could not be stored:\n{error.text}"


@click.command(name="run")
@click.argument("prompt")
@click.option("--session", metavar="ID", type=IDENTIFIER, help="The session to continue, or the id of a new one.")
@click.option("--user", metavar="ID", type=IDENTIFIER, help="The id of the user who speaks.")
@trust_option
@no_memory_option
@click.option("--skill", "skills", metavar="NAME", multiple=True, help="Activate a skill; may be given several times.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option(
    "--stream/--no-stream", default=None, help="Print the answer while it arrives; the default on a terminal."
)
@common
def command(
    prompt: str,
    *,
    session: str | None,
    user: str | None,
    trust: str | None,
    no_memory: bool,
    skills: tuple[str, ...],
    as_json: bool,
    stream: bool | None,
    config: Path | None,
) -> None:
    """Answer one prompt.

    With `-` the prompt is read from stdin, for example: git diff | beaver run - --skill review

    The answer is printed after it is stored, before the plugins learn from it. With --json the only output on stdout
    is an object with text, status, sessionId, turnId, toolCalls, usage and receiptId. If the answer cannot be stored,
    the exit code is 5, and with --json the answer follows the error on stderr.
    """
    streamed = not as_json and (sys.stdout.isatty() if stream is None else stream)
    loaded = configured(config)
    text = _typed() if prompt == STANDARD else prompt
    said = {"prompt": text, "session_id": session, "user_id": user, "trust": trust, "skills": skills}
    in_loop(_run(loaded, said, no_memory=no_memory, as_json=as_json, streamed=streamed))


async def _run(loaded: LoadedConfig, said: dict[str, Any], *, no_memory: bool, as_json: bool, streamed: bool) -> None:
    async with opened(loaded) as engine:
        if no_memory:
            said["session_id"] = said["session_id"] or new_session_id()
            context = CommandContext(session=said["session_id"], user=said["user_id"], trust=Trust.FULL)
            await MemoryCommands(engine).switch(context, on=False)
        try:
            with waiting("Thinking") as over, ended(over) as pieces:
                result = await AgentLoop(engine).run(**said, on_delta=pieces if streamed else None)
        except AnswerNotStored as error:
            if as_json:
                raise AnswerOnStderr(error) from error
            if not streamed:
                show(error.text)
            raise
        _show(result, as_json=as_json, streamed=streamed)


def _show(result: AgentRunResult, *, as_json: bool, streamed: bool) -> None:
    if as_json:
        show(json.dumps(result.to_json()))
    elif not streamed:
        show(result.text)
    if result.status == "truncated":
        show(CUT, err=True)


def _typed() -> str:
    """Return the prompt from stdin."""
    try:
        content = sys.stdin.buffer.read(MOST_BYTES + 1)
    except OSError as error:
        raise unreadable(error) from error
    if len(content) > MOST_BYTES:
        raise click.UsageError("A prompt from stdin has at most 16 MiB; shorten it.")
    return content.decode("utf-8", "surrogateescape")
