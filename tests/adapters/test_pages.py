"""The Python blocks of the pages that need a framework run, whole page by whole page, each in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^ *```python\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to" / "adapters").glob("*.md"))]


def script(page: Path) -> str:
    """Return the blocks of a page as one module, on the lines where they stand."""
    text, lines = page.read_text("utf-8"), []
    for found in FENCE.finditer(text):
        lines += [""] * (text.count("\n", 0, found.start("code")) - len(lines))
        lines += found["code"].splitlines()
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", [each for each in PAGES if script(each).strip()], ids=lambda page: page.stem)
def test_the_page_runs(page, tmp_path):
    """All Python blocks of the page run in order, in an empty folder, as a reader would run them."""
    path = tmp_path / "page.py"
    path.write_text(script(page), "utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER", "COV", "XDG"))}
    environment = {**kept, "HOME": str(tmp_path)}  # what a server records of its answers is the user's
    done = subprocess.run(
        [sys.executable, path.name],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert 0 == done.returncode, done.stderr
