"""Checks the rules of the house style that no linter has: nouns as module names, and plain English in prose.

`python tools/house_style.py` prints each finding as `path:line: sentence` and exits with 1; `--count` prints numbers
only. Prose is docstrings, comments (of Python and SQL) and Markdown without its generated parts. The decisions and the
changelog record the past and stay as they are.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parents[1]

SOURCES = (
    *("beaver_hooks", "hostspecs", "toolkit", "memory", "plugins"),
    *("examples", "tools", "benchmarks", "docs", ".ci", "tests"),
)

SKIPPED = ("docs/explanation/decisions/", "CHANGELOG.md", "docs/requirements.md")
"""Prose that records the past, or quotes requirements."""

DIALECT = re.compile(
    r"\b(nobody|somebody|whoever|whomever|anybody|everybody|what (?:is|was)(?! the matter)|is told|are told"
    r"|(?:is|are|be) said|(?:be|is) had|is to be|are to be|there is nothing|of whom|to whom|by what|of what)\b",
    re.IGNORECASE,
)
"""Words that hide the thing that acts. Name the user, the model, the caller, the host, the file."""

NO_PROSE = re.compile(r"```.*?```|`[^`\n]*`|<!-- begin: .*?<!-- end: [^\n]*-->", re.DOTALL)
"""Code in Markdown, and parts that a script writes."""

SQL = re.compile(r"--(?! name:).*")
"""A comment in SQL, without the names of queries."""

ALLOWED_MODULES = MappingProxyType(
    {
        "hostspecs/beaver_hostspecs/freezing.py": "a name of the contract",
        "hostspecs/beaver_hostspecs/neutralising.py": "a name of the contract",
        "hostspecs/beaver_hostspecs/rendering.py": "a name of the contract",
        "hostspecs/beaver_hostspecs/scrubbing.py": "a name of the contract",
        "hostspecs/beaver_hostspecs/naming.py": "a name of the contract",
        "hostspecs/beaver_hostspecs/testing": "a name of the contract: the kit for tests",
        "plugins/gateway/src/beaver_hooks_gateway/testing": "the kit for tests, named as that of the contract",
        "memory/beaver_memory/testing": "the kit for tests, named as that of the contract",
        "memory/beaver_memory/embedding": "embedding is the noun of the field",
    }
)
"""Gerunds that stay, each with its reason; at most 20."""

Finding = tuple[Path, int, str]


def gerunds(root: Path) -> Iterator[Finding]:
    """Yield each module and package whose name is a gerund."""
    for path in python_files(root):
        place = path.parent if path.name == "__init__.py" else path
        if place.stem.endswith("ing") and str(place.relative_to(root)) not in ALLOWED_MODULES and not is_test(path):
            yield path, 1, f"the name `{place.stem}` is a gerund; use a noun that a newcomer would guess"


def dialect(root: Path) -> Iterator[Finding]:
    """Yield each place of prose that hides the thing that acts."""
    for path in (*python_files(root), *sql_files(root), *markdown_files(root)):
        for line, text in prose(path):
            for found in DIALECT.finditer(text):
                at = line + text.count("\n", 0, found.start())
                yield path, at, f"`{found[0]}`: name the user, the model, the caller, or the thing itself"


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file: each text with the number of its first line."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield 1, NO_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        return
    if path.suffix == ".sql":
        yield from ((text.count("\n", 0, found.start()) + 1, found[0]) for found in SQL.finditer(text))
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        # A docstring, or a text after an attribute that describes it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def python_files(root: Path) -> list[Path]:
    """Return the Python files of the project, in order."""
    return sorted(path for each in SOURCES for path in (root / each).rglob("*.py") if "build" not in path.parts)


def sql_files(root: Path) -> list[Path]:
    """Return the SQL files of the project, in order."""
    return sorted(path for each in SOURCES for path in (root / each).rglob("*.sql") if "build" not in path.parts)


def markdown_files(root: Path) -> list[Path]:
    """Return the Markdown pages of the project, in order, without those that record the past."""
    folders = [path for each in SOURCES for path in (root / each).rglob("*.md")]
    pages = sorted({*root.glob("*.md"), *folders})
    return [path for path in pages if not str(path.relative_to(root)).startswith(SKIPPED)]


def is_test(path: Path) -> bool:
    """Return whether a file is a test."""
    return "tests" in path.parts or path.name.startswith("test_")


def main(arguments: list[str]) -> int:
    """Print the findings below the named folders, or all findings without names; return the exit code."""
    parser = argparse.ArgumentParser(description="Check module names and prose.")
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--count", action="store_true", help="print the numbers only")
    given = parser.parse_args(arguments)
    wanted = [each.resolve() for each in given.paths]
    modules, phrases = (
        [each for each in found if any(each[0].is_relative_to(place) for place in wanted)]
        for found in (gerunds(ROOT), dialect(ROOT))
    )
    if given.count:
        lines = sum(path.read_text("utf-8").count("\n") for path in python_files(ROOT) if not is_test(path))
        outside = sum(not is_test(path) for path, *_ in phrases)
        print(f"gerund modules {len(modules)}; dialect in {len(phrases)} places, {outside} of them outside tests,")
        print(f"which is {1000 * outside / lines:.1f} per 1,000 lines of source ({lines:,})")
        return 0
    for path, line, sentence in (*modules, *phrases):
        print(f"{path.relative_to(ROOT)}:{line}: {sentence}")
    return 1 if modules or phrases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
