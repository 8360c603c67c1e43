"""The settings of the section `memory.local` of the configuration."""

from pathlib import Path
from typing import Literal

import attrs

from beaver_hostspecs import Secret
from beaver_hostspecs.settings import Check, Unfit, between, setting
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_toolkit.postgres_urls import parsed

PATH = "memory.local"

Extractor = Literal["rules", "model", "hybrid"]
Reranker = Literal["none", "tokens"]
Formula = Literal["context", "seed-002", "seed-003"]

_whole = Check(
    wanted="must be a whole number", fits=lambda value: isinstance(value, int) and not isinstance(value, bool)
)
_absolute = Check(wanted="must be an absolute path", fits=lambda value: Path(value).is_absolute())
_in_a_folder = Check(
    wanted="must be a file in a folder that exists; make the folder, or name another path",
    fits=lambda value: Path(value).parent.is_dir() and not Path(value).is_dir(),
)

LONGEST_NAME = 100

_url = Check(
    wanted="must be an address like postgresql://user@host:5432/database, with a host and a database; write `@`, `/`"
    " and `?` in a password as %40, %2F and %3F",
    fits=lambda value: parsed(value.reveal()) is not None,
)
project_name = Check(
    wanted=f"must be a name of 1 to {LONGEST_NAME} characters without `/`, control characters and spaces around it",
    fits=lambda value: (
        0 < len(value) <= LONGEST_NAME and value == value.strip() and value.isprintable() and "/" not in value
    ),
)
_schema = Check(
    wanted="must be a name of small letters, digits and `_`, at most 63",
    fits=lambda value: value.isidentifier() and value.isascii() and value.islower() and len(value) <= 63,  # noqa: PLR2004
)


@attrs.frozen(kw_only=True)
class PostgresSettings:
    """A PostgreSQL database that holds the memories; camelCase in the file."""

    url: Secret = setting(
        help='the address, `postgresql://user:password@host:5432/database`; a secret: {"env": "NAME"}', validator=_url
    )
    tenant: str = setting(help="the tenant whose memories are used; other tenants stay hidden", validator=project_name)
    schema: str = setting(default="beaver_memory", help="the schema of the tables", validator=_schema)
    connections: int = setting(
        default=4, help="the most connections of one process", validator=[_whole, between(1, 64)]
    )
    connect_seconds: int = setting(
        default=3, help="the most seconds that a connection may take to be made", validator=[_whole, between(1, 60)]
    )
    allow_unencrypted: bool = setting(
        default=False, help="whether a server on another machine may be reached without TLS, where others can read"
    )

    def __attrs_post_init__(self) -> None:
        """Refuse to send memories over a network unencrypted, unless a setting allows it."""
        address = parsed(self.url.reveal())
        if address is not None and address.is_exposed and not self.allow_unencrypted:
            raise Unfit(
                "`url` leads to another machine without TLS, so others can read memories and the password on the way;"
                " add `?sslmode=verify-full`, or set `allowUnencrypted` to true"
            )


@attrs.frozen(kw_only=True)
class StoreSettings:
    """Where memories are kept: in files of SQLite unless another store is given."""

    postgres: PostgresSettings | None = setting(
        default=None, help="a PostgreSQL database that holds all memories, in place of files"
    )


def _count(low: int, high: int) -> list[Check]:
    return [_whole, between(low, high)]


@attrs.frozen(kw_only=True)
class PromptIndexSettings:
    """Settings of the memory index, a list of titles beside the recalled memories."""

    enabled: bool = setting(
        default=True, help="whether the memory index, a list of titles, is added to what is recalled"
    )
    limit: int = setting(default=30, help="the most memories in the index", validator=_count(1, 500))
    max_tokens: int = setting(default=3000, help="the most tokens of the index", validator=_count(1, 100_000))
    recent_days: int = setting(
        default=3, help="memories of this many last days come first, whatever the prompt", validator=_count(1, 30)
    )


@attrs.frozen(kw_only=True)
class RecallSettings:
    """Settings of recall before a prompt."""

    enabled: bool = setting(default=True, help="whether anything is recalled before a prompt")
    top_k: int = setting(default=8, help="the most memories that a turn gets", validator=_count(3, 8))
    minimum_score: float | None = setting(
        default=None,
        help="the lowest score of the best memory, below which a turn gets none; by default that of the embedder",
        validator=between(0, 1),
    )
    share_of_best: float | None = setting(
        default=None,
        help="the share of the best score that a memory behind the first three needs: less gives more memories; by "
        "default that of the embedder",
        validator=between(0, 1),
    )
    max_tokens: int = setting(
        default=1200, help="the most tokens of the recalled memories together", validator=_count(1, 100_000)
    )
    cache_seconds: float = setting(
        default=180.0, help="how long a recall is used again, unless a memory is written", validator=between(120, 300)
    )
    topic_turns: int = setting(
        default=4, help="the most turns on one topic that share a recall", validator=_count(3, 5)
    )
    reranker: Reranker = setting(
        default="none",
        help="what ranks the first 50 memories of a search again: `tokens` compares each word of the prompt with"
        " theirs, by the model e5-small; it takes more disk",
    )


