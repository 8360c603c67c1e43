"""What the model will see is put together in order, within the budget, the same way every time."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.turns import context
from beaver_hooks.turns.context import (
    Block,
    Recall,
    Share,
    UnrenderableError,
    compose,
    is_too_large,
)
from beaver_hostspecs import Contribution, Hint, Reference
from beaver_hostspecs.tokens import estimate_tokens

BOUNDARY = "0123456789abcdef"
LIMIT = 2000


def put_together(*answers, rules=(), limit=LIMIT, budget=None):
    return compose(answers, rules=rules, boundary=BOUNDARY, limit=limit, budget=budget)


def refs(*texts):
    return tuple(Reference(text=text, id=f"id{number}") for number, text in enumerate(texts))


def hint(guidance="ask first"):
    return Hint(tool="t", registry="r", fingerprint="f", guidance=guidance)


@pytest.mark.shows("003-004")
def test_nothing_gives_nothing():
    """Without contributions and rules the prompt is as it would be without memory."""
    recall, shares = put_together()

    assert (Recall(), {}, "base", "") == (recall, shares, recall.system_prompt("base"), recall.system_prompt())


@pytest.mark.shows("000-021", "000-079", "000-082")
def test_equal_texts_of_two_plugins_are_all_shown():
    """Nothing is compared or merged: what two plugins recall alike, and what a block says too, is shown by each."""
    one = Contribution(blocks=("The sky is blue.",), references=refs("The sky is blue."))
    recall, _ = put_together(("one", one), ("two", one))

    assert ["The sky is blue."] * 2 == [each.text for each in recall.blocks]
    assert [("one", True), ("two", True)] == [
        (each.plugin, "| The sky is blue." in each.text) for each in recall.references
    ]


@pytest.mark.shows("003-047", "003-048")
def test_shares_say_who_added_what():
    """Each plugin's share has its blocks, tokens and shown ids; one that shows nothing has an empty share."""
    recall, shares = put_together(
        ("one", Contribution(blocks=("four",), references=refs("a", "b"))), ("two", Contribution())
    )
    tokens = estimate_tokens("four") + estimate_tokens(recall.references[0].text)

    assert (1, tokens, 2, ("id0", "id1")) == (
        shares["one"].blocks,
        shares["one"].tokens,
        shares["one"].offered,
        shares["one"].injected,
    )
    assert (Share(), ()) == (shares["two"], shares["two"].injected)


@pytest.mark.shows("003-098")
def test_one_plugin_takes_no_more_than_its_limit():
    """References are cut from the end to the limit of one plugin."""
    long = Contribution(references=refs(*["word " * 40] * 10))
    _, shares = put_together(("one", long), ("two", long), limit=150)

    assert all(0 < len(each.injected) < each.offered and each.tokens <= 150 for each in shares.values())


def test_a_budget_is_shared_and_blocks_are_paid_first():
    """Blocks are never cut; plugins share the rest equally, and an unused part of a share goes to later plugins."""
    long = refs(*["word " * 40] * 40)
    blocks = ("b" * 400,)
    _, shares = put_together(
        ("one", Contribution(blocks=blocks, references=refs("short"))),
        ("two", Contribution(references=long)),
        budget=700,
    )
    _, equal = put_together(
        ("one", Contribution(blocks=blocks, references=long)), ("two", Contribution(references=long)), budget=700
    )

    assert sum(each.tokens for each in shares.values()) <= 700
    assert 300 < shares["two"].tokens
    assert (100 + 300, 300) >= (equal["one"].tokens, equal["two"].tokens)
    assert shares["two"].tokens > equal["two"].tokens


@pytest.mark.parametrize("budget", [0, 10])
def test_blocks_alone_may_use_a_budget_up(budget):
    """If blocks use the whole budget, they stay whole and no references are shown."""
    recall, shares = put_together(("one", Contribution(blocks=("b" * 400,), references=refs("a"))), budget=budget)

    assert ((Block(plugin="one", text="b" * 400),), (), 100) == (recall.blocks, recall.references, shares["one"].tokens)


def unrenderable(error):
    """Return references that raise when they are looked at."""

    class Score(float):
        def __format__(self, _):
            raise error

    return Contribution(references=(Reference(text="a", score=Score(1.0)),))


@pytest.mark.parametrize("error", [OSError("hostile"), SystemExit("hostile"), GeneratorExit("hostile")])
def test_what_cannot_be_rendered_names_its_plugin(error):
    """The error names the plugin whose contribution cannot be rendered, and keeps its cause."""
    with pytest.raises(UnrenderableError) as caught:
        put_together(("good", Contribution(references=refs("a"))), ("bad", unrenderable(error)))

    assert ("bad", "bad", error) == (caught.value.plugin, str(caught.value), caught.value.__cause__)


def test_a_keyboard_interrupt_goes_through():
    """A `KeyboardInterrupt` during composing goes through."""
    with pytest.raises(KeyboardInterrupt):
        put_together(("bad", unrenderable(KeyboardInterrupt())))


@pytest.mark.parametrize(
    ("contribution", "expected"),
    [
        (Contribution(), False),
        (Contribution(blocks=("b" * 8,), references=(Reference(text="rr", kind=""),)), False),
        (Contribution(blocks=("b" * 9,), references=(Reference(text="rr", kind=""),)), True),
        (Contribution(hints=(attrs.evolve(hint(""), reason="r" * 11),)), True),
        (Contribution(references=(Reference(text="", source="s" * 11),)), True),
        (Contribution(blocks=("b" * 11,)), True),
        (Contribution(references=refs("r" * 11)), True),
        (Contribution(hints=(hint("h" * 11),)), True),
        (Contribution(blocks=("",) * 3), False),
        (Contribution(blocks=("",) * 4), True),
        (Contribution(blocks=("",), references=refs("", ""), hints=(hint(""),)), True),
    ],
)
def test_a_contribution_can_be_too_large(contribution, expected, monkeypatch):
    """Characters and items of all parts count together."""
    monkeypatch.setattr(context, "MOST_CHARACTERS", 10)
    monkeypatch.setattr(context, "MOST_ITEMS", 3)

    assert expected == is_too_large(contribution)


_CONTRIBUTIONS = st.builds(
    Contribution,
    blocks=st.lists(st.text(max_size=40), max_size=3),
    references=st.lists(st.builds(Reference, text=st.text(max_size=200)), max_size=4),
)


@pytest.mark.shows("003-046")
@given(
    answers=st.dictionaries(st.sampled_from(["one", "two", "three"]), _CONTRIBUTIONS),
    limit=st.integers(0, 300),
    budget=st.none() | st.integers(0, 600),
)
def test_no_budget_is_ever_exceeded(answers, limit, budget):
    """References keep to the limit of a plugin, and to the budget less the blocks."""
    _, shares = put_together(*answers.items(), limit=limit, budget=budget)
    blocks = {name: sum(map(estimate_tokens, answer.blocks)) for name, answer in answers.items()}
    rendered = {name: share.tokens - blocks[name] for name, share in shares.items()}

    assert list(answers) == list(shares)
    assert all(0 <= tokens <= limit for tokens in rendered.values())
    assert budget is None or sum(rendered.values()) <= max(0, budget - sum(blocks.values()))
