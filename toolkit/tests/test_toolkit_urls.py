"""Which addresses are accepted, and which of them can be read on the way."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_toolkit.urls import is_exposed, is_here, split


@pytest.mark.parametrize(
    ("url", "here", "exposed"),
    [
        ("http://localhost", True, False),
        ("http://localhost.:1/v1", True, False),
        ("http://127.0.0.9:1", True, False),
        ("http://[::1]:1", True, False),
        ("http://h", False, True),
        ("http://10.0.0.1", False, True),
        ("https://h", False, False),
        ("nonsense", False, False),
    ],
)
def test_what_can_be_listened_to(url, here, exposed):
    """Only plain http to another machine can be read on the way."""
    assert (here, exposed) == (is_here(url), is_exposed(url))


@given(st.text(max_size=40) | st.text("htps:/@[]?#%.0a\\ ", max_size=20).map("http://".__add__))
def test_an_address_is_one_or_none(url):
    """Any text is an address without surprises, or none, and never an exception."""
    parts = split(url)
    if parts is not None:
        assert parts.hostname
        assert "@" not in parts.netloc
        assert set() == set("?# \\") & set(url)


@given(st.text(max_size=60) | st.from_regex(r"\Ahttps?://[!-~]{1,40}\Z"))
def test_what_is_accepted_can_be_reached(text):
    """Whatever passes as an address is one to the HTTP library too, with the same host."""
    parts = split(text)
    if parts is None:
        assert not is_exposed(text)
        return
    url = httpx.URL(text)
    assert (parts.scheme, parts.hostname, b"", b"") == (url.scheme, url.host, url.query, url.userinfo)
