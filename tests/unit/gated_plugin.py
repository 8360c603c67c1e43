"""A plugin that a test holds up."""

import asyncio

from beaver_hostspecs import Deadlines, PluginInfo
from beaver_hostspecs.testing import RecordingPlugin


class Gated(RecordingPlugin):
    """Waits in some of its hooks until its gate is open; remembers where it was cancelled."""

    def __init__(self, *hooks, contribution=None, rules=(), **deadlines):
        super().__init__(
            contribution, info=PluginInfo(version="0", contract="1.0", rules=rules, deadlines=Deadlines(**deadlines))
        )
        self.gate = asyncio.Event()
        self.hooks = hooks
        self.cancelled, self.ended = [], []

    async def answer(self, call):
        if call.hook in self.hooks:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled.append(call.hook)
                raise
        self.ended.append(call.hook)
        return await super().answer(call)
