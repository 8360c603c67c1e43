"""What git's index lists, asked of real repositories: quickly, again when it changes, and running nothing of theirs."""

import os
import subprocess
from pathlib import Path

import pytest

from beaver_hooks.file_trust import git_index
from beaver_hooks.file_trust.git_index import AGAIN, UNDER_WAY, GitIndexes

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
ENVIRONMENT |= {"GIT_CONFIG_GLOBAL": os.devnull}


def git(folder, *words, **more):
    who = ["-c", "user.name=a", "-c", "user.email=a@a.example", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *who, *map(str, words)], cwd=folder, env=ENVIRONMENT | more, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path):
    """A repository that lists one file of its state folder, and not the other one."""
    folder = tmp_path / "project"
    (folder / ".beaver" / "plugins").mkdir(parents=True)
    git(tmp_path, "init", "-q", folder)
    for name in ("listed", "mine"):
        (folder / ".beaver" / "plugins" / name).write_text(name)
    git(folder, "add", "-f", ".beaver/plugins/listed")
    return folder


@pytest.fixture
def state(root):
    return root / ".beaver"


@pytest.fixture
def indexes(state):
    return GitIndexes(state, ENVIRONMENT)


@pytest.fixture
def asked(monkeypatch):
    """Return how often git was asked so far."""
    calls, ask = [], git_index._asked
    monkeypatch.setattr(git_index, "_asked", lambda *given: calls.append(given) or ask(*given))
    return calls


def answers(indexes, state):
    return [indexes.lists(state / "plugins" / name) for name in ("listed", "mine", "missing")]


def test_what_is_listed(indexes, state, asked):
    """One call of git answers for all files of the state folder."""
    assert [True, False, False] == answers(indexes, state)
    assert ((state / "plugins" / "listed",), 1) == (indexes.listed(), len(asked))


def test_without_a_repository(tmp_path, asked):
    """Outside of a repository no file is listed, and git is not called."""
    assert (False, (), 0) == (
        GitIndexes(tmp_path, ENVIRONMENT).lists(tmp_path / "a"), GitIndexes(tmp_path, ENVIRONMENT).listed(), len(asked)
    )  # fmt: skip


def test_a_change_of_the_index(indexes, state, root, asked):
    """A change of the index is seen at once."""
    before = answers(indexes, state)
    git(root, "add", "-f", ".beaver/plugins/mine")
    git(root, "rm", "-q", "--cached", ".beaver/plugins/listed")

    assert ([True, False, False], [False, True, False], 2) == (before, answers(indexes, state), len(asked))


def test_entries_that_are_not_checked_out(indexes, state, root):
    """An entry that git leaves out of the work tree is still listed, because the file there may be from any source."""
    git(root, "update-index", "--skip-worktree", ".beaver/plugins/listed")

    assert [True, False, False] == answers(indexes, state)


def test_a_sparse_index(state, root):
    """An index that names folders in place of their files is read with the files."""
    git(root, "commit", "-q", "-m", "one")
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "other")
    state.joinpath("plugins").mkdir(parents=True, exist_ok=True)

    assert [True, False, False] == answers(GitIndexes(state, ENVIRONMENT), state)


def test_entries_of_a_merge_that_failed(state, root):
    """A file whose merge is not done is listed."""
    path = state / "plugins" / "listed"
    git(root, "commit", "-q", "-m", "one")
    for branch in ("a", "b"):
        git(root, "checkout", "-q", "-B", branch, "HEAD" if branch == "a" else "HEAD~")
        path.write_text(branch)
        git(root, "add", "-f", path)
        git(root, "commit", "-q", "-m", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "a")

    assert [True, False, False] == answers(GitIndexes(state, ENVIRONMENT), state)


def test_a_worktree(state, root, tmp_path):
    """A linked work tree, whose `.git` is a file, uses its own index."""
    git(root, "commit", "-q", "-m", "one")
    git(root, "worktree", "add", "-q", tmp_path / "second")
    second = tmp_path / "second" / ".beaver"
    indexes = GitIndexes(second, ENVIRONMENT)
    before = indexes.lists(second / "plugins" / "listed")
    git(tmp_path / "second", "rm", "-q", "--cached", ".beaver/plugins/listed")

    assert (True, False) == (before, indexes.lists(second / "plugins" / "listed"))
    assert [True, False, False] == answers(GitIndexes(state, ENVIRONMENT), state)


def test_a_state_folder_that_is_a_submodule(tmp_path, root):
    """A repository can bring the whole folder as a submodule; the index of that one counts."""
    inner = tmp_path / "inner"
    git(tmp_path, "init", "-q", inner)
    (inner / "MEMORY.md").write_text("x")
    git(inner, "add", "-f", "MEMORY.md")
    git(inner, "commit", "-q", "-m", "one")
    git(root, "submodule", "-q", "add", inner, "kept")

    assert True is GitIndexes(root / "kept", ENVIRONMENT).lists(root / "kept" / "MEMORY.md")


def test_a_repository_within_the_state_folder(state, root):
    """An inner repository in the state folder does not hide the files that the outer one lists."""
    git(root, "init", "-q", state / "plugins")

    assert [True, False, False] == answers(GitIndexes(state, ENVIRONMENT), state)


