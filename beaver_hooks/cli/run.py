"""`beaver run`: one prompt, one answer."""

import json
import sys
from pathlib import Path

import click

from beaver_hooks.agent.errors import AnswerNotStored
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.agent.results import AgentRunResult
from beaver_hooks.cli.opening import common, configured, in_loop, opened
from beaver_hooks.cli.terminal import printing, show, waiting
from beaver_hooks.config import LoadedConfig
from beaver_hostspecs import Trust


@click.command(name="run")
@click.argument("prompt")
@click.option("--session", metavar="ID", help="The session to go on with, or a new one of that id.")
@click.option("--user", metavar="ID", help="Who speaks.")
@click.option("--skill", "skills", metavar="NAME", multiple=True, help="Activate a skill; may be given several times.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--stream/--no-stream", default=None, help="Print the answer as it arrives; the default on a terminal.")
@common
def command(
    prompt: str,
    *,
    session: str | None,
    user: str | None,
    skills: tuple[str, ...],
    as_json: bool,
    stream: bool | None,
    config: Path | None,
) -> None:
    """Answer one prompt.

    `-` reads it from stdin, for example: git diff | beaver run - --skill review

    The answer is printed once it is stored, before the plugins learn from it. With --json the only thing on stdout is
    an object with text, status, sessionId, turnId, toolCalls, usage and receiptId.
    """
    streamed = not as_json and (sys.stdout.isatty() if stream is None else stream)
    loaded = configured(config)
    text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if prompt == "-" else prompt
    in_loop(_run(loaded, text, session, user, skills, as_json=as_json, streamed=streamed))


async def _run(
    loaded: LoadedConfig,
    prompt: str,
    session: str | None,
    user: str | None,
    skills: tuple[str, ...],
    *,
    as_json: bool,
    streamed: bool,
) -> None:
    async with opened(loaded) as engine:
        try:
            with waiting("Thinking") as over:
                on_delta = printing(over) if streamed else None
                result = await AgentLoop(engine).run(
                    prompt, session, user, trust=Trust.FULL, skills=skills, on_delta=on_delta
                )
        except AnswerNotStored as error:
            if not as_json and not streamed:
                show(error.text)
            raise
        _show(result, as_json=as_json, streamed=streamed)


def _show(result: AgentRunResult, *, as_json: bool, streamed: bool) -> None:
    if as_json:
        show(json.dumps(result.to_json()))
    else:
        show("" if streamed else result.text)
