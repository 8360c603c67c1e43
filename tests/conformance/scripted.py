"""What the harnesses share: the script that a model follows, and the host that the suite puts its plugins into."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from beaver_hooks import Host, SyncHost
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import Ask, Fail, Hang, ModelCall, Say, Step


class ModelDown(Exception):
    """What the scripted model raises for `Fail`."""


class Scripts:
    """Which step a model is to take next, by the prompt that it is asked to answer: prompts of one host differ."""

    def __init__(self) -> None:
        self._steps: dict[str, Iterator[Step]] = {}

    def begin(self, ask: Ask) -> None:
        """Follow the steps of `ask` from now on, wherever its prompt is the last one."""
        self._steps[ask.prompt] = iter(ask.steps)

    def next_for(self, texts: list[str]) -> Step:
        """Return the next step for a model that is asked with `texts`, the last one last."""
        for text in reversed(texts):
            # A framework may put several texts into one message.
            found = max((prompt for prompt in self._steps if prompt in text), key=len, default=None)
            if found is not None:
                return next(self._steps[found])
        raise AssertionError(f"no prompt of the suite is among {texts}")

    async def step_for(self, texts: list[str]) -> Step:
        """Return the next step; fail or hang where that is the step."""
        await asyncio.sleep(0)  # a model takes its time, and other sessions come in between
        step = self.next_for(texts)
        if isinstance(step, Fail):
            raise ModelDown("the model is down")
        if isinstance(step, Hang):
            await asyncio.Event().wait()
        return step


def pieces(step: Say) -> list[str]:
    """Return an answer as it streams: word by word."""
    return [f"{word} " for word in step.text.split(" ")[:-1]] + [step.text.split(" ")[-1]]


class HostedHarness:
    """A harness whose agent uses a `SyncHost`, or a `Host` of this loop.

    Attributes:
        in_loop: whether the adapter gets a `Host` of this event loop rather than a `SyncHost`.
        host: the host that is open, or `None` for the agent without memory.
        defaults: the values that the adapter gives for every turn.
    """

    in_loop = False
    defaults: Mapping[str, object] = MappingProxyType({})

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        self.scripts = Scripts()
        self.host: Host | SyncHost | None = None
        self._folder: Path | None = None

    def build(self) -> None:
        """Make the agent, over `self.host` if there is one."""
        raise NotImplementedError

    async def open(self, plugins, fail_closed=()):
        self._folder = Path(tempfile.mkdtemp(prefix="beaver-conformance-"))
        await self.open_over(Host(plugins, fail_closed=fail_closed, state_folder=self._folder))

    async def open_over(self, host: Host) -> None:
        """Open a host, and make the agent that uses it."""
        self.host = host if self.in_loop else SyncHost(host)
        await (host.open() if self.in_loop else asyncio.to_thread(self.host.open))
        self.build()

    async def open_plain(self):
        self.host = None
        self.build()

    def asked(self, system: str, messages: list[tuple[str, str]], tools: list[str]) -> None:
        """Remember what the model was asked."""
        said = tuple(Message(role=role, text=text) for role, text in messages)
        self.calls.append(ModelCall(system=system, messages=said, tools=tools))

    async def settle(self):
        # A turn that was let go of is dropped when the loop comes round to it.
        await asyncio.sleep(0)
        await (self.host.drain(5) if self.in_loop else asyncio.to_thread(self.host.drain, 5))

    async def unregister(self, plugin):
        await (self.host.unregister(plugin) if self.in_loop else asyncio.to_thread(self.host.unregister, plugin))

    async def unwell(self):
        health = self.host.health() if self.in_loop else await asyncio.to_thread(self.host.health)
        return {name for name, each in health.items() if each.state != "ok"}

    async def close(self):
        host, self.host = self.host, None
        if host is not None:
            await (host.close() if self.in_loop else asyncio.to_thread(host.close))
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
