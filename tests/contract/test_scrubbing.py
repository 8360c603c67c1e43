"""The scrubber masks every known secret, in every shape, wherever it stands."""

import base64
import json
import re
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from beaver_hostspecs import MASK, scrub_value
from beaver_hostspecs.scrubbing import MINIMUM_LENGTH, Scrubber, shapes
from beaver_hostspecs.testing import make_canary, traces

anything = st.text(st.characters())
secrets = st.text(st.characters(), min_size=MINIMUM_LENGTH, max_size=40).filter(
    # A secret that is the mask stays readable: it says nothing.
    lambda text: MASK not in (text, text[::-1])
)
keys = st.text("abcXYZ019%+/\"\\'é漢 -_", min_size=MINIMUM_LENGTH, max_size=40)


CROWD = [f"key-of-user-{number:04}" for number in range(60)]
"""More secrets than are looked for one after the other."""


def raw(text):
    return text.encode("utf-8", "surrogatepass")


def lower_percent(text):
    return re.sub("%..", lambda code: code[0].lower(), quote(raw(text), safe=""))


SHAPES = {
    "plain": str,
    "reversed": lambda text: text[::-1],
    "quote": lambda text: quote(raw(text)),
    "quote everything": lambda text: quote(raw(text), safe=""),
    "quote plus": lambda text: quote_plus(raw(text)),
    "quoted as in a path": lambda text: quote(raw(text), safe="!$&'()*+,;=:@/"),
    "quoted as in a query": lambda text: quote(raw(text), safe="!$&'()*+,;=:@/?"),
    "quoted as by a browser": lambda text: quote(raw(text), safe="!'()*"),
    "json": json.dumps,
    "json in full Unicode": lambda text: json.dumps(text, ensure_ascii=False),
    "repr": repr,
    "repr of an exception": lambda text: str(KeyError(text)),
    "ascii": ascii,
    "repr of bytes": lambda text: repr(raw(text)),
    "base64": lambda text: base64.b64encode(raw(text)).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(raw(text)).decode(),
    "hex": lambda text: raw(text).hex(),
    "HEX": lambda text: raw(text).hex().upper(),
}


def knowing(*known):
    scrubber = Scrubber()
    for secret in known:
        scrubber.remember(secret)
    return scrubber


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@given(secret=st.one_of(secrets, keys), before=anything, after=anything)
def test_a_secret_is_masked_in_every_shape(shape, secret, before, after):
    """Whatever the secret, whatever surrounds it, no shape of it is left."""
    scrubber = knowing(secret)
    clean = scrubber.scrub(before + shape(secret) + after)

    assert not scrubber.holds_secret(clean)
    assert [] == traces_by_decoding(secret, clean)


def traces_by_decoding(secret, text):
    # Text that surrounds the shape may itself hold pieces of it; pieces are not what this is about.
    return [name for name in traces(secret, text) if name != "in part"]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@given(secret=keys, before=anything, after=anything)
def test_a_secret_inside_an_encoded_text_is_masked(shape, secret, before, after):
    """A longer text that is encoded as a whole, at any offset, does not carry the secret out."""
    scrubber = knowing(secret)

    assert [] == traces_by_decoding(secret, scrubber.scrub(shape(before + secret + after)))


@given(secret=keys)
def test_percent_encoding_in_lower_case_is_masked(secret):
    """Encoders that write `%c3` instead of `%C3` give nothing away."""
    assert MASK == knowing(secret).scrub(lower_percent(secret))


@given(known=st.lists(keys, min_size=1, max_size=4), text=anything, data=st.data())
def test_scrubbing_twice_changes_nothing(known, text, data):
    """What was scrubbed is clean, and scrubbing it again leaves it as it is."""
    scrubber = knowing(*known)
    pieces = data.draw(st.lists(st.sampled_from([*known, text, MASK, known[0][1:], known[-1][:-1]])))
    once = scrubber.scrub("".join(pieces))

    assert once == scrubber.scrub(once)


@given(st.text("ab[]secrt", min_size=8, max_size=12), st.text("ab[]secrt", max_size=40))
@example("]abcdefg", "]abcdefgabcdefg")
@example("cret][se", "[secret][secret]")
@example("[secret]", "[secret]")
@example("]terces[", "]terces[")
def test_a_secret_that_looks_like_the_mask_comes_to_an_end(secret, text):
    """Secrets made of the mask's own characters are masked too, and scrubbing ends."""
    scrubber = knowing(secret)

    assert not scrubber.holds_secret(scrubber.scrub(text))


@given(known=st.lists(keys, max_size=3), text=anything)
def test_text_without_secrets_is_left_alone(known, text):
    """Nothing is changed where no secret is."""
    scrubber = knowing(*known)
    assume(not scrubber.holds_secret(text))

    assert text == scrubber.scrub(text)


