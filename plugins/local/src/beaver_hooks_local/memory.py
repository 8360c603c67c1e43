"""The open memory as the plugin uses it: the operations of the engine, and recall. Blocking."""

import os
from functools import partial

from beaver_hooks_local.recall.recaller import Recaller
from beaver_hooks_local.settings import CaptureSettings, LocalSettings
from beaver_hooks_local.visibility import Home, Visibility
from beaver_hostspecs import Clock, CommandContext, Scope, Setup, StateBackup, Subject, SubjectData, Trust
from beaver_memory.capture.gates.budget import Budget
from beaver_memory.records import Owner
from beaver_memory.records import Scope as MemoryScope
from beaver_memory.runtime.backup import MemoryBackup
from beaver_memory.runtime.memory_runtime import MemoryRuntime
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.profile import (
    CaptureProfile,
    Location,
    PostgresLocation,
    Profile,
    RuntimeServices,
    SqliteLocation,
)
from beaver_memory.runtime.subject import SubjectMemory
from beaver_toolkit.redaction.redactor import Policy

DEFAULT_PROJECT = "default"
"""The name of a project in its own database, whose folder may move or be renamed."""

GLOBAL_TYPES = frozenset({"preference"})
"""Types of memories that hold in all projects."""


class LocalMemory:
    """An open memory. Thread-safe; every method may wait for a disk.

    Args:
        operations: of the memory.
        settings: of the plugin.
        reference_tokens: the most tokens of references that the host shows in a turn, or `None`.

    Attributes:
        recaller: recalls before prompts.
    """

    def __init__(self, operations: Operations, settings: LocalSettings, *, reference_tokens: int | None = None) -> None:
        self.operations, self.settings = operations, settings
        self.clock, self.trace, self.troubles = operations.clock, operations.trace, operations.troubles
        self.recaller = Recaller(operations, settings, most=reference_tokens)

    @property
    def home(self) -> Home:
        """The tenant and the project of this memory."""
        return self.operations.location


def default_scope(type_: str, project: str) -> MemoryScope:
    """Return the scope of a new memory whose writer gives none: global for a preference, and outside of any project."""
    return "project" if project and type_ not in GLOBAL_TYPES else "global"


def _capture_profile(settings: CaptureSettings) -> CaptureProfile:
    return CaptureProfile(
        enabled=settings.enabled,
        extractor=settings.extractor,
        budget=Budget(
            per_turn=settings.per_turn,
            per_day=settings.per_day,
            model_calls_per_day=settings.model_calls_per_day,
        ),
        paths=settings.paths,
        projects=settings.projects,
    )


def make_runtime(settings: LocalSettings, setup: Setup, services: RuntimeServices) -> MemoryRuntime:
    """Return the runtime of the memory that the settings describe, not yet started."""
    return MemoryRuntime(_profile(settings), location_of(settings, setup), services)


def _profile(settings: LocalSettings) -> Profile:
    return Profile(
        embedding=settings.embedding,
        vectors=settings.vectors,
        formula=settings.ranking.formula,
        reranker=settings.recall.reranker,
        capture=_capture_profile(settings.capture),
        redaction=Policy(emails=settings.redaction.emails, phones=settings.redaction.phones),
    )


def make_backup(settings: LocalSettings, setup: Setup, clock: Clock) -> StateBackup:
    """Return the functions that copy the memory of the settings, and bring it back."""
    return MemoryBackup(location=location_of(settings, setup), clock=clock).functions()


def make_subject_data(settings: LocalSettings, setup: Setup, services: RuntimeServices) -> SubjectData:
    """Return the functions that export and erase a person's data in the memory of the settings."""
    location = location_of(settings, setup)
    memory = SubjectMemory(
        profile=_profile(settings), location=location, services=services, owner_of=partial(_owner_of, location)
    )
    return memory.functions()


def _owner_of(home: Home, subject: Subject) -> Owner:
    scope = Scope(tenant=subject.tenant)
    return Visibility.of_command(CommandContext(user=subject.user, scope=scope, trust=Trust.FULL), home).owner


def location_of(settings: LocalSettings, setup: Setup) -> Location:
    """Return where the memories of the settings lie."""
    folders = {"state_folder": setup.state_folder, "person_folder": setup.person_folder}
    postgres = settings.store.postgres
    if postgres is None:
        project = DEFAULT_PROJECT if _has_own_database(settings, setup) else settings.project
        return SqliteLocation(**folders, database_path=settings.database_path, project=project)
    return PostgresLocation(
        **folders,
        project=settings.project,
        url=postgres.url,
        tenant=postgres.tenant,
        schema=postgres.schema,
        connections=postgres.connections,
        connect_seconds=postgres.connect_seconds,
    )


def _has_own_database(settings: LocalSettings, setup: Setup) -> bool:
    """Return whether the memories of a project lie apart from the global ones of the person."""
    return settings.database_path is None and os.path.realpath(setup.state_folder) != os.path.realpath(
        setup.person_folder
    )
