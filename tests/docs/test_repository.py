"""What holds for every file of the repository: links lead somewhere, and nothing names a machine or a registry."""

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

from beaver_hostspecs import CONTRACT_VERSION

ROOT = Path(__file__).parents[2]
OURS = (
    ".ci",
    "beaver_hooks",
    "benchmarks",
    "docs",
    "examples",
    "hostspecs",
    "plugins",
    "tests",
    "toolkit",
    "tools",
    "memory",
)
TEXT = {".json", ".jsonl", ".md", ".py", ".sql", ".toml", ".txt", ".yaml", ".yml", ".cfg", ""}
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "hostspecs").glob("*.md")),
    *sorted((ROOT / "toolkit").glob("*.md")),
    *sorted((ROOT / "memory").glob("*.md")),
    *sorted((ROOT / "plugins").glob("*/*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
PROJECTS = [
    ROOT / "pyproject.toml",
    ROOT / "hostspecs" / "pyproject.toml",
    ROOT / "toolkit" / "pyproject.toml",
    ROOT / "memory" / "pyproject.toml",
    *sorted((ROOT / "plugins").glob("*/pyproject.toml")),
    ROOT / "examples/tally/pyproject.toml",
]
EVERY_PROJECT = pytest.mark.parametrize("project", PROJECTS, ids=[str(each.relative_to(ROOT)) for each in PROJECTS])

# In parts, so that this file does not hold what it looks for.
REGISTRIES = re.compile("|".join(["pypi" + r"\.org", "python" + "hosted", "index" + "-url", "find" + "-links"]))
MACHINES = re.compile(r"(?<![\w./~-])/(?:" + "|".join(["ho" + "me", "ro" + "ot", "Us" + "ers", "wo" + "rk"]) + r")/\w")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def files() -> list[Path]:
    """Return every text file that belongs to the repository."""
    # `.git` is a file where the checkout is one of several.
    found = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in OURS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    generated = {"__pycache__", ".hypothesis", ".beaver"}
    return [
        path
        for path in found
        if path.suffix in TEXT and not path.name.startswith(".coverage") and not generated & set(path.parts)
    ]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if pattern.search(line)
    ]


def prose(text: str) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as they are made from their text."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.casefold()).replace(" ", "-") for heading in headings}


def leads_nowhere(page: Path, link: str) -> bool:
    if link.startswith("https://"):
        return False
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_file() or not target.is_relative_to(ROOT):
        return True
    return bool(anchor) and anchor not in anchors(target.read_text("utf-8"))


def releases(changelog: str) -> list[tuple[str, str | None, str]]:
    """Return version, date and text of each section of a changelog, as they stand."""
    parts = re.split(r"^## \[([^\]]+)\](?: - (\S+))?$", changelog, flags=re.MULTILINE)
    return list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))


def metadata(path: Path) -> dict[str, object]:
    return tomllib.loads(path.read_text("utf-8"))["project"]


def test_no_registry_addresses():
    """No file names a package registry, because the installer chooses it."""
    assert [] == lines_with(REGISTRIES)


def test_no_machine_paths():
    """No file names a folder of a developer's machine."""
    assert [] == lines_with(MACHINES)


def test_files_are_found():
    """The walk finds code, pages and this module, so that an empty result means something."""
    expected = {ROOT / "README.md", ROOT / "beaver_hooks" / "host.py", ROOT / ".ci" / "run", Path(__file__)}

    assert expected <= set(files())


def test_links():
    """Every link between files leads to a file of the repository, and to a heading of it where it names one."""
    found = [(page, link) for page in PAGES for link in links(page.read_text("utf-8")) if leads_nowhere(page, link)]

    assert [] == found


def test_one_title():
    """A page has one title, in its first line."""
    texts = {page: prose(page.read_text("utf-8")) for page in PAGES}

    assert {page: [text.splitlines()[0]] for page, text in texts.items()} == {
        page: re.findall(r"^# .+$", text, re.MULTILINE) for page, text in texts.items()
    }


def test_every_page_is_in_the_index():
    """The index of the documentation names every page of it once, or the index of a folder that does."""
    folder = ROOT / "docs"
    indexes = [folder / "README.md", *sorted(folder.glob("*/*/README.md"))]
    named = [page.parent.joinpath(link).resolve() for page in indexes for link in set(links(page.read_text("utf-8")))]

    assert sorted(set(folder.rglob("*.md")) - {folder / "README.md"}) == sorted(
        each for each in set(named) if each.is_relative_to(folder) and each.suffix == ".md" and each not in indexes[:1]
    )


def test_every_decision_is_listed():
    """The list of decisions has every page once, in order."""
    folder = ROOT / "docs" / "explanation" / "decisions"
    listed = links((folder / "README.md").read_text("utf-8"))

    assert sorted(page.name for page in folder.glob("[0-9]*.md")) == listed


