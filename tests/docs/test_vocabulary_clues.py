"""The clues of the vocabularies are those of their expressions."""

import importlib.util
import json
from pathlib import Path

from beaver_memory.reconcile.vocabulary import expressions

TOOL = Path(__file__).resolve().parents[2] / "tools" / "vocabulary_clues.py"


def test_the_clues_are_those_of_the_expressions():
    """`tools/vocabulary_clues.py` was run after the last change of a vocabulary."""
    spec = importlib.util.spec_from_file_location("vocabulary_clues", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    listed = Path(expressions.__file__).with_name(expressions.FILE).read_text("utf-8")
    assert tool.made() == json.loads(listed), "run `python tools/vocabulary_clues.py`"
