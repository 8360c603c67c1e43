"""A toy agent over a real host: right as it stands, and wrong in one way for each defect that it is given."""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack

from conformance.scripted import HostedHarness, pieces

from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, BROKEN, ECHO, CallTool, Card, Say
from beaver_hostspecs.conformance.probes import BLOCK

DEFECTS = {
    "commits nothing": ["normal"],
    "learns the prompt as answer": ["normal"],
    "does not say who speaks": ["user"],
    "tells of no tools": ["tool turn"],
    "tells of no arguments": ["tool turn"],
    "hides tool errors": ["tool error"],
    "hides plugins' tools": ["plugin's tool"],
    "runs plugins' tools outside the turn": ["plugin's tool"],
    "lets tool errors out": ["plugin's tool, misused"],
    "commits the first piece": ["full stream"],
    "commits at a tool call": ["stream with a tool"],
    "commits nothing of sync": ["sync entry point"],
    "tells of no tools of sync": ["sync with a tool"],
    "mixes sessions": ["sessions side by side"],
    "commits twice": ["commit exactly once"],
    "commits on error": ["model error", "model error after a tool", "model error in a stream"],
    "forgets to drop": ["model error", "consumer breaks off", "guardrail"],
    "drops everything as blocked": [
        "model error",
        "model error after a tool",
        "model error in a stream",
        "consumer breaks off",
        "cancelled",
    ],
    "stays broken": ["model error"],
    "learns nothing after an error": ["model error"],
    "passes over the first cancellation": ["cancelled"],
    "has no guardrail": ["guardrail"],
    "answers otherwise with a memory": ["normal", "tool turn", "plugin's tool", "full stream", "sync entry point"],
    "says another session": ["normal"],
    "tells of another tool": ["tool turn", "plugin's tool"],
    "tells no output": ["tool turn"],
    "tells errors without a word": ["tool error"],
    "gives up after a tool error": ["tool error", "plugin's tool, misused"],
    "opens a turn for each step": ["tool turn"],
    "shares its history": ["sessions side by side"],
    "answers with what another one asked": ["sessions side by side"],
    "commits other words": ["commit exactly once", "sync entry point"],
    "shows references twice": ["reference placement", "recall once, replay at each step"],
    "shows the first references for ever": ["reference placement"],
    "forgets the blocks": ["stable system prompt"],
    "forgets the history": ["reference placement", "references are not stored"],
    "unregisters nothing": ["unregistered in between"],
    "shows no references when a plugin is unwell": ["plugin crashes in before_prompt"],
    "learns nothing when a plugin is unwell": ["plugin crashes in before_prompt"],
    "asks the model before its plugins": ["fail-closed plugin fails"],
    "hides the error of a fail-closed plugin": ["fail-closed plugin fails"],
    "commits what was broken off": ["consumer breaks off"],
    "swallows cancellation": ["cancelled"],
    "drops cancelled turns as failed": ["cancelled"],
    "commits blocked answers": ["guardrail"],
    "puts references after the user's text": ["reference placement"],
    "puts references elsewhere": ["reference placement"],
    "puts references into the system prompt": ["reference placement"],
    "shows references as the assistant's": ["reference placement"],
    "leaks the references of earlier turns": ["references are ephemeral"],
    "stores references": ["references are not stored"],
    "asks plugins at each step": ["recall once, replay at each step"],
    "shows references at the first step": ["recall once, replay at each step"],
    "counts turns in the system prompt": ["stable system prompt"],
    "forgets the rules": ["stable system prompt"],
    "loses its own system prompt": ["stable system prompt"],
    "keeps the first system prompt": ["unregistered in between"],
    "mentions memory": ["nothing to say"],
    "pads prompts": ["nothing to say"],
    "fails with its plugins": [
        f"plugin {kind} in before_prompt" for kind in ("crashes", "hangs", "answers garbage")
    ],
    "tells the user of unwell plugins": [
        f"plugin {kind} in {hook}"
        for kind in ("crashes", "hangs", "answers garbage")
        for hook in ("on_tool_result", "after_prompt")
    ],
    "says that all is well": [
        *(f"plugin crashes in {hook}" for hook in ("before_prompt", "on_tool_result", "after_prompt")),
        "plugin answers garbage in before_prompt",
    ],
    "goes on without a fail-closed plugin": ["fail-closed plugin fails"],
    "opens a second turn when one is refused": ["fail-closed plugin fails"],
}  # fmt: skip
"""What can be wrong with the toy, and the cases that are meant to see it."""


class BlockedError(Exception):
    """What the guardrail raises."""


