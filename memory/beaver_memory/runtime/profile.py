"""How a memory works, where it lies, and which services of its process it uses."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import attrs
from attrs import field
from attrs.validators import in_

from beaver_hostspecs import Clock, Report, Secret, SystemClock
from beaver_memory.capture.gates.budget import Budget
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.runtime.troubles import Troubles
from beaver_memory.views import EVERYTHING, Reach
from beaver_toolkit.redaction.redactor import Policy

if TYPE_CHECKING:
    # Its import is slow, and few memories lie there.
    from beaver_memory.store.in_memory import Database

CLOSE_SECONDS = 4.0
"""How long closing a memory waits for running operations."""

DATABASE = "memory.db"
"""The same as in `engine`, whose import is slow."""

NOWHERE = Path(os.devnull)
"""A folder that holds no model."""

Vectors = Literal["bytes", "sqlite-vec"]
Formula = Literal["context", "seed-002", "seed-003"]

Reranker = Literal["none", "tokens"]
Extractors = Literal["rules", "model", "hybrid"]


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class CaptureProfile:
    """How a memory learns from conversations.

    Attributes:
        enabled: the switch.
        extractor: what finds candidates: `rules`, `model`, or `hybrid` of both; without a model it is `rules`.
        least_confidence: the confidence from which a message is worth keeping.
        budget: the most memories of a turn and of a day, and the most calls of a model.
        paths: patterns of paths that it does not learn from.
        tags: labels that it does not learn from.
        projects: patterns of projects that it does not learn from.
    """

    enabled: bool = True
    extractor: Extractors = field(default="rules", validator=in_(get_args(Extractors)))
    least_confidence: float = 0.5
    budget: Budget = field(factory=Budget)
    paths: tuple[str, ...] = field(default=(), converter=_texts)
    tags: tuple[str, ...] = field(default=(), converter=_texts)
    projects: tuple[str, ...] = field(default=(), converter=_texts)


@attrs.frozen(kw_only=True)
class Profile:
    """How a memory works.

    Attributes:
        name: of the profile, as `capabilities` shows it.
        embedding: what turns texts into vectors.
        vectors: what finds the nearest vectors: `bytes`, the index itself, or `sqlite-vec`, a table in the database.
        formula: the formula of ranking.
        reranker: what ranks the first memories of a search again: `tokens`, or `none`.
        capture: how it learns.
        redaction: what counts as a secret, which is never stored.
        withheld: the names of operations that this memory does not carry out.
    """

    name: str = "embedded"
    embedding: EmbeddingSettings = field(factory=EmbeddingSettings)
    vectors: Vectors = field(default="bytes", validator=in_(get_args(Vectors)))
    formula: Formula = field(default="context", validator=in_(get_args(Formula)))
    reranker: Reranker = field(default="none", validator=in_(get_args(Reranker)))
    capture: CaptureProfile = field(factory=CaptureProfile)
    redaction: Policy = field(factory=Policy)
    withheld: frozenset[str] = field(default=frozenset(), converter=frozenset)


@attrs.frozen(kw_only=True)
class SqliteLocation:
    """The folders of a memory in SQLite.

    Attributes:
        state_folder: holds the database of the project, and the record of the model last in use.
        person_folder: holds the database of the person's global memories and the models; `state_folder` unless given.
        database_path: one database for all memories, in place of both, which other projects may use as well.
        project: the name of the project; `None` outside of any.
    """

    tenant: ClassVar[str] = ""
    state_folder: Path
    person_folder: Path = field(default=attrs.Factory(lambda self: self.state_folder, takes_self=True))
    database_path: Path | None = None
    project: str | None = None

    @property
    def reach(self) -> Reach:
        """The part of the database that is the process's own: all of it, unless other projects use it."""
        return Reach(self.tenant, self.project) if self.is_given else EVERYTHING

    @property
    def database(self) -> Path:
        """The database of the project, or that of all memories."""
        return self.database_path or self.state_folder / DATABASE

    @property
    def is_given(self) -> bool:
        """Whether the caller names the database."""
        return self.database_path is not None

    @property
    def model_folder(self) -> Path:
        """The folder of embedding models."""
        return self.person_folder


@attrs.frozen(kw_only=True)
class InMemoryLocation:
    """A memory that ends with its process, and needs no disk.

    Attributes:
        database: the rows, which other memories of the process may share; empty ones unless given.
        state_folder: holds the record of the model last in use; `None` for no record.
        model_folder: the folder of embedding models.
        project: the name of the project; `None` outside of any.
        reach: the part of the database that is the process's own.
    """

    tenant: ClassVar[str] = ""
    database: "Database | None" = None
    state_folder: Path | None = None
    model_folder: Path = NOWHERE
    project: str | None = None
    reach: Reach = EVERYTHING

    @property
    def is_given(self) -> bool:
        """Whether the caller names the database."""
        return True


@attrs.frozen(kw_only=True)
class PostgresLocation:
    """A memory in one tenant of a PostgreSQL database, which other machines may use as well.

    Raises ValueError for a tenant without a name, or with `/` in it: that stands before the tenant of a turn.

    Attributes:
        url: the address of the database.
        tenant: the tenant.
        project: the name of the project; `None` outside of any.
        schema: the schema of the tables.
        connections: the most connections of this process.
        connect_seconds: the most seconds that a connection may take to be made.
        state_folder: holds the record of the model last in use.
        person_folder: holds the models; `state_folder` unless given.
    """

    url: Secret
    tenant: str = field()
    project: str | None = None
    schema: str = "beaver_memory"
    connections: int = 4
    connect_seconds: int = 3
    state_folder: Path
    person_folder: Path = field(default=attrs.Factory(lambda self: self.state_folder, takes_self=True))

    @property
    def reach(self) -> Reach:
        """The part of the database that is the process's own."""
        return Reach(self.tenant, self.project)

    @tenant.validator
    def _is_whole(self, _: object, value: str) -> None:
        if not value.strip() or "/" in value or not value.isprintable():
            raise ValueError("tenant must be a name without `/` and control characters")

    @property
    def is_given(self) -> bool:
        """Whether the caller names the database."""
        return True

    @property
    def model_folder(self) -> Path:
        """The folder of embedding models."""
        return self.person_folder


Location = SqliteLocation | InMemoryLocation | PostgresLocation
"""Where a memory lies."""


@attrs.frozen(kw_only=True)
class RuntimeServices:
    """What a memory uses of its process.

    Attributes:
        report: receives events and health.
        environment: holds the credentials.
        clock: the source of time.
        trace: receives each step, without content: `trace(event, **facts)`.
        troubles: what does not work now.
        ask_model: sends a text to a small language model and returns its answer, within a deadline of its own; `None`
            without one.
    """

    report: Report
    environment: Mapping[str, str] = field(factory=dict, repr=False)
    clock: Clock = field(factory=SystemClock)
    trace: Callable[..., None] = field(default=lambda _event, /, **_facts: None, repr=False)
    troubles: Troubles = field(factory=Troubles)
    ask_model: Callable[[str], object] | None = field(default=None, repr=False)
