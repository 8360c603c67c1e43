"""Makes the site from the unchanged pages: the navigation comes from the index, and links out of `docs/` work.

A Markdown page outside `docs/` that a page links to, such as the README of a plugin, is shown under `repository/`.
Other linked files outside `docs/` are copied there. `mkdocs.yml` names this module as a hook.
"""

import posixpath
import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LLMS = runpy.run_path(str(ROOT / "docs" / "make_llms.py"))
OUTSIDE = "repository"
BLOCK = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?=(?:#[^)\s]*)?\))")


def on_config(config: MkDocsConfig) -> None:
    """Make the navigation: the parts of the index, and below each page that is an index the pages of its folder."""
    text = LLMS["INDEX"].read_text("utf-8")
    config.nav = [{"Home": "README.md"}]
    config.nav += [{heading: [_entry(*each[:2]) for each in pages]} for heading, pages in LLMS["parts"](text)]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the files outside `docs/` that pages link to, and the files that those link to."""
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    known = set(waiting)
    while waiting:
        for target in _targets(waiting.pop()):
            if target not in known and not target.startswith("docs/") and (ROOT / target).is_file():
                known.add(target)
                files.append(File.generated(config, f"{OUTSIDE}/{target}", abs_src_path=str(ROOT / target)))
                waiting += [target] if target.endswith(".md") else []
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Change the links of a page to the places of their targets on the site."""
    source = _in_repository(page.file.src_uri)
    here = posixpath.dirname(page.file.src_uri)

    def led(link: re.Match[str]) -> str:
        return posixpath.relpath(_on_site(_resolved(source, link["path"])), here or ".")

    parts = BLOCK.split(markdown)
    return "".join(part if BLOCK.match(part) else LINK.sub(led, part) for part in parts)


def on_post_build(config: MkDocsConfig) -> None:
    """Copy the Markdown of the pages too, to the paths that `llms.txt` names."""
    for source in sorted((ROOT / "docs").rglob("*.md")):
        shutil.copyfile(source, Path(config.site_dir) / source.relative_to(ROOT / "docs"))


def _entry(title: str, path: str) -> dict[str, object]:
    """Return the entry of the navigation for a page, or for an index with the pages of its folder."""
    title = title.replace("`", "")
    target = _on_site(_resolved("docs/README.md", path))
    inner = [{name.replace("`", ""): inner} for name, inner in LLMS["nested"](path)]
    return {title: [{"Overview": target}, *inner]} if inner else {title: target}


def _targets(source: str) -> Iterator[str]:
    """Yield the link targets of a page of the repository, as paths from the top of the repository."""
    text = BLOCK.sub("", (ROOT / source).read_text("utf-8"))
    return (_resolved(source, found["path"]) for found in LINK.finditer(text))


def _resolved(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _in_repository(uri: str) -> str:
    return uri.removeprefix(f"{OUTSIDE}/") if uri.startswith(f"{OUTSIDE}/") else f"docs/{uri}"


def _on_site(path: str) -> str:
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{OUTSIDE}/{path}"
