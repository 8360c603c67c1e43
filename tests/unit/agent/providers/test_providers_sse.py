"""Server-sent events come out of bytes, however these are split."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.errors import ProviderError
from beaver_hooks.agent.providers.openai_stream import EventDecoder

stream = st.lists(
    st.sampled_from(
        [
            b"data: one", b"data:two", b"data", b": comment", b"event: x", b"id", b"data: \xc3\xa9\xe6\xbc\xa2",
            b"\r", b"\n", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xff",
        ]
    )
    | st.binary(max_size=4),
    max_size=12,
).map(b"".join)  # fmt: skip


def decoded(parts):
    """Return the events, and the category of the error that ended them."""
    decoder, found = EventDecoder(), []
    try:
        # Event by event: those before an error count.
        found.extend(itertools.chain.from_iterable(map(decoder.feed, parts)))
    except ProviderError as error:
        return found, error.category
    return found, None


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"data: one\n\n", ["one"]),
        (b"data:one\r\rdata: two\r\n\r\n", ["one", "two"]),
        (b"data: one\ndata:  two\ndata\n\n", ["one\n two\n"]),
        (b": hello\nevent: x\nid: 1\nretry: 5\nother\n\n", []),
        (b"data\n\n", [""]),
        (b"\n\n\n", []),
        (b"\xef\xbb\xbfdata: one\n\n", ["one"]),
        (b"data: one\n\n\xef\xbb\xbfdata: two\n\n", ["one"]),
        (b"data: one\n\ndata: two\n", ["one"]),
        (b"data: a:b\n\n", ["a:b"]),
        (b"", []),
    ],
)
def test_events(received, expected):
    """Every rule of the format, on bytes that arrive at once."""
    assert (expected, None) == decoded([received])


def test_invalid_bytes():
    """Bytes that are not UTF-8 are an error, after the events before them."""
    assert (["one"], "malformed") == decoded([b"data: one\n\ndata: \xff\n\n"])


def test_nothing_is_chained():
    """The error for bytes that are no text does not carry them."""
    with pytest.raises(ProviderError) as caught:
        list(EventDecoder().feed(b"data: secret\xff\n"))

    assert (None, None) == (caught.value.__cause__, caught.value.__context__)


@given(stream, st.lists(st.integers(0, 80), max_size=8))
def test_any_split_gives_the_same(received, cuts):
    """Whole, cut anywhere, or byte by byte: the same events and the same error."""
    places = [0, *sorted(min(cut, len(received)) for cut in cuts), len(received)]
    parts = [received[start:end] for start, end in itertools.pairwise(places)]
    bytewise = [received[at : at + 1] for at in range(len(received))]

    assert decoded([received]) == decoded(parts) == decoded(bytewise)
