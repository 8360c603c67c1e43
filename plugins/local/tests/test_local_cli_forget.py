"""`beaver memory forget`: what its options select, what it erases and counts, and what it refuses."""

import json

import pytest

from beaver_memory.engine import MemoryEngine
from beaver_memory.records import NewMemory, Owner

LINES = [
    {"title": "Ann deployed billing.", "session": "s", "related_files": ["src/billing.py"], "tags": ["work"]},
    {"title": "Tea is at four.", "created_at": "2026-01-02T00:00:00+00:00", "evidence": "We deploy tea at four."},
    {"title": "The whale sings.", "session": "t", "related_files": ["docs/whale.md"], "related_people": ["Ann"]},
    {"title": "Old news.", "created_at": "2025-01-01T00:00:00+00:00", "expires_at": "2025-02-01T00:00:00+00:00"},
]


@pytest.fixture
def filled(here):
    """Return what runs a command over a memory that holds the lines above, with the ids 1 to 4."""
    here("add", "--json-lines", stdin="\n".join(map(json.dumps, LINES)))
    return here


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        (("--query", "deploying"), {1, 2}),
        (("--query", "Ann"), {1, 3}),
        (("--session", "s"), {1}),
        (("--file", "src"), {1}),
        (("--tag", "work"), {1}),
        (("--since", "2026-01-02", "--until", "2026-01-03"), {2}),
        (("--until", "2026-01-01"), {4}),
        (("--query", "ann", "--session", "t", "--file", "docs"), {3}),
        ((1, 3, "--query", "whale"), {3}),
        (("--query", "nothing of this"), set()),
        (("--all",), {1, 2, 3, 4}),
    ],
)
def test_options_select_what_fits_all_of_them(filled, options, selected):
    """A dry run lists the memories that fit every option, in any form of the words, lapsed ones too."""
    shown = filled("forget", *options, "--dry-run", "--json")

    assert (0, selected) == (shown.code, {each["id"] for each in shown.json["forgotten"]})


def test_a_selection_is_erased_and_counted(filled):
    """What an option selects is forgotten after --yes, with counts for each place; the rest stays."""
    gone = filled("forget", "--query", "ann", "--yes", "--json").json
    left = {each["id"] for each in filled("list", "--all", "--json").json["memories"]}

    assert ({1, 3}, {2, 4}) == ({each["id"] for each in gone["forgotten"]}, left)
    assert ({"memories": 2, "labels": 6}, {}) == (gone["erased"], gone["left"])


def test_what_is_left_is_named(filled, monkeypatch):
    """If a place keeps something of a forgotten memory, the report names it and the exit code is 1."""
    monkeypatch.setattr("beaver_memory.store.sqlite.update.drop_labels", lambda *_: None)
    ran, told = filled("forget", 1, "--yes"), filled("forget", 3, "--yes", "--json")

    assert (1, "Still there: labels 3. Run `beaver memory check`, and forget again.\n") == (ran.code, ran.err)
    assert (1, {"labels": 3}) == (told.code, told.json["left"])


def test_users_and_tenants(here):
    """`--tenant` and `--all-users` select the memories of a tenant, and of none beside it."""
    here("list")
    folder = here.shell.folder()
    with MemoryEngine.open(folder) as engine:
        owners = [Owner(user="ann"), Owner(tenant="acme", user="ann"), Owner(tenant="acme", user="bob")]
        engine.add([NewMemory(title=f"Of {each.tenant} {each.user}.", owner=each) for each in owners])
    one = here("forget", "--tenant", "acme", "--user", "ann", "--all", "--dry-run", "--json").json
    every = here("forget", "--tenant", "acme", "--all-users", "--all", "--yes", "--json").json
    left = here("list", "--user", "ann", "--json").json["memories"]

    titles = [[each["title"] for each in shown] for shown in (one["forgotten"], left)]
    assert [["Of acme ann."], ["Of  ann."], 2] == [*titles, len(every["forgotten"])]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Name the memories (forget ID...), select them"),
        ((1, "--all"), "--all means all memories of the user"),
        (("--all", "--query", "tea"), "--all means all memories of the user"),
        (("--query", "?!"), "`query` must hold a word."),
    ],
)
def test_a_selection_that_says_nothing(filled, words, why):
    """A selection that is missing, has two meanings or holds no word is refused, and nothing is forgotten."""
    refused = filled("forget", *words, "--yes")

    assert (True, 4) == (why in refused.err, len(filled("list", "--all", "--json").json["memories"]))
    assert refused.code in {2, 6}
