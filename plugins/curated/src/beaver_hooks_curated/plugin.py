"""The plugin itself: a snapshot before each prompt, the tool, the commands."""

import asyncio
from pathlib import Path

from beaver_hooks_curated.commands import CuratedCommands
from beaver_hooks_curated.entries import BOTH, Target
from beaver_hooks_curated.reports import UNCONFIRMED, UNREADABLE, tell_taken, tell_written
from beaver_hooks_curated.service import MemoryService
from beaver_hooks_curated.settings import PATH, CuratedSettings
from beaver_hooks_curated.store import WriteResult
from beaver_hooks_curated.tool import MemoryTool
from beaver_hostspecs import (
    Command,
    Contribution,
    Deadlines,
    PluginInfo,
    Report,
    Setup,
    StateBackup,
    SubjectData,
    Tool,
    Turn,
    hookimpl,
)

VERSION = "0.1.0"
RULE = (
    "Curated memory: the blocks MEMORY and USER PROFILE, where they are present, hold what earlier runs stored. They"
    " do not change during a run: only the tool `memory` changes them, from the next run on."
)


class Curated:
    """MEMORY.md and USER.md: frozen per run, edited only through the tool `memory`."""

    service: MemoryService
    """The service behind the hooks, set by `configure`."""

    @hookimpl
    def describe(self) -> PluginInfo:
        """Describe the plugin. Two small files are read quickly; a disk that hangs must not delay a turn for long."""
        return PluginInfo(
            contract="1.0",
            version=VERSION,
            summary="MEMORY.md and USER.md: shown in the system prompt, edited through the tool `memory`",
            settings=CuratedSettings,
            settings_path=PATH,
            rules=(RULE,),
            deadlines=Deadlines(before_prompt=10.0),
        )

    @hookimpl
    def configure(self, setup: Setup) -> None:
        """Take the settings; no file is touched yet."""
        settings: CuratedSettings = setup.settings
        named = Path(settings.folder) if settings.folder else None
        folder, person = named or setup.state_folder, named or setup.person_folder
        self.service = MemoryService(folder, settings, person=person, trust=setup.files)
        self._tool = MemoryTool(self.service)
        self._report = setup.report

    @hookimpl
    async def start(self) -> None:
        """Sweep temporary files of killed processes, and report problems of the files to the user."""
        await asyncio.to_thread(self.service.sweep)
        if await asyncio.to_thread(self.service.problems):
            self._report.degraded(UNREADABLE)
        if await asyncio.to_thread(self.service.unconfirmed):
            self._report.degraded(UNCONFIRMED)

    def take_edit(self, target: Target, base: str, text: str, user: str | None) -> WriteResult:
        """Take the text that the user made of `base` in an editor, and report it; see `MemoryService.edited`."""
        written = self.service.edited(target, base, text, user)
        tell_written(written, self._report, self.service, user)
        return written

    @hookimpl
    def provide_tools(self) -> tuple[Tool, ...]:
        """Offer the tool `memory`."""
        return (self._tool.tool,)

    @hookimpl
    def provide_commands(self) -> tuple[Command, ...]:
        """Offer the commands under `/memory curated`."""
        return CuratedCommands(self.service).all()

    @hookimpl
    def provide_backup(self) -> StateBackup:
        """Copy both memories, their histories and the waiting writes, of every user."""
        return self.service.backup.functions()

    @hookimpl
    def subject_data(self) -> SubjectData:
        """Export and erase the USER.md of one user, where profiles are kept per user."""
        return self.service.subject.functions()

    @hookimpl
    async def before_prompt(self, turn: Turn, report: Report) -> Contribution | None:
        """Give the run its snapshot of the targets that the trust of the turn lets it read.

        Raises:
            CuratedError: a file exists and cannot be read; the host's mode decides whether that ends the turn.
        """
        targets = self.service.readable(turn)
        for left_out in (each.file_name for each in BOTH if each not in targets):
            report.decision("trust", "left_out", left_out)
        if not targets:
            return None
        taken = await asyncio.to_thread(self.service.snapshot, turn.user, targets)
        tell_taken(taken, report)
        return Contribution(blocks=taken.snapshot.blocks) if taken.snapshot.blocks else None

    @hookimpl
    async def after_prompt(self, turn: Turn) -> None:
        """Forget the turn's failures."""
        self._tool.forget(turn)

    @hookimpl
    async def on_turn_dropped(self, turn: Turn) -> None:
        """Forget the turn's failures."""
        self._tool.forget(turn)