@attrs.frozen(kw_only=True)
class RankingSettings:
    """Settings of ranking."""

    formula: Formula = setting(default="context", help="the formula of ranking; the others are for comparison")


@attrs.frozen(kw_only=True)
class CaptureSettings:
    """Settings of capture: how the memory learns from conversations by itself."""

    enabled: bool = setting(default=True, help="whether the memory learns from conversations by itself")
    extractor: Extractor = setting(
        default="rules",
        help="what finds memories: `rules`, the small `model` that the host lends, or `hybrid` of both",
    )
    min_turn_messages: int = setting(
        default=4,
        help="how many messages of a session are captured together; the rest is captured when the session ends",
        validator=_count(1, 100),
    )
    per_turn: int = setting(default=3, help="the most memories that are captured together", validator=_count(1, 20))
    per_day: int = setting(
        default=200,
        help="the most memories that are captured of a user in a day (UTC), by all processes",
        validator=_count(1, 10_000),
    )
    model_calls_per_day: int = setting(
        default=200,
        help="the most calls of the small model for a user in a day (UTC), by all processes",
        validator=_count(0, 100_000),
    )
    model_seconds: float = setting(
        default=8.0, help="the most seconds that a call of the small model may take", validator=between(0.1, 120)
    )
    paths: tuple[str, ...] = setting(
        default=(), help="patterns of paths: a session that touches one of them teaches the memory nothing"
    )
    projects: tuple[str, ...] = setting(default=(), help="patterns of projects whose sessions teach the memory nothing")


@attrs.frozen(kw_only=True)
class RedactionSettings:
    """Settings of redaction: what counts as a secret beside credentials, card and account numbers."""

    emails: bool = setting(default=False, help="whether e-mail addresses are never stored")
    phones: bool = setting(default=False, help="whether phone numbers are never stored")


@attrs.frozen(kw_only=True)
class LocalSettings:
    """The settings of the plugin; camelCase in the file."""

    enabled: bool = setting(default=False, help="whether the local memory is on")
    database_path: Path | None = setting(
        default=None,
        help="one database for all memories; by default one of the project and one of the person",
        validator=[_absolute, _in_a_folder],
    )
    project: str | None = setting(
        default=None,
        help="the name of this project in a database that several projects share: memories of the others are left out."
        " Without it such a database has no projects; a project with its own database needs no name",
        validator=project_name,
    )
    store: StoreSettings = setting(
        default=StoreSettings(), help="where memories are kept: in files of SQLite unless another store is given"
    )
    embedding: EmbeddingSettings = setting(default=EmbeddingSettings(), help="what turns texts into vectors")
    vectors: Literal["bytes", "sqlite-vec"] = setting(
        default="bytes",
        help="what finds the nearest vectors: `bytes`, the index itself, or `sqlite-vec`, a table in the database",
    )
    prompt_index: PromptIndexSettings = setting(
        default=PromptIndexSettings(), help="the memory index: a list of titles beside what is recalled"
    )
    recall: RecallSettings = setting(default=RecallSettings(), help="what is recalled before a prompt, and when")
    capture: CaptureSettings = setting(
        default=CaptureSettings(), help="how the memory learns from conversations by itself"
    )
    redaction: RedactionSettings = setting(
        default=RedactionSettings(),
        help="what is never stored beside credentials, card and account numbers: the memory refuses it, and capture "
        "replaces it by the name of its kind",
    )
    ranking: RankingSettings = setting(default=RankingSettings(), help="how memories are ranked")
    trace_file: Path | None = setting(
        default=None,
        help="a file that gets one JSON line, without content, for each operation of the memory",
        validator=[_absolute, _in_a_folder],
    )

    def __attrs_post_init__(self) -> None:
        """Reject settings of files beside a store that has none."""
        if self.store.postgres is None:
            return
        if self.database_path is not None:
            raise Unfit("`databasePath` names a file, and `store.postgres` a database; remove one of them")
        if self.vectors != "bytes":
            raise Unfit("`vectors` is `sqlite-vec`, which is a table of SQLite; with `store.postgres` remove it")
