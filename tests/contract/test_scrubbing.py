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
    """A secret in any shape and any surrounding text is masked."""
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
    """Scrubbing a scrubbed text leaves it unchanged."""
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
    """A secret made of the mask's own characters is masked, and scrubbing ends."""
    scrubber = knowing(secret)

    assert not scrubber.holds_secret(scrubber.scrub(text))


@given(known=st.lists(keys, max_size=3), text=anything)
def test_text_without_secrets_is_left_alone(known, text):
    """A text without a secret stays unchanged."""
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
    """Overlapping secrets are masked as one stretch."""
    assert expected == knowing(*known).scrub(text)


def test_short_secrets_are_not_looked_for():
    """A secret of seven characters is not masked, because that would damage ordinary text."""
    assert ["1234567", MASK] == [knowing(known).scrub(known) for known in ("1234567", "12345678")]


def test_remembering_twice_changes_nothing():
    """A secret that is known already adds no needles."""
    scrubber = knowing("a credential")
    needles = scrubber._few
    scrubber.remember("a credential")

    assert needles is scrubber._few


@given(known=st.lists(keys, min_size=1, max_size=4), text=anything, data=st.data())
def test_many_secrets_are_masked_like_few(known, text, data):
    """A secret is masked the same way among many other secrets as alone."""
    pieces = data.draw(st.lists(st.sampled_from([*known, text, known[0][1:], known[-1][:-1], *shapes(known[0])])))
    few, many = knowing(*known), knowing(*CROWD, *known)

    assert None is not few._few
    assert None is many._few
    assert few.scrub("".join(pieces)) == many.scrub("".join(pieces))


def test_secrets_that_begin_alike():
    """Each of many secrets that begin alike is masked, and an unknown one with the same beginning is not."""
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
    """Strings in mappings, keys, lists and sets are masked, and other values stay as they are."""
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
    """Scrubbing a value returns a copy and does not change the original."""
    value = {"key": ["credential-2"]}
    knowing("credential-2").scrub_value(value)

    assert {"key": ["credential-2"]} == value


@given(
    st.recursive(st.none() | st.integers() | anything, lambda inner: st.lists(inner) | st.dictionaries(anything, inner))
)
def test_clean_values_come_back_equal(value):
    """A value without secrets equals its scrubbed copy."""
    assert value == Scrubber().scrub_value(value)


def test_the_processs_scrubber_scrubs_values(canary):
    """`scrub_value` of the package knows every `Secret` ever made."""
    assert [MASK] == scrub_value([canary.reveal()])


def test_several_threads():
    """Each of several threads finds a secret masked as soon as it has remembered it."""
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


@pytest.mark.shows("000-042", "000-130")
def test_a_canary_is_masked_in_every_shape_of_it():
    """The kit's own canary, which every encoding changes, is masked in all shapes at once."""
    canary = make_canary()
    scrubber = knowing(canary.reveal())

    canary.assert_clean(*(scrubber.scrub(shape(canary.reveal())) for shape in SHAPES.values()))


def test_needles_are_every_shape_of_every_secret():
    """A search of another kind gets every shape of each known secret, and sees by their number that there are more."""
    scrubber, secret = Scrubber(), "a secret with blanks"
    before = (scrubber.known, scrubber.needles())
    scrubber.remember(secret)

    assert ((0, ()), 1, {*shapes(secret)}) == (before, scrubber.known, {*scrubber.needles()})
