"""The named queries of the project: each is used, and each one that the source uses exists."""

import re
from pathlib import Path

import pytest

from beaver_toolkit.queries import Queries

ROOT = Path(__file__).parents[2]
USED = re.compile(r'SQL\["([a-z_0-9]+)"\]')


def users_of(path):
    """Return the modules that use a file of queries: the one of its name beside the folder `sql`, else its package."""
    if path.parent.name == "sql":
        return [path.parents[1] / f"{path.stem}.py"]
    return [*path.parent.rglob("*.py")]


COUNTED = {"tenants.sql": [ROOT / "memory/beaver_memory/store/postgres/integrity.py"]}
"""Modules that use the queries of another one, which passes them."""


def read(modules):
    return "".join(module.read_text("utf-8") for module in modules)


FILES = sorted(
    path
    for each in ("beaver_hooks", "memory", "plugins")
    for path in (ROOT / each).rglob("*.sql")
    if not {"build", "migrations"} & {*path.parts}
)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_each_query_is_used(path):
    """Each name of a file of queries stands in a string of the modules that the file belongs to."""
    source = read([*users_of(path), *COUNTED.get(path.name, ())])

    assert [] == [name for name in Queries(path).names() if not re.search(rf'"{name}"', source)]


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_each_used_query_exists(path):
    """Each query that a module takes by name is one of its file."""
    assert {*USED.findall(read(users_of(path)))} <= {*Queries(path).names()}


STORE = ROOT / "memory/beaver_memory/store/sqlite/sql"
KEYED = re.compile(
    r"\b(?:FROM|JOIN|INTO|UPDATE) "
    r"(owners|observations|observation_[a-z]+|unembedded|session_summaries|people|captured?_[a-z]+)\b(?! \(observations_fts)"
)
WHOLE = {
    "damaged_rows.sql": {"row", "column"},
    "embeddings.sql": {"queue_everything", "unqueue_model", "drop_vectors_of_model"},
    "integrity.sql": {
        *("count_forgotten", "count_owners", "count_by_store", "count_by_type", "count_by_model"),
        *("wrong_word_index", "count_rows"),
    },
    "owners.sql": {"lower_last_indexed"},
    "rebuild_terms.sql": {"following_memories", "set_terms"},
    "rows.sql": {"read_row"},
    "word_index.sql": {"last_added", "add_rows", "unused_words"},
}
"""Statements of the whole store, and statements that name a row, which only a statement with the tenant has found."""


@pytest.mark.parametrize("path", sorted(STORE.glob("*.sql")), ids=lambda path: path.name)
def test_each_statement_of_the_store_names_the_tenant(path):
    """A statement names the tenant once for each table of tenants that it reads or writes, or works on the whole store."""
    queries = Queries(path)
    without = {
        name for name in queries.names() if len(KEYED.findall(queries[name])) > len(re.findall("tenant", queries[name]))
    }
    assert WHOLE.get(path.name, set()) == without


MADE = re.compile(r"CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)")


@pytest.mark.shows("004-003", "004-004")
def test_tables_outside_of_the_engine():
    """The host keeps its trail and its sessions; the engine alone has tables of memories."""
    parts = [path for each in ("beaver_hooks", "hostspecs", "toolkit", "plugins") for path in (ROOT / each).rglob("*")]
    sources = [path for path in parts if path.suffix in {".py", ".sql"} and not {"build", "tests"} & {*path.parts}]
    found = {str(path.relative_to(ROOT)): {*MADE.findall(path.read_text("utf-8"))} for path in sources}

    assert {
        "beaver_hooks/agent/sessions/migrations/0001_first.sql": {"sessions", "messages", "events", "words"},
        "beaver_hooks/audit/migrations/0001_first.sql": {"audit", "receipts", "health"},
        "toolkit/beaver_toolkit/sqlite/migrations.py": {"schema_version"},
    } == {path: tables for path, tables in found.items() if tables}
