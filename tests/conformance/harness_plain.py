"""A plain synchronous agent, written by hand: it calls the adapter before the prompt and after the answer."""

import asyncio
import time
from collections import defaultdict

from conformance.scripted import HostedHarness, ModelDown

from beaver_hooks.adapters.before_after import CARD, BeforeAfter
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, BROKEN, ECHO, Ask, CallTool, Fail, Hang, Say


class PlainAgent:
    """An agent that a user wrote by hand, with the adapter's calls in it."""

    def __init__(self, harness, memory: BeforeAfter | None) -> None:
        self.harness = harness
        self.memory = memory
        self.history = defaultdict(list)

    def answer(self, ask: Ask) -> str:
        history = self.history[ask.session]
        if self.memory is None:
            return self.converse(ask, None, [{"role": "system", "content": BASE}, *history, _user(ask.prompt)])
        given = self.memory.before(ask.prompt, session=ask.session, user=ask.user, history=history, model="scripted")
        try:
            answer = self.converse(ask, given, given.messages(ask.prompt, history, system=BASE))
        except Exception as error:
            self.memory.failed(given.turn_id, error)
            raise
        history += [_user(ask.prompt), {"role": "assistant", "content": answer}]
        self.memory.after(given.turn_id, answer)
        return answer

    def converse(self, ask: Ask, given, messages) -> str:
        for step in ask.steps:
            self.harness.remember(messages, self.tools())
            match step:
                case Fail():
                    raise ModelDown("the model is down")
                case Hang():
                    time.sleep(0.3)
                    raise ModelDown("the model took too long")
                case CallTool():
                    self.call(step, given)
                case Say():
                    return step.text
        raise AssertionError("the script has no answer")

    def call(self, step: CallTool, given) -> None:
        output, error = None, None
        arguments = dict(step.arguments)
        if step.tool == ECHO:
            output = arguments["text"]
        elif step.tool == BROKEN:
            error = RuntimeError("this tool is broken")
        else:
            output = self.memory.run_tool(given.turn_id, step.tool, arguments)
        if self.memory is not None:
            told = {"output": output, "error": error, "arguments": arguments, "call_id": step.id}
            self.memory.tool(given.turn_id, step.tool, **told)

    def tools(self) -> list[str]:
        return [ECHO, BROKEN, *(tool["name"] for tool in (self.memory.tools if self.memory else ()))]


class PlainHarness(HostedHarness):
    card = CARD

    def build(self) -> None:
        self.agent = PlainAgent(self, BeforeAfter(self.host, **self.defaults) if self.host is not None else None)

    async def run(self, ask: Ask) -> str:
        # A thread cannot be cancelled, so the caller goes and the agent ends when it ends.
        return await asyncio.to_thread(self.agent.answer, ask)

    async def compact(self, session, user):
        await asyncio.to_thread(self.agent.memory.before_compaction, session=session, user=user)
        del self.agent.history[session][:-2]

    def remember(self, messages, tools) -> None:
        system = "\n\n".join(each["content"] for each in messages if each["role"] == "system")
        self.asked(system, [(each["role"], each["content"]) for each in messages if each["role"] != "system"], tools)

    async def stored(self, session):
        return [Message(role=each["role"], text=each["content"]) for each in self.agent.history[session]]


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}
