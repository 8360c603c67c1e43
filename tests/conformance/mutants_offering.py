"""Plugins whose tools and commands are wrong."""

import asyncio
import sys
from typing import ClassVar

import attrs
from conformance.notes import Notes, fails

from beaver_hostspecs import (
    hookimpl,
)


class WrongTool(Notes):
    """Offers its tool with something wrong."""

    wrong: ClassVar[dict[str, object]] = {}

    @hookimpl
    def provide_tools(self):
        return [attrs.evolve(each, **self.wrong) for each in super().provide_tools()]


@fails("tools have a schema")
class StringParameters(WrongTool):
    wrong: ClassVar = {"parameters": {"type": "string"}}


@fails("tools have a schema")
class NoParameters(WrongTool):
    wrong: ClassVar = {"parameters": None}


@fails("tools have a schema")
class RequiresText(WrongTool):
    wrong: ClassVar = {"parameters": {"type": "object", "properties": {"w": {}}, "required": "w"}}


@fails("tools have a schema")
class NoJson(WrongTool):
    wrong: ClassVar = {"parameters": {"type": "object", "default": object()}}


@fails("tools have a schema")
class NotANumber(WrongTool):
    wrong: ClassVar = {"parameters": {"type": "object", "properties": {"a": {"default": float("nan")}}}}


@fails("tools have a schema")
class RequiresUnknown(WrongTool):
    wrong: ClassVar = {"parameters": {"type": "object", "properties": {}, "required": ["word"]}}


@fails("tools have a schema")
class ListedProperties(WrongTool):
    wrong: ClassVar = {"parameters": {"type": "object", "properties": ["word"]}}


@fails("tools have a schema")
class BadName(WrongTool):
    wrong: ClassVar = {"name": "notes find!"}


@fails("tools have a schema")
class Undocumented(WrongTool):
    wrong: ClassVar = {"description": " "}


@fails("tools have a schema")
class SameName(Notes):
    @hookimpl
    def provide_tools(self):
        return [*super().provide_tools(), *super().provide_tools()]


@fails("tools have a schema")
class OffersNothing(Notes):
    @hookimpl
    def provide_tools(self):
        return None


@fails("tools take garbage")
class ExitingTool(Notes):
    async def find(self, arguments, turn, report):
        sys.exit(f"wrong: {arguments}")


@fails("tools take garbage")
class HangingTool(Notes):
    async def find(self, arguments, turn, report):
        await asyncio.Event().wait()


@fails("tools take garbage")
class AllowsNothingClear(WrongTool):
    wrong: ClassVar = {"allows": lambda caller: None}


@fails("tools take garbage")
class AllowsByExit(WrongTool):
    wrong: ClassVar = {"allows": lambda caller: sys.exit("wrong")}


@fails("commands take garbage")
class AllowsByTruth(Notes):
    @hookimpl
    def provide_commands(self):
        return [attrs.evolve(each, allows=lambda caller: caller.trust.value) for each in super().provide_commands()]


@fails("commands take garbage")
class SilentCommand(Notes):
    async def count(self, words, context, report):
        return None


@fails("commands take garbage")
class ExitingCommand(Notes):
    async def count(self, words, context, report):
        raise KeyboardInterrupt


@fails("commands take garbage")
class OffersNoCommand(Notes):
    @hookimpl
    def provide_commands(self):
        return ()
