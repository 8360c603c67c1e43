"""The site: its index for language models is made from the pages, and it is built without a broken link."""

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
from docs.test_repository import links

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
FOREIGN = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^ >]+")


@pytest.fixture(scope="module")
def script():
    """Return what the script that makes `llms.txt` defines."""
    return runpy.run_path(str(DOCS / "make_llms.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `make docs` does, strictly."""
    if not MKDOCS.exists():
        pytest.skip("MkDocs is not here: make install-docs")
    folder = tmp_path_factory.mktemp("site")
    assert (0, []) == build(ROOT, folder)
    return folder


def build(root: Path, folder: Path) -> tuple[int, list[str]]:
    """Build the site of a checkout into a folder; return the exit code and the warnings."""
    done = subprocess.run(
        [MKDOCS, "build", "--strict", "--site-dir", folder],
        cwd=root, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, text=True, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode, re.findall(r"^WARNING +- +(.+)$", done.stderr, re.MULTILINE)


def served(folder: Path) -> list[str]:
    return [path.read_text("utf-8") for path in sorted(folder.rglob("*.html"))]


def test_the_index_is_made_from_the_pages(script):
    """`llms.txt` is what the index of the documentation comes to: run `make docs`."""
    assert script["page"]() == (DOCS / "llms.txt").read_text("utf-8")


def test_the_script_writes_the_index(script, tmp_path, monkeypatch):
    """`make docs` writes that file and nothing else."""
    monkeypatch.setitem(script["main"].__globals__, "PAGE", tmp_path / "llms.txt")

    script["main"]()

    assert {"llms.txt": script["page"]()} == {each.name: each.read_text("utf-8") for each in tmp_path.iterdir()}


def test_every_page_has_its_line(script):
    """The index has each page but the decisions, which their own index lists, with a link and a description."""
    lines = re.findall(r"^- \[.+\]\(([^)]+)\): \S.+$", script["page"](), re.MULTILINE)
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    decisions = {page for page in pages if re.search(r"decisions/\d", page)}

    assert sorted(pages - decisions - {"README.md"} | {"reference/config.schema.json"}) == sorted(lines)


def test_the_four_parts(script):
    """The parts of the index are those of the folders."""
    headings = [heading for heading, _ in script["parts"]((DOCS / "README.md").read_text("utf-8"))]

    assert ["Tutorial", "How-to", "Reference", "Explanation"] == headings
    assert all((DOCS / heading.lower()).is_dir() for heading in headings)


def test_the_site_has_every_page(site):
    """Every page of `docs/` is on the site, in HTML and in Markdown, and so are the pages of plugins that they name."""
    pages = [page.relative_to(DOCS) for page in DOCS.rglob("*.md")]
    expected = [page.with_name("index.html" if page.name == "README.md" else f"{page.stem}.html") for page in pages]

    assert [] == [str(page) for page in (*pages, *expected) if not (site / page).is_file()]
    assert (site / "repository" / "examples" / "tally" / "index.html").is_file()


def test_llms_txt_is_served(site):
    """The site serves `llms.txt` at its top, and what it links to."""
    text = (site / "llms.txt").read_text("utf-8")

    assert (DOCS / "llms.txt").read_text("utf-8") == text
    assert [] == [link for link in links(text) if not (site / link).is_file()]


def test_the_site_asks_no_other_server(site):
    """No page of the site loads a script, a style, a font or an image from elsewhere."""
    assert [] == [found for text in served(site) for found in FOREIGN.findall(text)]
    assert not any("fonts.g" in text for text in served(site))


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("nowhere.md", "a link 'nowhere.md', but the target is not found"),
        ("../nowhere.md", "a link 'repository/nowhere.md', but the target is not found"),
        ("reference/cli.md#nowhere", "does not contain an anchor '#nowhere'"),
    ],
)
@pytest.mark.usefixtures("site")
def test_a_broken_link_stops_the_build(tmp_path, link, problem):
    """A link to a page, a file of the repository or a heading that is not there fails the build and is named."""
    (tmp_path / "README.md").write_text("# Top\n")
    for name in ("mkdocs.yml", "docs/make_llms.py", "docs/mkdocs_hooks.py"):
        (tmp_path / "docs").mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / "docs" / "reference").mkdir()
    (tmp_path / "docs" / "reference" / "cli.md").write_text("# Command\n")
    (tmp_path / "docs" / "README.md").write_text(f"# Index\n\n[x]({link})\n\n## A\n\n- [b](reference/cli.md): c\n")

    code, (warning,) = build(tmp_path, tmp_path / "site")

    assert (1, True) == (code, problem in warning)


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/a.js">',
        '<link rel="stylesheet" href=//cdn.example/a.css>',
        '<img alt="x" src="http://example.org/a.png">',
    ],
)
def test_a_foreign_file_is_found(tag):
    """A script, a style or an image of another server is found however its address is written."""
    assert FOREIGN.search(tag)
