"""Each query in a `.sql` file of the project is used."""

import re
from pathlib import Path

import pytest

from beaver_toolkit.sqlite.queries import Queries

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for each in ("beaver_hooks", "memory", "plugins")
    for path in (ROOT / each).rglob("queries*.sql")
    if "build" not in path.parts
)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_each_query_is_used(path):
    """Each name of a file of queries stands in a string of the package that the file belongs to."""
    source = "".join(module.read_text("utf-8") for module in path.parent.rglob("*.py"))

    assert [] == [name for name in Queries(path).names() if not re.search(rf'"{name}"', source)]
