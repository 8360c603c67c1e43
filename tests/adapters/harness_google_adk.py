"""Google ADK, with a scripted model and its own session service."""

import asyncio
import contextlib
from typing import Any

import attrs
from conformance.scripted import HostedHarness, Scripts, pieces
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from beaver_hooks.adapters.google_adk import CARD, BeaverPlugin
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, Ask, CallTool

APP = "conformance"
STREAMED = RunConfig(streaming_mode=StreamingMode.SSE)


def echo(text: str) -> str:
    """Return a text."""
    return text


def broken() -> str:
    """Raise."""
    raise RuntimeError("this tool is broken")


def content(text, role="user"):
    return types.Content(role=role, parts=[types.Part(text=text)])


def texts(contents):
    """Roles and texts of contents."""
    parts = [(each.role, part) for each in contents if each for part in each.parts or ()]
    return [("assistant" if role == "model" else role, part.text) for role, part in parts if part.text]


def names(request):
    """The names of the functions that a request offers."""
    return [each.name for tool in request.config.tools or () for each in tool.function_declarations or ()]


class ScriptedModel(BaseLlm):
    """Answers as the script says, and remembers what it was asked, as it was asked. After a list it hangs."""

    model: str = "scripted"
    scripts: Any = None
    asked: Any = None
    requests: Any = None

    async def generate_content_async(self, llm_request, stream=False):
        self.requests.append(llm_request)
        said = texts(llm_request.contents)
        if self.asked is not None:
            self.asked(str(llm_request.config.system_instruction or ""), said, names(llm_request))
        step = await self.scripts.step_for([text for _, text in said])
        if isinstance(step, list):
            for each in step:
                yield each
            await asyncio.Event().wait()
        if isinstance(step, LlmResponse):
            yield step
            return
        if isinstance(step, CallTool):
            call = types.FunctionCall(id=step.id, name=step.tool, args=dict(step.arguments))
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
            return
        for piece in pieces(step) if stream else ():
            await asyncio.sleep(0)
            yield LlmResponse(content=content(piece, "model"), partial=True)
        yield LlmResponse(content=content(step.text, "model"))


def make_model(scripts=None, asked=None):
    return ScriptedModel(scripts=scripts or Scripts(), asked=asked, requests=[])


class GoogleAdkHarness(HostedHarness):
    card = CARD

    def build(self):
        self.blocked = False
        agent = LlmAgent(
            name="agent",
            model=make_model(self.scripts, self.asked),
            instruction=BASE,
            tools=[echo, broken],
            on_tool_error_callback=self._answer_for,
            after_model_callback=self._guard,
        )
        plugins = [] if self.host is None else [BeaverPlugin(self.host, **self.defaults)]
        self.sessions = InMemorySessionService()
        self.runner = Runner(
            app=App(name=APP, root_agent=agent, plugins=plugins),
            session_service=self.sessions,
            auto_create_session=True,
        )

    async def run(self, ask: Ask) -> str:
        self.scripts.begin(ask)
        self.blocked = ask.blocked
        given = {"user_id": ask.user, "session_id": ask.session, "new_message": content(ask.prompt)}
        if ask.way == "sync":
            return await asyncio.to_thread(lambda: _final(list(self.runner.run(**given))))
        if ask.way == "whole":
            return _final([event async for event in self.runner.run_async(**given)])
        heard = []
        async with contextlib.aclosing(self.runner.run_async(**given, run_config=STREAMED)) as stream:
            async for event in stream:
                heard += [text for _, text in texts([event.content])] if event.partial else []
                if heard and ask.way == "break_off":
                    break
        return "".join(heard)

    async def stored(self, session):
        found = await self.sessions.get_session(app_name=APP, user_id="user-1", session_id=session)
        return [Message(role=role, text=text) for each in found.events for role, text in texts([each.content])]

    def _guard(self, callback_context, llm_response):
        if self.blocked:
            return LlmResponse(content=content("I must not say that.", "model"))
        return None

    @staticmethod
    def _answer_for(tool, args, tool_context, error):
        return {"error": "the tool failed"}


class GoogleAdkInLoopHarness(GoogleAdkHarness):
    in_loop = True
    card = attrs.evolve(CARD, sync=False, notes={**CARD.notes, "sync": "A Host is used in its own event loop."})


def _final(events):
    return "".join(text for each in events if each.is_final_response() for _, text in texts([each.content]))