class ToyHarness(HostedHarness):
    """An agent of a few lines. Its guardrail refuses what an `Ask` says is blocked."""

    in_loop = True
    card = Card(host="toy")

    def __init__(self, *defects: str) -> None:
        super().__init__()
        self.defects = frozenset(defects)
        assert self.defects <= set(DEFECTS)

    async def open(self, plugins, fail_closed=()):
        self.broken = False
        everyone = "fails with its plugins" in self.defects
        await super().open(plugins, tuple(plugins) if everyone else fail_closed)

    def build(self):
        self.sessions = defaultdict(list)
        self.systems = {}
        self.turns = 0

    async def unregister(self, plugin):
        if "unregisters nothing" not in self.defects:
            await super().unregister(plugin)

    async def unwell(self):
        return set() if "says that all is well" in self.defects else await super().unwell()

    async def stored(self, session):
        return list(self.sessions[session])

    async def run(self, ask):
        self.scripts.begin(ask)
        if ask.way == "sync":
            loop = asyncio.get_running_loop()
            return await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(self._answered(ask), loop).result())
        return await self._answered(ask)

    async def _answered(self, ask):
        run = Run(self, ask)
        heard = [] if ask.way == "break_off" else None
        try:
            return await run.answer(heard)
        except asyncio.CancelledError:
            if "swallows cancellation" in self.defects:
                return "Never mind."
            if "passes over the first cancellation" in self.defects:
                await asyncio.Event().wait()
            raise


