"""Plugins that keep what they must not, or let a secret out."""

import base64
import logging
import sys

import attrs
from conformance.notes import Notes, fails

from beaver_hostspecs import (
    Contribution,
    Reference,
    hookimpl,
)


@fails("recalls what it learned")
class Forgetful(Notes):
    def keep(self, turn, text, report):
        pass


@fails("does not learn its own recall")
class LearnsRecall(Notes):
    def keep(self, turn, text, report):
        self.notes = [*self.notes, text][-20:]


@fails("does not learn its own recall")
class LearnsRecalledAnswers(Notes):
    @hookimpl
    async def after_prompt(self, turn, answer, report):
        self.notes = [*self.notes, answer.text][-20:]
        self.keep(turn, turn.prompt, report)


@fails("confirms what is durable")
class ConfirmsEarly(Notes):
    def keep(self, turn, text, report):
        self.notes = [*self.notes, text][-20:]


@fails("confirms what is durable")
class FailsToConfirm(Notes):
    @hookimpl
    async def before_compaction(self, compaction, report):
        report.outcome("notes", "failed")


@fails("confirms what is durable")
class AnswersCompaction(Notes):
    @hookimpl
    async def before_compaction(self, compaction, report):
        return True


@fails("keeps nothing private")
class KeepsPrivate(Notes):
    @hookimpl
    async def on_tool_result(self, turn, result, report):
        self.keep(turn, str(result.output), report)


@fails("keeps nothing private")
class WritesPrivate(Notes):
    @hookimpl
    async def on_tool_result(self, turn, result, report):
        self.file.with_suffix(".log").write_text(repr(result.error), "utf-8")


@fails("keeps nothing private")
class ReportsPrivate(Notes):
    @hookimpl
    async def on_tool_result(self, turn, result, report):
        report.event("tool_seen", summary=result.summary)


@fails("keeps nothing of dropped turns")
class LearnsAtOnce(Notes):
    def contribution(self, turn, report):
        self.keep(turn, turn.prompt, report)
        return super().contribution(turn, report)


@fails("trusts nothing said")
class Trusting(Notes):
    def contribution(self, turn, report):
        return Contribution(blocks=self.notes)


@fails("says no secret")
class SecretReference(Notes):
    def contribution(self, turn, report):
        return Contribution(references=[Reference(text=f"asked with {self.token.reveal()}")])


@fails("says no secret")
class SecretUri(Notes):
    def contribution(self, turn, report):
        return Contribution(references=[Reference(text="a note", uri=f"https://x/?key={self.token.reveal()}")])


@fails("says no secret")
class SecretRule(Notes):
    @hookimpl
    def describe(self):
        return attrs.evolve(super().describe(), rules=(self.harness.secret.reveal(),))


@fails("says no secret")
class SecretTool(Notes):
    async def find(self, arguments, turn, report):
        return {"sent": base64.b64encode(self.token.reveal().encode()).decode()}


@fails("says no secret")
class SecretCommand(Notes):
    async def count(self, words, context, report):
        return self.token.reveal()[::-1]


@fails("says no secret")
class SecretName(Notes):
    def __repr__(self):
        return f"Notes({self.token.reveal()!r})"


@fails("reports no secret")
class SecretEvent(Notes):
    def contribution(self, turn, report):
        report.event("asked", key=self.token.reveal())


@fails("reports no secret")
class SecretLog(Notes):
    def contribution(self, turn, report):
        logging.getLogger("notes").debug("asked with %s", self.token.reveal())


@fails("reports no secret")
class SecretPrint(Notes):
    def contribution(self, turn, report):
        sys.stdout.write(self.token.reveal())


@fails("reports no secret")
class SecretError(Notes):
    def contribution(self, turn, report):
        if self.harness.in_trouble:
            raise ConnectionError(f"refused: {self.token.reveal()}")


@fails("reports no secret")
class SecretToolError(Notes):
    async def find(self, arguments, turn, report):
        try:
            raise ConnectionError(f"refused: {self.token.reveal()}")
        except ConnectionError as error:
            raise RuntimeError("it failed") from error


@fails("writes no secret")
class SecretFile(Notes):
    @hookimpl
    async def start(self):
        self.file.with_suffix(".token").write_text(self.token.reveal(), "utf-8")


@fails("writes no secret")
class SecretTemporaryFile(Notes):
    @hookimpl
    async def start(self):
        self.file.with_suffix(".token").write_bytes(base64.b64encode(self.token.reveal().encode()))

    @hookimpl
    async def stop(self):
        self.file.with_suffix(".token").unlink()


@fails("writes no secret")
class SecretFileName(Notes):
    @hookimpl
    async def start(self):
        self.file.with_suffix(f".{self.token.reveal().encode().hex()[:200]}").touch()