def test_another_folder(indexes, root, tmp_path):
    """Files that are not in the state folder are asked about too, through links to their folders."""
    (root / "notes").mkdir()
    (root / "notes" / "a").write_text("a")
    git(root, "add", "notes/a")
    (tmp_path / "link").symlink_to(root / "notes")

    assert (True, False) == (indexes.lists(tmp_path / "link" / "a"), indexes.lists(root / "notes" / "b"))
    assert False is GitIndexes(root / ".beaver", ENVIRONMENT).lists(root / "top")


def test_names_in_another_case(state, root):
    """A name that differs in case alone is listed: some file systems take it for the same file."""
    blob = subprocess.check_output(["git", "hash-object", "-w", "--stdin"], cwd=root, env=ENVIRONMENT, input=b"x")
    git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob.decode().strip()},.BEAVER/Plugins/MINE")

    assert [True, True, False] == answers(GitIndexes(state, ENVIRONMENT), state)


def test_a_folder_whose_name_is_a_pattern(tmp_path):
    """A folder that is named like a pattern is asked about by its name."""
    root = tmp_path / "p"
    (root / "[a]*").mkdir(parents=True)
    (root / "[a]*" / "x").write_text("x")
    git(tmp_path, "init", "-q", root)
    git(root, "add", "-f", ".")

    assert True is GitIndexes(root / "[a]*", ENVIRONMENT).lists(root / "[a]*" / "x")


def test_variables_of_git(state, root, tmp_path):
    """Variables that lead git to another repository or index change nothing."""
    git(tmp_path, "init", "-q", tmp_path / "empty")
    given = {"GIT_DIR": str(tmp_path / "empty" / ".git"), "GIT_INDEX_FILE": str(tmp_path / "none")}

    assert [True, False, False] == answers(GitIndexes(state, ENVIRONMENT | given), state)


@pytest.mark.parametrize("key", ["core.fsmonitor", "core.hooksPath", "core.pager", "alias.ls-files"])
def test_no_program_of_the_configuration_runs(state, root, tmp_path, key):
    """Nothing that a configuration of the repository names is run."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    git(root, "config", key, f"!{program}" if key.startswith("alias") else program)

    assert [True, False, False] == answers(GitIndexes(state, ENVIRONMENT), state)
    assert not (tmp_path / "ran").exists()


def test_without_git(state, tmp_path, monkeypatch):
    """Without a git program the answer is unknown, and a program in the working directory is never run."""
    assert [None] * 3 == answers(GitIndexes(state, {"PATH": str(tmp_path)}), state)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "git").write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")  # a built-in, as the PATH has no other program
    (tmp_path / "git").chmod(0o755)
    assert [None] * 3 == answers(GitIndexes(state, {"PATH": "."}), state)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("damage", ["no repository", "no git folder", "no index"])
def test_a_repository_that_is_damaged(state, root, damage):
    """In a repository that git refuses, the answer is unknown, whatever repository lies above it."""
    path = root / ".git"
    if damage == "no index":
        (path / "index").write_bytes(b"x")
    else:
        path.rename(root / "away")
        path.mkdir() if damage == "no repository" else path.write_text("gitdir: missing\n")
    git(root.parent, "init", "-q", root.parent)

    assert [None] * 3 == answers(GitIndexes(state, ENVIRONMENT), state)


def test_a_git_that_hangs(state, tmp_path, monkeypatch):
    """A git that does not answer in time is one that cannot be asked; it is asked again after a while."""
    program, now = tmp_path / "git", [0.0]
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(git_index, "SECONDS", 0.1)
    indexes = GitIndexes(state, {"PATH": f"{tmp_path}:{ENVIRONMENT['PATH']}"}, now=lambda: now[0])
    hung = answers(indexes, state)
    program.unlink()
    still = answers(indexes, state)
    now[0] = AGAIN

    assert ([None] * 3, [None] * 3, [True, False, False]) == (hung, still, answers(indexes, state))


def test_while_git_changes_files(indexes, state, root):
    """While git holds its lock, the answer for a recently written file is unknown: git writes its index last."""
    (root / ".git" / "index.lock").touch()
    during = answers(indexes, state)
    long_ago = (root / ".git" / "index.lock").stat().st_mtime - UNDER_WAY - 1
    os.utime(state / "plugins" / "mine", (long_ago, long_ago))
    old = answers(indexes, state)
    (root / ".git" / "index.lock").unlink()

    assert [[True, None, False], [True, False, False], [True, False, False]] == [during, old, answers(indexes, state)]


def test_a_scope_that_is_not_there(tmp_path):
    """A state folder that was not made yet lists nothing."""
    git(tmp_path, "init", "-q", tmp_path)

    assert ((), False) == (
        GitIndexes(tmp_path / "none", ENVIRONMENT).listed(),
        GitIndexes(tmp_path / "none", ENVIRONMENT).lists(tmp_path / "none" / "a"),
    )


def test_the_root_of_a_repository(root):
    """A file beside `.git` itself is asked about."""
    Path(root, "top").write_text("x")
    git(root, "add", "top")

    assert (True, True) == (
        GitIndexes(root / ".beaver", ENVIRONMENT).lists(root / "top"),
        GitIndexes(root, ENVIRONMENT).lists(root / "top"),
    )