class Run:
    """One prompt on its way to its answer."""

    def __init__(self, toy, ask):
        self.toy, self.ask = toy, ask
        self.turn = None
        self.stack = AsyncExitStack()
        self.session = "session-1" if self.has("mixes sessions") else ask.session
        self.history = toy.sessions["all" if self.has("shares its history") else self.session]

    def has(self, defect):
        return defect in self.toy.defects

    async def answer(self, heard):
        host = self.toy.host
        if host is None:
            return await self.steps(heard)
        if self.has("asks the model before its plugins"):
            self.toy.asked(BASE, [("user", self.ask.prompt)], [])
        try:
            opening = self.opened() if self.has("forgets to drop") else self.held()
            self.turn = await opening
        except Exception:
            if self.has("goes on without a fail-closed plugin"):
                return await self.steps(heard)
            if not self.has("hides the error of a fail-closed plugin"):
                raise
        if self.turn is None:
            raise RuntimeError("sorry")
        async with self.stack:
            return await self.guarded(heard)

    async def opened(self):
        return await self.toy.host.open_turn(self.ask.prompt, session=self.told_session, user=self.user)

    async def held(self):
        try:
            return await self.stack.enter_async_context(
                self.toy.host.turn(self.ask.prompt, session=self.told_session, user=self.user)
            )
        except Exception:
            if self.has("opens a second turn when one is refused"):
                await self.opened()
            raise

    @property
    def told_session(self):
        return "elsewhere" if self.has("says another session") else self.session

    @property
    def user(self):
        return None if self.has("does not say who speaks") else self.ask.user

    async def guarded(self, heard):
        try:
            if self.toy.broken and self.has("stays broken"):
                return "I am broken."
            return await self.steps(heard)
        except asyncio.CancelledError:
            if self.has("drops everything as blocked"):
                await self.turn.drop("blocked")
            if self.has("drops cancelled turns as failed"):
                await self.turn.drop("failed")
            raise
        except BlockedError:
            if not self.has("forgets to drop"):
                await self.turn.drop("blocked")
            raise
        except Exception:
            self.toy.broken = True
            if self.has("drops everything as blocked"):
                await self.turn.drop("blocked")
            if self.has("commits on error"):
                await self.turn.commit("It failed.")
            raise

    async def steps(self, heard):
        self.toy.turns += 1
        said = []
        for number in range(10):
            step = await self.asked(number, said)
            if isinstance(step, Say):
                return await self.delivered(step, heard)
            said.append(("assistant", f"calls {step.tool}"))
            if self.has("commits at a tool call") and self.ask.way == "stream":
                await self.turn.commit("calling")
            await self.tool(step)
        raise AssertionError("the model never ends")

    async def asked(self, number, said):
        each_step = self.has("asks plugins at each step") or self.has("opens a turn for each step")
        if number and each_step and self.turn:
            self.turn = await self.opened()
        messages = self.messages(number)
        offered = [ECHO, BROKEN, *self.offered()]
        self.toy.asked(self.system(), messages, offered)
        return await self.toy.scripts.step_for([text for _, text in messages])

    def offered(self):
        if self.toy.host is None or self.has("hides plugins' tools"):
            return []
        return [tool.name for tools in self.toy.host.tools.values() for tool in tools]

    def system(self):
        if self.turn is None:
            return BASE
        system = self.turn.system_prompt("" if self.has("loses its own system prompt") else BASE)
        if self.has("forgets the rules"):
            system = BASE
        if self.has("forgets the blocks"):
            system = system.replace(BLOCK, "")
        if self.has("counts turns in the system prompt"):
            system += f"\n\nTurn {self.toy.turns}."
        if self.has("puts references into the system prompt"):
            system += "".join(each.text for each in self.turn.references)
        if self.has("mentions memory"):
            system += "\n\nYou have a memory."
        if self.has("keeps the first system prompt"):
            return self.toy.systems.setdefault(self.session, system)
        return system

    def messages(self, number):
        role = "assistant" if self.has("shows references as the assistant's") else "user"
        recalled = [(role, each.text) for each in (self.turn.references if self.turn else ())]
        if self.has("leaks the references of earlier turns"):
            self.toy.systems.setdefault("leaked", []).extend(recalled)
            recalled = self.toy.systems["leaked"]
        if number and self.has("shows references at the first step"):
            recalled = []
        if self.has("shows references twice"):
            recalled *= 2
        if self.has("shows the first references for ever"):
            recalled = self.toy.systems.setdefault("first", recalled)
        if self.has("shows no references when a plugin is unwell") and self.is_unwell:
            recalled = []
        history = [] if self.has("forgets the history") else [(each.role, each.text) for each in self.history]
        prompt = [("user", self.prompt)]
        if self.has("puts references after the user's text"):
            return [*history, *prompt, *recalled]
        late = self.toy.card.reference_placement == "before_user"
        if late is not self.has("puts references elsewhere"):
            return [*history, *recalled, *prompt]
        return [*recalled, *history, *prompt]

    @property
    def is_unwell(self):
        return bool(self.turn) and any(each.state != "ok" for each in self.toy.host.health().values())

    @property
    def prompt(self):
        return f"{self.ask.prompt} " if self.turn and self.has("pads prompts") else self.ask.prompt

    async def tool(self, step):
        if step.tool == ECHO:
            told = {"output": step.arguments["text"]}
        elif step.tool == BROKEN:
            told = {"output": "it failed"} if self.has("hides tool errors") else {"error": "this tool is broken"}
            if self.has("tells errors without a word"):
                told = {"error": "", "outcome": "error"}
        else:
            told = await self.plugin_tool(step)
        silent = self.has("tells of no tools") or (self.has("tells of no tools of sync") and self.ask.way == "sync")
        if self.turn and not silent:
            arguments = {} if self.has("tells of no arguments") else step.arguments
            if self.has("tells no output"):
                told = {}
            tool = "another" if self.has("tells of another tool") else step.tool
            await self.turn.tool_result(tool=tool, call_id=step.id, arguments=arguments, **told)
        if "error" in told and self.has("gives up after a tool error"):
            raise RuntimeError("a tool failed")

    async def plugin_tool(self, step: CallTool):
        host = self.toy.host
        try:
            if self.has("runs plugins' tools outside the turn"):
                return {"output": await host.use_tool(step.tool, step.arguments, session="elsewhere")}
            return {"output": await host.run_tool(self.turn.id, step.tool, step.arguments)}
        except Exception as error:
            if self.has("lets tool errors out"):
                raise
            return {"error": type(error).__name__}

    async def delivered(self, step, heard):
        if self.ask.blocked:
            if self.has("commits blocked answers"):
                await self.turn.commit(step.text)
            if not self.has("has no guardrail"):
                raise BlockedError("the guardrail refuses this answer")
        if heard is not None:
            return await self.broken_off(step)
        self.keep(step.text)
        if self.turn:
            return await self.committed(step.text)
        return step.text

    async def broken_off(self, step):
        first = pieces(step)[0]
        if self.has("commits what was broken off"):
            await self.turn.commit(first)
        elif not self.has("forgets to drop"):
            await self.turn.drop("blocked" if self.has("drops everything as blocked") else "cancelled")
        return first

    def keep(self, text):
        if self.has("stores references") and self.turn:
            self.history.extend(_message("user", each.text) for each in self.turn.references)
        self.history.extend([_message("user", self.ask.prompt), _message("assistant", text)])

    async def committed(self, text):
        silent = self.has("commits nothing") or (self.has("commits nothing of sync") and self.ask.way == "sync")
        silent |= self.has("learns nothing after an error") and self.toy.broken
        silent |= self.has("learns nothing when a plugin is unwell") and self.is_unwell
        learned = self.ask.prompt if self.has("learns the prompt as answer") else text
        if self.has("commits other words"):
            learned = "other words"
        if self.has("commits the first piece") and self.ask.way == "stream":
            learned = learned.split()[0]
        if not silent:
            await self.turn.commit(learned)
        if self.has("commits twice"):
            again = await self.opened()
            await again.commit(learned)
        return await self.said(text)

    async def said(self, text):
        if self.has("tells the user of unwell plugins"):
            await self.toy.settle()
            if await self.toy.unwell():
                return f"{text} (The memory is unwell.)"
        if self.has("answers with what another one asked"):
            return next(iter(self.toy.scripts._steps))
        return f"{text} I remember." if self.has("answers otherwise with a memory") else text


def _message(role, text):
    return Message(role=role, text=text)
