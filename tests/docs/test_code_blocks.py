"""Every code block of the documentation is true: Python runs, TOML and JSON parse, and no block is exempt."""

import json
import re
import sys
import tomllib
import types
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "hostspecs" / "README.md",
    ROOT / "toolkit" / "README.md",
    ROOT / "memory" / "README.md",
    *sorted((ROOT / "plugins").glob("*/*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
KINDS = {"python", "toml", "json", "sh", "text"}
FRAMEWORK = re.compile(r"beaver_hooks\.adapters\.(?!before_after\b|claude_code\b)")
FENCE = re.compile(r"^ *```(?P<info>[^\n`]*)\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)


@attrs.frozen(kw_only=True)
class Block:
    """A fenced block: what stands behind the fence, the code, and the line it begins on."""

    info: str
    code: str
    line: int


def blocks(text: str) -> list[Block]:
    return [
        Block(info=found["info"], code=found["code"], line=text.count("\n", 0, found.start("code")) + 1)
        for found in FENCE.finditer(text)
    ]


def of_kind(page: Path, kind: str) -> list[Block]:
    return [block for block in blocks(page.read_text("utf-8")) if block.info == kind]


def runnable(page: Path) -> list[Block]:
    """Return the Python blocks of a page up to the first section that needs an agent framework.

    Those are in an environment of their own, where tests/adapters/test_pages.py runs the whole page.
    """
    text = page.read_text("utf-8")
    foreign = [block for block in of_kind(page, "python") if FRAMEWORK.search(block.code)]
    if not foreign:
        return of_kind(page, "python")
    before = text.splitlines()[: foreign[0].line]
    section = max((number for number, line in enumerate(before, 1) if line.startswith("#")), default=1)
    return [block for block in of_kind(page, "python") if block.line < section]


def having(kind: str) -> pytest.MarkDecorator:
    """Run a test for every page that has blocks of a kind."""
    pages = [page for page in PAGES if of_kind(page, kind)]
    return pytest.mark.parametrize("page", pages, ids=[str(page.relative_to(ROOT)) for page in pages])


def run(page: str, found: list[Block], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Run blocks in order in one namespace; a traceback names the page and the line in it."""
    module = types.ModuleType("page_of_the_documentation")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in found:
        code = compile("\n" * (block.line - 1) + block.code, page, "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - running it is the test
    return vars(module)


@having("python")
def test_python_runs(page, tmp_path, monkeypatch):
    """The Python blocks of a page run in order, in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BEAVER_CONFIG", raising=False)

    run(str(page), runnable(page), monkeypatch)


@having("toml")
def test_toml_parses(page):
    """The TOML blocks of a page are TOML."""
    assert all(tomllib.loads(block.code) for block in of_kind(page, "toml"))


@having("json")
def test_json_parses(page):
    """The JSON blocks of a page are JSON."""
    assert all(json.loads(block.code) for block in of_kind(page, "json"))


def test_no_block_is_exempt():
    """Every block says what it is, and nothing else: there is no way to keep one from running."""
    texts = {page: page.read_text("utf-8") for page in PAGES}
    found = {page: blocks(text) for page, text in texts.items()}

    assert [] == [(page, each.line, each.info) for page in PAGES for each in found[page] if each.info not in KINDS]
    assert {page: 2 * len(found[page]) for page in PAGES} == {
        page: len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE)) for page, text in texts.items()
    }


def test_blocks_share_a_namespace(monkeypatch):
    """A later block sees what an earlier one defined."""
    found = blocks("```python\nx = 1\n```\ntext\n```python\ny = x + 1\n```\n")

    assert run("page.md", found, monkeypatch)["y"] == 2


def test_an_error_names_page_and_line(monkeypatch):
    """A failing block is found by its page and its line there."""
    found = blocks("one\n\n```python\nfine = 1\n1 / 0\n```\n")

    with pytest.raises(ZeroDivisionError) as caught:
        run("page.md", found, monkeypatch)

    last = caught.traceback[-1]
    assert (Path(last.path).name, last.lineno + 1) == ("page.md", 5)


def test_only_known_kinds_are_read():
    """What stands behind the fence is read as a whole."""
    assert [Block(info="python no-run", code="x\n", line=2)] == blocks("```python no-run\nx\n```\n")
