"""Plugins that say wrongly what they are."""

import sys
from typing import ClassVar

import attrs
from conformance.notes import Notes, fails

from beaver_hostspecs import (
    Contribution,
    hookimpl,
)


@fails("valid hooks")
class Synchronous(Notes):
    @hookimpl
    def before_prompt(self, turn):
        return None


@fails("valid hooks")
class Misspelt(Notes):
    @hookimpl
    async def befor_prompt(self, turn):
        return None


@fails("valid hooks")
class Unmarked(Notes):
    async def after_prompt(self, turn):
        return None


@fails("valid hooks")
class Wrapper(Notes):
    @hookimpl(wrapper=True)
    async def after_prompt(self, turn):
        return None


@fails("valid hooks")
class Greedy(Notes):
    @hookimpl
    async def after_prompt(self, turn, memory):
        return None


@fails("valid hooks")
class Twice(Notes):
    @hookimpl(specname="after_prompt")
    async def learn(self, turn):
        return None


@fails("valid hooks")
class AsynchronousDescription(Notes):
    @hookimpl
    async def provide_tools(self):
        return ()


@fails("valid hooks")
class Hookless:
    def before(self):
        return None


@fails("description")
class OtherContract(Notes):
    contract = "2.0"


@fails("description")
class ManyRules(Notes):
    rules = ("A rule.",) * 11


@fails("description")
class LongRule(Notes):
    rules = ("x" * 4_001,)


@fails("description")
class OtherSettings(Notes):
    settings_class = int


@fails("description")
class Undescribed(Notes):
    @hookimpl
    def describe(self):
        return None


@fails("description")
class Leaving(Notes):
    @hookimpl
    def describe(self):
        sys.exit("not today")


@fails("description")
class Unconfigured(Notes):
    @hookimpl
    def configure(self, setup):
        return {"before_prompt": 1.0}


@fails("description")
class OffersNames(Notes):
    @hookimpl
    def provide_tools(self):
        return ["notes_find"]


@fails("same description")
class NumberedRules(Notes):
    made: ClassVar[list[int]] = []

    def __init__(self):
        super().__init__()
        self.made.append(1)
        self.rules = (f"Notes number {len(self.made)}.",)


@fails("same description")
class ChangingRules(Notes):
    @hookimpl
    def describe(self):
        return attrs.evolve(super().describe(), rules=(f"{len(self.notes)} notes.",))


@fails("same offers")
class NumberedTool(Notes):
    @hookimpl
    def provide_tools(self):
        return [attrs.evolve(each, description=f"Of {id(self)}.") for each in super().provide_tools()]


@fails("same blocks")
class CountingBlock(Notes):
    asked = 0

    def contribution(self, turn, report):
        self.asked += 1
        return Contribution(blocks=[f"Asked {self.asked} times."])


@fails("instances share nothing")
class Shared(Notes):
    shelf: ClassVar[list[str]] = []

    def __init__(self):
        super().__init__()
        self.shelf.clear()

    @property
    def notes(self):
        return self.shelf

    @notes.setter
    def notes(self, value):
        self.shelf[:] = value
