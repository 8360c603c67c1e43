"""How a search is put to the index."""

import pytest

from beaver_hooks.agent.sessions.query import BUDGET, SearchScope, expressions, user_term


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, []),
        ({"no": 0}, []),
        ({"b": 7, "a": 1, "no": 0}, ['terms : "a" OR terms : "b"']),
        (
            {"common": BUDGET, "rare": 3},
            ['(terms : "rare") AND (terms : "rare" OR terms : "common")', 'terms : "common"'],
        ),
        ({"one": BUDGET}, ['terms : "one"']),
        (
            {"a": BUDGET, "bbb": BUDGET, "cccc": BUDGET, "dd": BUDGET},
            [
                'terms : "cccc" AND terms : "bbb" AND terms : "dd"',
                'terms : "cccc" OR terms : "bbb" OR terms : "dd"',
            ],
        ),
    ],
)
def test_rare_terms_lead(counts, expected):
    """Rows with a rare term are asked for first, then those with all and with any of the common ones."""
    assert expected == expressions(counts)


def test_a_scope_surrounds_the_expression():
    """Whatever is asked for lies within the scope and not without."""
    scope = SearchScope(within=("s1", "u0"), without=("s2",))

    assert '((x OR y) AND scope : "s1" AND scope : "u0") NOT scope : "s2"' == scope.limit("x OR y")
    assert "((x))" == SearchScope().limit("x")


def test_users_are_told_apart():
    """Every user has a scope term of their own, lone surrogates and all, that stemming leaves alone."""
    terms = {user_term(user) for user in ("a", "b", "", "\ud800")}

    assert (4, {"0"}) == (len(terms), {term[-1] for term in terms})
