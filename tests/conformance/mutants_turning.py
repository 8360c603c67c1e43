"""Plugins that get turns wrong."""

import asyncio
import json
import sys

from conformance.notes import Notes, fails

from beaver_hostspecs import (
    Contribution,
    DropReason,
    Reference,
    Trust,
    hookimpl,
)


@fails("ordinary turns")
class Raising(Notes):
    def contribution(self, turn, report):
        raise LookupError("no notes")


@fails("ordinary turns")
class Exiting(Notes):
    def contribution(self, turn, report):
        sys.exit(3)


@fails("ordinary turns")
class CancellingItself(Notes):
    def contribution(self, turn, report):
        raise asyncio.CancelledError


@fails("ordinary turns")
class Garbage(Notes):
    def contribution(self, turn, report):
        return ["a note"]


@fails("ordinary turns")
class Talkative(Notes):
    @hookimpl
    async def after_prompt(self, turn):
        return "I have learned it."


class Trap(Reference):
    @property
    def text(self):
        raise LookupError("do not look")


@fails("contributions can be shown")
class Silent(Notes):
    def contribution(self, turn, report):
        return None


@fails("contributions can be shown")
class Invisible(Notes):
    def contribution(self, turn, report):
        return Contribution(references=[Reference(text="\u200b\u2060")])


@fails("contributions can be shown")
class Hostile(Notes):
    def contribution(self, turn, report):
        return Contribution(references=[object.__new__(Trap)])


@fails("tools of every kind")
class NeedsOutput(Notes):
    @hookimpl
    async def on_tool_result(self, result):
        json.dumps(result.output.upper())


@fails("tools of every kind")
class NeedsSuccess(Notes):
    @hookimpl
    async def on_tool_result(self, result):
        if result.outcome != "success":
            raise ValueError("the tool failed")


@fails("dropped turns")
class KnowsOneReason(Notes):
    @hookimpl
    async def on_turn_dropped(self, reason):
        assert reason is DropReason.FAILED


@fails("turns side by side")
class OneAtATime(Notes):
    busy = False

    @hookimpl
    async def before_prompt(self, turn, report):
        assert not self.busy
        self.busy = True
        try:
            return await super().before_prompt(turn, report)
        finally:
            self.busy = False


@fails("bare turn")
class NeedsUser(Notes):
    def contribution(self, turn, report):
        turn.user.casefold()


@fails("full turn")
class KnowsTwoLevels(Notes):
    def contribution(self, turn, report):
        return {Trust.FULL: None, Trust.PUBLIC: None}[turn.trust]


@fails("strange texts")
class Encodes(Notes):
    def contribution(self, turn, report):
        turn.prompt.encode()


@fails("strange texts")
class NeedsWords(Notes):
    def contribution(self, turn, report):
        assert turn.prompt.split()[0]


@fails("loose ends")
class RemembersTurns(Notes):
    @hookimpl
    async def after_prompt(self, turn):
        del self.open_turns[turn.id]


@fails("loose ends")
class DropsOnce(Notes):
    @hookimpl
    async def on_turn_dropped(self, turn):
        del self.open_turns[turn.id]


@fails("loose ends")
class NeedsOpenTurn(Notes):
    @hookimpl
    async def on_tool_result(self, turn):
        assert self.open_turns[turn.id]
