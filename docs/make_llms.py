#!/usr/bin/env python3
"""Writes `docs/llms.txt`, the short index for language models, from `docs/README.md`. Run it with `make docs`."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
INDEX = DOCS / "README.md"
PAGE = DOCS / "llms.txt"
HEADING = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
ENTRY = re.compile(r"^- \[(?P<title>.+?)\]\((?P<path>[^)]+)\)(?:: (?P<text>(?:.+)(?:\n  .+)*))?$", re.MULTILINE)


def parts(index: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield each part of an index: its heading, and the title, path and description of each page."""
    _, *rest = HEADING.split(index)
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        yield title, [(found["title"], found["path"], _line(found["text"] or "")) for found in ENTRY.finditer(text)]


def nested(path: str) -> list[tuple[str, str]]:
    """Return title and path of each page in the folder of a README that is an index; for other pages, no pages."""
    if posixpath.basename(path) != "README.md" or path.startswith(".."):
        return []
    folder = DOCS / posixpath.dirname(path)
    pages = (page for page in sorted(folder.glob("*.md")) if page.name != "README.md")
    return [(_title(page), page.relative_to(DOCS).as_posix()) for page in pages]


def page() -> str:
    """Return the text of the index."""
    text = INDEX.read_text("utf-8")
    title, summary = text.removeprefix("# ").split("\n\n")[:2]
    return "\n\n".join([f"# {title}", f"> {_line(summary.partition(': what')[0])}.", *_sections(text)]) + "\n"


def _sections(text: str) -> Iterator[str]:
    for heading, pages in parts(text):
        lines = []
        for title, path, about in (each for each in pages if not each[1].startswith("..")):
            lines.append(f"- [{title}]({path}): {about}")
            # There are many decisions, and their own index has a line for each.
            if not path.endswith("decisions/README.md"):
                lines += [f"- [{name}]({inner}): {_first_sentence(DOCS / inner)}" for name, inner in nested(path)]
        yield f"## {heading}\n\n" + "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _first_sentence(page: Path) -> str:
    """Return the first sentence below the title, without its links."""
    paragraph = _line(page.read_text("utf-8").split("\n\n")[1])
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", paragraph)
    return re.split(r"(?<=\.) |:$", plain)[0].removesuffix(".") + "."


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def main() -> None:
    """Write the index."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
