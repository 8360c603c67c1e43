import importlib.util
import json
from pathlib import Path

from beaver_hostspecs.conformance import HOST_CASES, Examined

DOCS = Path(__file__).parents[2] / "docs"


def make_matrix():
    spec = importlib.util.spec_from_file_location("make_matrix", DOCS / "make_matrix.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_verdicts():
    """The support matrix is what the published verdicts come to, and they are of the suite as it is."""
    script = make_matrix()
    found = [Examined.from_dict(each) for each in json.loads(script.VERDICTS.read_text("utf-8"))]

    assert script.page(found) == script.PAGE.read_text("utf-8"), "run `make matrix`"
    assert [[case.name for case in HOST_CASES]] * len(found) == [[each.case for each in one.verdicts] for one in found]
