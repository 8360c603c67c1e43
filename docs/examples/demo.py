"""One turn through two plugins, one of which fails before your eyes. Run it with `make demo`.

The plugin `tally` comes through its entry point, the plugin `notes` is in this file. The failures are real: `notes`
raises an exception when it is asked for what it remembers, and never ends when it is told the answer.
"""

import asyncio
import io
import logging
import tempfile
import textwrap
from collections.abc import Iterable

from beaver_hooks import Host, OpenTurn
from beaver_hooks.audit.events import AuditEvent
from beaver_hostspecs import Contribution, Deadlines, PluginInfo, Reference, hookimpl

BASE = "You are a helpful assistant."
ANSWERS = {
    "When do we release?": "On Thursday, as your note says.",
    "What did I just ask you?": "You asked when we release.",
    "And who tests it?": "Kim does, as your note says.",
}
"""The model of this demo: it knows its lines by heart."""


class Notes:
    """Remembers two notes. Its backend is switched off and on by the demo."""

    def __init__(self) -> None:
        self.broken = False

    @hookimpl
    def describe(self) -> PluginInfo:
        """Ask for little time, so that the demo is quick."""
        return PluginInfo(version="1", contract="1.0", deadlines=Deadlines(before_prompt=0.3, after_prompt=0.3))

    @hookimpl
    async def before_prompt(self) -> Contribution:
        """Recall both notes; raise when the backend is off."""
        if self.broken:
            raise ConnectionError("the backend of notes does not answer")
        notes = {"note-1": "The release is on Thursday.", "note-2": "Kim tests the release."}
        return Contribution(references=[Reference(kind="note", id=key, text=text) for key, text in notes.items()])

    @hookimpl
    async def after_prompt(self) -> None:
        """Learn nothing; wait for ever when the backend is off."""
        if self.broken:
            await asyncio.Event().wait()


def say(text: str = "", *, indent: str = "") -> None:
    """Print `text` in 80 columns."""
    for line in text.splitlines() or [""]:
        print(textwrap.fill(line, 80, initial_indent=indent, subsequent_indent=indent + "    ") or indent.rstrip())


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n== {text} {'=' * (76 - len(text))}")


def show_health(host: Host) -> None:
    """Print the health of every plugin, and the host's own."""
    for name, health in host.health().items():
        say(f"health  {name}: {health}")


def show_prompt(turn: OpenTurn) -> None:
    """Print what the model gets."""
    say("system prompt:")
    say(turn.system_prompt(BASE), indent="  | ")
    for message in turn.references:
        say(f"reference message from {message.plugin} (ephemeral, kept nowhere):")
        say(message.text, indent="  | ")
    say(f"user: {turn.prompt}")


def show_receipt(turn: OpenTurn) -> None:
    """Print a turn's receipt in words."""
    receipt = turn.receipt
    say(f"{receipt.turn}: {receipt.state}, {receipt.tokens} tokens of memory")
    say(f"prompt {receipt.prompt}, {receipt.prompt_characters} characters (a keyed hash, no text)")
    for name, part in receipt.plugins.items():
        say(f"{name}: considered {part.considered}, injected {list(part.injected)}, {part.tokens} tokens")
        for outcome in part.outcomes:
            say(f"{name}: outcome {outcome.plane} {outcome.kind} {dict(outcome.facts)}", indent="  ")
        for failure in part.failures:
            error = f" ({failure.error})" if failure.error else ""
            say(f"{name}: FAILED in {failure.hook}: {failure.category}{error}", indent="  ")
        for hook, milliseconds in part.milliseconds.items():
            say(f"{name}: {hook} took {milliseconds:.1f} ms", indent="  ")


def show_events(events: Iterable[AuditEvent]) -> None:
    """Print audit events."""
    for event in events:
        facts = [f"{name}={fact}" for name, fact in event.facts.items() if fact is not None]
        said = [f"{event.at:%H:%M:%S}", event.name, event.plugin, event.hook, *facts]
        say(" ".join(part for part in said if part), indent="  ")


async def run_turn(host: Host, prompt: str, *, in_full: bool = True) -> OpenTurn:
    """Run one turn as any agent would: recall, ask the model, give the answer, commit."""
    async with host.turn(prompt, session="demo") as turn:
        if in_full:
            show_prompt(turn)
        say(f"assistant: {ANSWERS[prompt]}")
        await turn.commit(ANSWERS[prompt])
    await host.drain()
    return turn


async def failing_turn(host: Host, notes: Notes, log: io.StringIO) -> None:
    """Run the turn in which `notes` fails twice, and show all that is known about it afterwards."""
    title("The turn to watch: `notes` is made to fail")
    say("Its backend is off now: `before_prompt` will raise ConnectionError, and `after_prompt` will wait for ever.")
    show_health(host)
    notes.broken = True
    turn = await run_turn(host, "What did I just ask you?")
    say("The user has the answer. `tally` was heard; of `notes` nothing is in the prompt.")
    title("What the log says")
    say(log.getvalue(), indent="  ")
    title("The receipt of that turn")
    show_receipt(turn)
    title("Health afterwards")
    show_health(host)


async def demo(folder: str, log: io.StringIO) -> None:
    """Run three turns in one session."""
    notes = Notes()
    async with Host({"notes": notes}, entry_points=["tally"], state_folder=folder) as host:
        title("A turn in which all is well")
        await run_turn(host, "When do we release?")
        await failing_turn(host, notes, log)
        title("The backend is on again")
        notes.broken = False
        await run_turn(host, "And who tests it?", in_full=False)
        show_health(host)
        title("The audit trail: content-free, chained by keyed hashes")
        host.trail.flush()
        show_events(host.trail.tail())
        verdict = host.trail.verify()
        state = "whole" if verdict.ok else f"BROKEN at record {verdict.first_bad}: {verdict.reason}"
        say(f"verified: the chain of {verdict.checked} records is {state}")


def main() -> None:
    """Run the demo with its state in a temporary folder, and catch the log to show it in its place."""
    log = io.StringIO()
    logging.basicConfig(stream=log, format="%(levelname)s %(message)s")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(demo(folder, log))


if __name__ == "__main__":
    main()
