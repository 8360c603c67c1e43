"""Which addresses of databases are accepted, and what of them is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_toolkit.postgres_urls import PostgresUrl, is_misread, parsed

QUOTED = {"@": "%40", "/": "%2F", "?": "%3F", "#": "%23", "%": "%25"}


@pytest.mark.parametrize(
    ("url", "misread"),
    [
        ("postgresql://u:p@h:1,[::1]:2/d", False),
        ("postgresql://u:a:b@h/d", False),
        ("postgresql://h/d?host=@socket", False),
        ("host=h password=a/b@c", False),
        ("postgresql://u:a@b@h/d", True),
        ("postgresql://u:a/b@h/d", True),
        ("postgresql://u:1/b@h/d", True),
        ("postgresql://u:a?b@h/d", True),
        ("postgresql://u:a/d", True),
    ],
)
def test_what_libpq_would_misread(url, misread):
    """An unquoted sign in a password makes a part of it a host, a port or a database."""
    assert misread == is_misread(url)


@given(st.text("ab1@/?#%:&=,[] ", max_size=12))
def test_no_part_of_a_password_is_shown(given_password):
    """A quoted password is accepted and not shown; the same one unquoted is refused or not shown."""
    password = f"{given_password}canary"
    quoted = "".join(QUOTED.get(sign, sign) for sign in password)

    whole = parsed(f"postgresql://u:{quoted}@h:1/d")
    bare = parsed(f"postgresql://u:{password}@h:1/d")
    assert whole is None or PostgresUrl(hosts=("h:1",), database="d", has_password=True) == whole
    assert bare is None or "canary" not in bare.place + repr(bare)
