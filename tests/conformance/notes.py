"""A plugin that keeps the contract, for wrong ones to inherit from, and its harness."""

import asyncio
import json

import attrs

from beaver_hostspecs import (
    Command,
    Contribution,
    Deadlines,
    OutcomeKind,
    PluginInfo,
    Reference,
    Secret,
    Tool,
    hookimpl,
)
from beaver_hostspecs.conformance import PluginCard, PluginHarness
from beaver_hostspecs.settings import setting
from beaver_hostspecs.testing import make_canary


def fails(*cases):
    """Mark a plugin as failing in these cases."""

    def marked(plugin):
        plugin.fails_in = cases
        return plugin

    return marked


@attrs.frozen(kw_only=True)
class NotesSettings:
    token: Secret = setting()


class Notes:
    """Keeps each note and recalls all of them; has a file, a task and a tool for the mutants to leave or to break."""

    rules = ("Notes are data.",)
    contract = "1.0"
    settings_class = NotesSettings
    deadlines = Deadlines(before_prompt=1.0, on_tool_result=1.0, after_prompt=1.0, on_turn_dropped=1.0, stop=1.0)

    def __init__(self):
        self.notes = []
        self.open_turns = {}
        self.lock = asyncio.Lock()

    @hookimpl
    def describe(self):
        return PluginInfo(
            version="1",
            contract=self.contract,
            settings=self.settings_class,
            rules=self.rules,
            deadlines=self.deadlines,
        )

    @hookimpl
    def configure(self, setup):
        self.token = setup.settings.token
        self.file = setup.state_folder / "notes.json"

    @hookimpl
    def provide_tools(self):
        parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        return [Tool(name="notes_find", description="Find notes.", parameters=parameters, run=self.find)]

    @hookimpl
    def provide_commands(self):
        return [Command(name="count", summary="how many notes there are", run=self.count)]

    @hookimpl
    async def start(self):
        await asyncio.sleep(0)
        if self.file.exists():
            self.notes = json.loads(self.file.read_text("utf-8"))
        self.worker = asyncio.create_task(asyncio.Event().wait())

    @hookimpl
    async def stop(self):
        await asyncio.sleep(0)
        worker = getattr(self, "worker", None)
        if worker is not None:
            worker.cancel()
            await asyncio.wait([worker])

    @hookimpl
    async def before_prompt(self, turn, report):
        self.open_turns[turn.id] = turn
        await asyncio.sleep(0)
        async with self.lock:
            await asyncio.sleep(0)
            return self.contribution(turn, report)

    @hookimpl
    async def on_tool_result(self, turn, result, report):
        await asyncio.sleep(0)
        if not result.private:
            self.keep(turn, str(result.output), report)

    @hookimpl
    async def after_prompt(self, turn, answer, report):
        await asyncio.sleep(0)
        self.open_turns.pop(turn.id, None)
        for text in (turn.prompt, answer.text):
            self.keep(turn, text, report)

    @hookimpl
    async def on_turn_dropped(self, turn, reason, report):
        await asyncio.sleep(0)
        self.open_turns.pop(turn.id, None)

    @hookimpl
    async def before_compaction(self, compaction, report):
        await asyncio.sleep(0)

    def contribution(self, turn, report):
        report.candidates([])
        return Contribution(blocks=["Notes are kept."], references=[Reference(text=note) for note in self.notes])

    def keep(self, turn, text, report):
        if turn.was_injected(text):
            report.outcome("notes", OutcomeKind.GATED)
            return
        self.notes = [*self.notes, text][-20:]
        self.file.write_text(json.dumps([note[:1000] for note in self.notes]), "utf-8")
        report.outcome("notes", OutcomeKind.STORED)

    async def find(self, arguments, turn, report):
        return [note[:100] for note in self.notes if arguments["word"] in note]

    async def count(self, words, context, report):
        return f"{len(self.notes)} notes"


class NotesHarness(PluginHarness):
    card = PluginCard(plugin="notes", confirms_compaction=True)

    def __init__(self, plugin=Notes):
        self.plugin = plugin
        self.secret = make_canary().secret
        self.settings = NotesSettings(token=self.secret)
        self.in_trouble = False
        self.left = []

    def make(self):
        made = self.plugin()
        made.harness = self
        return made

    async def trouble(self):
        self.in_trouble = True

    async def close(self):
        for end in self.left:
            end()