@pytest.mark.parametrize(
    ("known", "text", "expected"),
    [
        (["abcdefgh", "efghijkl"], "<abcdefghijkl>", "<[secret]>"),
        (["abcdefgh", "abcdefghijkl"], "<abcdefghijkl>", "<[secret]>"),
        (["abcdefgh", "cdefghij", "ijklmnop"], "<abcdefghijklmnop>", "<[secret]>"),
        (["abcdefgh", "ijklmnop"], "<abcdefghijklmnop>", "<[secret][secret]>"),
        (["abababab"], "<ababababab>", "<[secret]>"),
    ],
)
def test_overlapping_secrets_leave_no_rest(known, text, expected):
    """Where secrets overlap, the whole stretch is masked, not just the first of them."""
    assert expected == knowing(*known).scrub(text)


def test_short_secrets_are_not_looked_for():
    """Seven characters are too few: masking them would maim ordinary text."""
    assert ["1234567", MASK] == [knowing(known).scrub(known) for known in ("1234567", "12345678")]


def test_remembering_twice_changes_nothing():
    """A secret that is known already adds no needles."""
    scrubber = knowing("a credential")
    needles = scrubber._few
    scrubber.remember("a credential")

    assert needles is scrubber._few


@given(known=st.lists(keys, min_size=1, max_size=4), text=anything, data=st.data())
def test_many_secrets_are_masked_like_few(known, text, data):
    """Among the secrets of many users each is masked as it is alone."""
    pieces = data.draw(st.lists(st.sampled_from([*known, text, known[0][1:], known[-1][:-1], *shapes(known[0])])))
    few, many = knowing(*known), knowing(*CROWD, *known)

    assert None is not few._few
    assert None is many._few
    assert few.scrub("".join(pieces)) == many.scrub("".join(pieces))


def test_secrets_that_begin_alike():
    """Keys of one kind are told apart by their ends: none is looked for because another one begins like it."""
    many = knowing(*CROWD)

    assert ["<[secret]>"] * len(CROWD) == [many.scrub(f"<{secret}>") for secret in CROWD]
    assert "<key-of-user-0060>" == many.scrub("<key-of-user-0060>")
    assert len(CROWD) // 4 > max(len(needles) for needles in many._by_piece.values())


def test_holds_secret():
    """`holds_secret` says whether any shape of a known secret is there."""
    scrubber = knowing("credential")

    assert [True, True, False] == [
        scrubber.holds_secret(text) for text in ("a credential", "laitnederc", "a credentia l")
    ]


Pair = namedtuple("Pair", "left right")  # noqa: PYI024


def test_values_are_scrubbed_all_the_way_down():
    """Strings in mappings, lists and sets are masked, keys too; other values come through as they are."""
    key = "credential-1"
    scrubber = knowing(key)
    value = {
        key: [key, 1, None, 2.5, True],
        "tuple": ("a", (key,)),
        "named": Pair(key, 2),
        "set": {key},
        "frozen": frozenset({key}),
        "bytes": b"\xff" + key.encode(),
    }

    assert {
        MASK: [MASK, 1, None, 2.5, True],
        "tuple": ("a", (MASK,)),
        "named": (MASK, 2),
        "set": {MASK},
        "frozen": frozenset({MASK}),
        "bytes": b"\xff" + MASK.encode(),
    } == scrubber.scrub_value(value)


def test_the_original_value_is_not_changed():
    """Scrubbing makes a copy: what a plugin handed over stays as it was."""
    value = {"key": ["credential-2"]}
    knowing("credential-2").scrub_value(value)

    assert {"key": ["credential-2"]} == value


@given(
    st.recursive(st.none() | st.integers() | anything, lambda inner: st.lists(inner) | st.dictionaries(anything, inner))
)
def test_clean_values_come_back_equal(value):
    """A value without secrets is equal to what it was."""
    assert value == Scrubber().scrub_value(value)


def test_the_processs_scrubber_scrubs_values(canary):
    """`scrub_value` of the package knows every `Secret` ever made."""
    assert [MASK] == scrub_value([canary.reveal()])


def test_several_threads():
    """Threads that remember and scrub at once: whoever has remembered a secret finds it masked at once."""
    scrubber = Scrubber()
    together = threading.Barrier(4)

    def work(number):
        together.wait()
        known = [f"shared-credential-{index}" for index in range(50)]
        known += [f"own-credential-{number}-{index}" for index in range(50)]
        leaked = []
        for secret in known:
            scrubber.remember(secret)
            leaked += [secret] if secret in scrubber.scrub(f"<{secret}>") else []
        return leaked

    with ThreadPoolExecutor(4) as pool:
        leaked = list(pool.map(work, range(4)))

    assert [[], [], [], []] == leaked


def test_a_canary_is_masked_in_every_shape_of_it():
    """The kit's own canary, which every encoding changes, is masked in all shapes at once."""
    canary = make_canary()
    scrubber = knowing(canary.reveal())

    canary.assert_clean(*(scrubber.scrub(shape(canary.reveal())) for shape in SHAPES.values()))
