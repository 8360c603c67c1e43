"""`beaver memory` in two projects of one person, each command a process of its own."""

import json
import os
from pathlib import Path

import pytest
from processes import environment, run_beaver

from beaver_memory.store.joint import PERSONAL_IDS

WHEELS = Path(os.environ.get("BEAVER_MODEL_WHEELS", Path(__file__).parents[3] / "build" / "model-wheels"))
"""Where `make models` has put the wheels of the real model."""

TEA = "Ann drinks green tea."
BRANCH = "Billing is deployed from the branch stable."
FIRST = PERSONAL_IDS + 1
E5 = "e5-small"


@pytest.fixture
def own_home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def beaver(own_home):
    """Return what runs `beaver memory` in one of two projects, whose configuration turns the local memory on."""

    def run(project, *words, stdin="", provider="none", **more):
        folder = own_home / project / ".beaver"
        folder.mkdir(parents=True, exist_ok=True)
        local = {"enabled": True, "embedding": {"provider": provider}}
        (folder / "config.json").write_text(json.dumps({"memory": {"mode": "curated", "local": local}}))
        places = {"HOME": own_home, "XDG_STATE_HOME": own_home / "xdg", "BEAVER_CONFIG": folder / "config.json"}
        env = environment(COLUMNS=120, **places | more)
        return run_beaver("memory", *words, cwd=folder.parent, env=env, stdin=stdin)

    return run


def plugin_folder(folder):
    return folder / ".beaver" / "plugins" / "local"


def titles(ran):
    return [each["title"] for each in ran.json["memories"]]


def test_what_is_added_in_one_project_is_found_in_the_other(beaver):
    """A preference is listed, searched, shown, pinned, exported and forgotten in each project."""
    added = beaver("one", "add", TEA, "--type", "preference")
    own = beaver("one", "add", BRANCH)
    listed = beaver("two", "list", "--json")
    found = beaver("two", "search", "tea", "--json")
    pinned = beaver("two", "pin", FIRST)
    shown = beaver("one", "show", FIRST, "--json")
    exported = beaver("one", "export")
    forgotten = beaver("two", "forget", FIRST, "--yes")
    assert (f"{FIRST}\n", "1\n") == (added.out, own.out)
    assert ([TEA], [TEA], 0) == (titles(listed), [each["title"] for each in found.json["hits"]], pinned.code)
    assert [(True, ["ADD", "PIN"])] == [
        (each["pinned"], [change["event"] for change in each["history"]]) for each in shown.json["memories"]
    ]
    assert [BRANCH, TEA] == [json.loads(line)["title"] for line in exported.out.splitlines()]
    assert (0, [BRANCH]) == (forgotten.code, titles(beaver("one", "list", "--json")))


def test_a_file_of_both_kinds_is_added_where_each_belongs(beaver):
    """Lines of JSON are routed one by one; added again, and in another project, what holds everywhere is there."""
    lines = "".join(f"{json.dumps(each)}\n" for each in (
        {"title": TEA, "type": "preference"}, {"title": BRANCH}, {"title": "Tea is at four.", "scope": "global"},
    ))  # fmt: skip
    first, again, other = (beaver(name, "add", "--json-lines", "--json", stdin=lines) for name in ("one", "one", "two"))
    ids = [FIRST, 1, FIRST + 1]
    assert [
        [(id_, "stored") for id_ in ids], [(id_, "duplicate") for id_ in ids],
        [(FIRST, "duplicate"), (1, "stored"), (FIRST + 1, "duplicate")],
    ] == [[(each["id"], each["outcome"]) for each in ran.json["memories"]] for ran in (first, again, other)]  # fmt: skip


@pytest.mark.campaign
def test_numbers_indexes_and_checks_are_of_both(beaver):
    """`stats`, `reindex` and `check` are about both databases."""
    beaver("one", "add", TEA, "--type", "preference")
    beaver("one", "add", BRANCH)
    stats, indexed, checked = (beaver("one", name, "--json").json for name in ("stats", "reindex", "check"))
    assert (2, {"project": 1, "person": 1}) == (stats["memories"], stats["databases"])
    assert ({"embedded": 0, "indexed": 2}, {"ok": True, "problems": []}) == (indexed, checked)


@pytest.mark.campaign
def test_a_damaged_database_of_the_person(beaver, own_home):
    """`list` warns about the person's damaged database and shows the project's memories; `check` names the file."""
    beaver("one", "add", TEA, "--type", "preference")
    beaver("one", "add", BRANCH)
    path = plugin_folder(own_home) / "memory.db"
    path.write_bytes(b"This is no database, and somebody may need it. " * 100)
    listed, refused, checked = (
        beaver("one", "list", "--json"),
        beaver("one", "add", "Owls.", "--scope", "global"),
        beaver("one", "check"),
    )
    said = (
        f"The memory store {path} is damaged; move it (with its -wal and -shm files) away, or restore it from a backup."
    )
    left_out = f"{said} Until then, memories that hold in all of your projects are left out."
    assert ([BRANCH], True) == (titles(listed), left_out in listed.err)
    assert (6, True) == (refused.code, f"{said} Memories of scope `global` are kept there" in refused.err)
    assert (1, f"{said}\n") == (checked.code, checked.out)
    assert [BRANCH] == titles(beaver("one", "list", "--json"))


# --- Models -------------------------------------------------------------------------------------------------------------


@pytest.mark.campaign
@pytest.mark.skipif(not WHEELS.is_dir(), reason="the wheels of e5-small are not here; `make models` fetches them")
def test_a_model_is_installed_once_for_all_projects(beaver, own_home):
    """Installed in one project it serves the other one, and removed in the other one it is gone from the first."""
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}
    installed = beaver("one", "embedder", "install", "--json", **pip)
    place = plugin_folder(own_home) / "models" / E5
    assert (str(place), False) == (installed.json["folder"], (plugin_folder(own_home / "one") / "models").exists())
    assert f"onnx {E5}, 384 dimensions" == beaver("two", "stats", "--json", provider="auto").json["embedder"]

    found = [beaver(name, "embedder", "check", "--json") for name in ("one", "two")]
    removed = beaver("two", "embedder", "remove", "--yes", "--json")
    assert ([0, 0], {"model": E5, "removed": True}) == ([each.code for each in found], removed.json)
    assert 6 == beaver("one", "embedder", "check").code


def test_models_where_the_person_has_no_folder(beaver, own_home):
    """`embedder list` works where a file stands in place of the person's folder, and `embedder install` fails."""
    own_home.mkdir()
    (own_home / ".beaver").write_text("in the way")
    listed, refused = beaver("one", "embedder", "list"), beaver("one", "embedder", "install")
    assert (0, True, True) == (listed.code, "not installed" in listed.out, refused.code != 0)