def test_decisions():
    """Each decision has its number in the title, and context, choice and consequence."""
    pages = sorted((ROOT / "docs" / "explanation" / "decisions").glob("[0-9]*.md"))
    headings = {page.name[:4]: re.findall(r"^#+ (.+)$", prose(page.read_text("utf-8")), re.MULTILINE) for page in pages}

    assert {number: [number, "Context", "Choice", "Consequence"] for number in headings} == {
        number: [title[:4], *others] for number, (title, *others) in headings.items()
    }


def test_changelog():
    """The changelog has the unreleased changes first, then dated versions, newest first, each in known parts."""
    (first, first_date, _), *released = sections = releases((ROOT / "CHANGELOG.md").read_text("utf-8"))
    dates = [date.fromisoformat(day) for _, day, _ in released]

    assert ("Unreleased", None) == (first, first_date)
    assert sorted(dates, reverse=True) == dates
    assert KINDS >= {part for _, _, text in sections for part in re.findall(r"^### (.+)$", text, re.MULTILINE)}


def test_versions():
    """All distributions have one version: the newest one released, or the one that the changelog announces."""
    unreleased, *released = releases((ROOT / "CHANGELOG.md").read_text("utf-8"))
    announced = re.findall(r"\b(\d+\.\d+\.\d+)\.$", unreleased[2], re.MULTILINE) or [released[0][0]]

    assert announced * len(PROJECTS) == [metadata(path)["version"] for path in PROJECTS]


@EVERY_PROJECT
def test_the_contract_is_pinned(project):
    """A distribution that needs the contract or the toolkit allows the minor version that is here, and not the next."""
    data = metadata(project)
    major, minor, _ = data["version"].split(".")
    shared = [each for each in data["dependencies"] if each.startswith(("beaver-hostspecs", "beaver-toolkit"))]
    names = [each.partition(">=")[0].partition("[")[0] for each in shared]

    assert {f">={major}.{minor},<{major}.{int(minor) + 1}"} >= {f">={each.partition('>=')[2]}" for each in shared}
    assert data["name"] in {"beaver-hostspecs", "beaver-toolkit"} or "beaver-hostspecs" in names


@EVERY_PROJECT
def test_licence(project):
    """Every distribution carries the same licence text."""
    assert (ROOT / "LICENSE").read_text("utf-8") == (project.parent / "LICENSE").read_text("utf-8")


def test_contract_version():
    """The contract's version is major and minor, as the deprecation policy says."""
    assert re.fullmatch(r"\d+\.\d+", CONTRACT_VERSION)


def test_a_broken_link_is_found(tmp_path):
    """A link to a missing file or heading, or out of the repository, is one that leads nowhere."""
    page = ROOT / "README.md"
    wrong = ["missing.md", "docs/reference/hooks.md#no-such-heading", f"../../..{tmp_path}", "#nothing"]

    assert wrong == [
        link for link in [*wrong, "docs/reference/hooks.md#hooks", "https://example.org"] if leads_nowhere(page, link)
    ]


def targets(makefile: str) -> tuple[list[str], set[str]]:
    """Return what a Makefile says is no file, and what it has rules for."""
    phony = [name for line in re.findall(r"^\.PHONY:(.*)$", makefile, re.MULTILINE) for name in line.split()]
    return phony, set(re.findall(r"^([\w-]+):(?!=)", makefile, re.MULTILINE))


def test_makefile():
    """Every target that the Makefile declares or a page names has a rule, and each is declared once."""
    phony, rules = targets((ROOT / "Makefile").read_text("utf-8"))
    told = {
        name for page in PAGES for name in re.findall(r"(?:^|`)make ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)
    }

    assert [] == [name for name in phony if name not in rules]
    assert sorted(set(phony)) == sorted(phony)
    assert set() == told - rules


def test_a_target_without_a_rule_is_found():
    """A name that only `.PHONY` knows has no rule; a variable is none."""
    assert (["a", "b-c", "d"], {"a", "b-c"}) == targets(".PHONY: a b-c d\nD := x\na: z\n\tcmd: d\nb-c:\n")


def test_ci_script():
    """The CI script is executable, stops at the first failure and runs commands that contributors run too."""
    script = ROOT / ".ci" / "run"
    text = script.read_text("utf-8")

    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in text
    expected = ["install", "models", "install-adapters", "install-docs"]
    expected += ["lint", "docs", "test", "test-all", "test-adapters", "lint-adapters", "bench-adapters"]
    assert expected == re.findall(r"^(?:\w+=\w+ )?(?:fetch|within \d+ make|tests \d+) (\S+)", text, re.MULTILINE)
    assert {"install", "lint", "test"} <= set(
        re.findall(r"^make (\w+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    )
