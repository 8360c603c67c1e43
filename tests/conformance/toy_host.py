"""A toy agent over a real host: right as it stands, and wrong in one way for each defect that it is given."""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack

from conformance.scripted import HostedHarness, pieces
from conformance.toy_defects import DEFECTS, LATE_DEFECTS

from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, BROKEN, ECHO, CallTool, Card, Say
from beaver_hostspecs.conformance.probes import BLOCK, RECALLED, RULE
from beaver_hostspecs.testing import make_compaction


class BlockedError(Exception):
    """What the guardrail raises."""


class ToyHarness(HostedHarness):
    """An agent of a few lines. Its guardrail refuses what an `Ask` says is blocked."""

    in_loop = True
    card = Card(host="toy", announces_compaction=True)

    def __init__(self, *defects: str) -> None:
        super().__init__()
        self.defects = frozenset(defects)
        assert self.defects <= {*DEFECTS, *LATE_DEFECTS}

    async def open(self, plugins, fail_closed=()):
        self.broken = False
        everyone = "fails with its plugins" in self.defects
        await super().open(plugins, tuple(plugins) if everyone else fail_closed)

    def build(self):
        self.sessions = defaultdict(list)
        self.systems = {}
        self.turns = 0
        self.last = None

    async def unregister(self, plugin):
        if "unregisters nothing" not in self.defects:
            await super().unregister(plugin)

    async def unwell(self):
        return set() if "says that all is well" in self.defects else await super().unwell()

    async def stored(self, session):
        return list(self.sessions[session])

    async def compact(self, session, user):
        if "announces no compaction" in self.defects:
            return
        if "announces compactions too early" in self.defects:
            compaction = make_compaction(session=session, user=user)
            await asyncio.gather(
                *(self.host.plugin(each).before_compaction(compaction, None) for each in self.host.plugins)
            )
            return
        session = "elsewhere" if "compacts another session" in self.defects else session
        report = await self.host.before_compaction(session=session, user=user)
        if "fails with its plugins in a compaction" in self.defects and not report.complete:
            raise RuntimeError("not compacted")

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

    def streams(self, defect):
        return self.ask.way == "stream" and self.has(f"{defect} in a stream")

    def steps_on(self, number, defect):
        return number > 0 and self.has(f"{defect} at the second step")

    async def answer(self, heard):
        host = self.toy.host
        if host is None:
            return await self.steps(heard)
        if self.has("asks the model before its plugins"):
            self.toy.asked(BASE, [("user", self.ask.prompt)], [])
        try:
            await self.begin()
        except Exception:
            if self.has("goes on without a fail-closed plugin") or self.streams("says nothing of a refusal"):
                return await self.steps(heard)
            if not self.has("hides the error of a fail-closed plugin"):
                raise
        if self.turn is None:
            raise RuntimeError("sorry")
        async with self.stack:
            return await self.guarded(heard)

    async def begin(self):
        late = self.has("drops at the next turn")
        if late and self.toy.last:
            await self.toy.last.drop("failed")
        self.turn = await (self.opened() if late or self.has("forgets to drop") else self.held())
        self.toy.last = self.turn

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
        if self.has("says that one user speaks for all"):
            return self.toy.systems.setdefault("user", self.ask.user)
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
                await self.turn.drop("cancelled" if self.has("drops blocked turns as cancelled") else "blocked")
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
                return await self.delivered(step, heard, number)
            said.append(("assistant", f"calls {step.tool}"))
            if self.streams("commits at a tool call") or self.has("commits before a tool runs"):
                await self.turn.commit("calling")
            await self.tool(step)
        raise AssertionError("the model never ends")

    async def asked(self, number, said):
        each_step = self.has("asks plugins at each step") or self.has("opens a turn for each step")
        if number and each_step and self.turn:
            self.turn = await self.opened()
        messages = self.messages(number)
        offered = [ECHO, BROKEN, *self.offered()]
        self.toy.asked(self.system(number), messages, offered)
        return await self.toy.scripts.step_for([text for _, text in messages])

    def offered(self):
        if self.toy.host is None or self.has("hides plugins' tools"):
            return []
        own = ["remember"] if self.has("offers a tool of its own") else []
        return [*own, *(tool.name for tools in self.toy.host.tools.values() for tool in tools)]

    def system(self, number):
        if self.turn is None:
            return BASE
        system = self.turn.system_prompt("" if self.has("loses its own system prompt") else BASE)
        if self.has("forgets the rules"):
            system = BASE
        if self.steps_on(number, "forgets the rules") or (self.has("forgets the rules of sync") and self.is_sync):
            system = system.replace(RULE, "")
        if self.has("doubles the rules"):
            system += f"\n\n{RULE}"
        if self.has("forgets the blocks"):
            system = system.replace(BLOCK, "")
        if self.has("counts turns in the system prompt"):
            system += f"\n\nTurn {self.toy.turns}."
        leaks = "puts references into the system prompt"
        if self.has(leaks) or self.steps_on(number, leaks) or self.streams(leaks):
            system += "".join(each.text for each in self.turn.references)
        if self.has("mentions memory"):
            system += "\n\nYou have a memory."
        if self.has("keeps the first system prompt"):
            return self.toy.systems.setdefault(self.session, system)
        return system

    def messages(self, number):
        role = "assistant" if self.has("shows references as the assistant's") else "user"
        turn = self.toy.last if self.has("shows the references of the last turn") else self.turn
        fenced = [each.text for each in (turn.references if turn else ())]
        recalled = [(role, _bare(text) if self.has("tears the fence down") else text) for text in fenced]
        if self.has("leaks the references of earlier turns"):
            self.toy.systems.setdefault("leaked", []).extend(recalled)
            recalled = self.toy.systems["leaked"]
        if (number and self.has("shows references at the first step")) or self.streams("shows no references"):
            recalled = []
        if self.has("shows references twice"):
            recalled *= 2
        if self.has("shows the first references for ever"):
            recalled = self.toy.systems.setdefault("first", recalled)
        if self.has("shows no references when a plugin is unwell") and self.is_unwell:
            recalled = []
        if self.has("sets references off"):
            recalled += [("user", "So much for what was recalled.")] if recalled else []
        history = [] if self.has("forgets the history") else [(each.role, each.text) for each in self.history]
        prompt = [("user", self.prompt)]
        if self.has("puts references after the user's text"):
            return [*history, *prompt, *recalled]
        late = self.toy.card.reference_placement == "before_user"
        if late is not self.has("puts references elsewhere"):
            return [*history, *recalled, *prompt]
        return [*recalled, *history, *prompt]

    @property
    def is_sync(self):
        return self.ask.way == "sync"

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
        silent = self.has("tells of no tools") or (self.has("tells of no tools of sync") and self.is_sync)
        silent |= self.streams("tells of no tools")
        if self.turn and not silent:
            arguments = {} if self.has("tells of no arguments") else step.arguments
            if self.has("tells no output"):
                told = {}
            tool = "another" if self.has("tells of another tool") else step.tool
            turn = self.toy.last if self.has("tells the last turn of tools") else self.turn
            for _ in range(2 if self.has("tells of a tool twice") else 1):
                await turn.tool_result(tool=tool, call_id=step.id, arguments=arguments, **told)
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

    async def delivered(self, step, heard, number):
        if self.ask.blocked:
            if self.has("commits blocked answers"):
                await self.turn.commit(step.text)
            if not self.has("has no guardrail"):
                raise BlockedError("the guardrail refuses this answer")
        if heard is not None:
            return await self.broken_off(step, number)
        self.keep(step.text)
        if self.turn:
            return await self.committed(step.text)
        return step.text

    async def broken_off(self, step, number):
        first = pieces(step)[0]
        if self.has("commits what was broken off") or self.steps_on(number, "commits what was broken off"):
            await self.turn.commit(first)
        elif not self.has("forgets to drop"):
            await self.turn.drop("blocked" if self.has("drops everything as blocked") else "cancelled")
        return first

    def keep(self, text):
        if self.has("stores references") and self.turn:
            self.history.extend(_message("user", each.text) for each in self.turn.references)
        if self.has("stores references without their fence") and self.turn:
            self.history.extend(_message("user", _bare(each.text)) for each in self.turn.references)
        self.history.extend([_message("user", self.ask.prompt), _message("assistant", text)])

    async def committed(self, text):
        silent = self.has("commits nothing") or (self.has("commits nothing of sync") and self.is_sync)
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
        tells = "tells the user of unwell plugins"
        if self.has(tells) or self.streams(tells):
            await self.toy.settle()
            if await self.toy.unwell():
                return f"{text} (The memory is unwell.)"
        if self.has("answers with what another one asked"):
            return next(iter(self.toy.scripts._steps))
        return f"{text} I remember." if self.has("answers otherwise with a memory") else text


def _message(role, text):
    return Message(role=role, text=text)


def _bare(text):
    """Return the recalled line without the message around it."""
    return next(line for line in text.splitlines() if RECALLED in line)
