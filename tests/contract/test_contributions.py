"""What a plugin may give a turn."""

from datetime import UTC, datetime

import attrs
import pytest

from beaver_hostspecs import Contribution, Hint, Reference

HINT = Hint(tool="t", registry="r", fingerprint="f", guidance="Ask first.")


def test_an_empty_contribution_says_nothing():
    """Blocks, references and hints are optional."""
    assert ((), (), ()) == (Contribution().blocks, Contribution().references, Contribution().hints)


def test_anything_iterable_becomes_a_tuple():
    """Lists and generators are taken; the record keeps tuples."""
    reference = Reference(text="recalled")
    contribution = Contribution(blocks=["a", "b"], references=(each for each in [reference]), hints=[HINT])

    assert (("a", "b"), (reference,), (HINT,)) == (
        contribution.blocks,
        contribution.references,
        contribution.hints,
    )


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"blocks": "one text"}, "expected several str, not one str"),
        ({"blocks": [b"bytes"]}, "expected str, not bytes"),
        ({"references": ["text"]}, "expected Reference, not str"),
        ({"references": "text"}, "expected several Reference, not one str"),
        ({"hints": [{}]}, "expected Hint, not dict"),
    ],
)
def test_wrong_parts_are_refused_in_the_plugin(overrides, expected):
    """A wrong part is refused when the plugin makes it, without showing its content."""
    with pytest.raises(TypeError) as caught:
        Contribution(**overrides)

    assert expected == str(caught.value)


def test_a_reference_needs_its_text_only():
    """Provenance is optional, each part of it."""
    assert {
        "text": "recalled",
        "kind": "memory",
        "id": None,
        "score": None,
        "source": None,
        "scope": None,
        "session": None,
        "uri": None,
        "when": None,
    } == attrs.asdict(Reference(text="recalled"))


@pytest.mark.parametrize(
    "overrides",
    [
        {"text": None},
        {"kind": 1},
        {"id": 5},
        {"score": "high"},
        {"source": b""},
        {"scope": {}},
        {"session": 1},
        {"uri": 1},
        {"when": "today"},
    ],
)
def test_a_reference_is_checked(overrides):
    """Every field of a reference has one type."""
    with pytest.raises(TypeError):
        Reference(**{"text": "recalled", **overrides})


@pytest.mark.parametrize(
    "overrides",
    [
        {"tool": None},
        {"registry": None},
        {"fingerprint": None},
        {"guidance": None},
        {"reason": None},
        {"tags": "risky"},
        {"tags": [1]},
        {"confidence": "sure"},
    ],
)
def test_a_hint_is_checked(overrides):
    """Every field of a hint has one type."""
    with pytest.raises(TypeError):
        Hint(**{**attrs.asdict(HINT), **overrides})


def test_content_stays_out_of_the_repr():
    """A contribution in a log line shows no memory."""
    contribution = Contribution(blocks=["XYZZY"], references=[Reference(text="XYZZY")], hints=[HINT])
    shown = repr(contribution) + repr(contribution.references) + repr(Reference(text="XYZZY")) + repr(HINT)

    assert [] == [word for word in ("XYZZY", "Ask first.") if word in shown]


def test_they_are_frozen():
    """No field of a contribution can be set after it was made."""
    for record in (Contribution(), Reference(text="a", when=datetime.now(UTC)), HINT):
        for field in attrs.fields(type(record)):
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(record, field.name, None)
