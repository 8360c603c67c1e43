"""Which turn ids may be recorded as they are."""

import uuid

import pytest

from beaver_hooks.turns.fields import is_ours, new_turn_id


def test_a_new_id_is_ours_and_new():
    """Ids of ours are recognised, and no two are alike."""
    ids = {new_turn_id() for _ in range(100)}

    assert (100, {True}) == (len(ids), {is_ours(each) for each in ids})


@pytest.mark.parametrize(
    ("turn_id", "expected"),
    [
        (str(uuid.UUID(int=7)), True),
        ("turn-" + "0" * 24, True),
        ("turn-" + "0" * 23, False),
        ("turn-" + "A" * 24, False),
        ("turn-" + "0" * 24 + "\n", False),
        (str(uuid.UUID(int=7)).upper() + "F", False),
        ("ada.lovelace", False),
        ("", False),
    ],
)
def test_other_ids_could_name_a_person(turn_id, expected):
    """Only our own form and that of a UUID is taken for random."""
    assert expected == is_ours(turn_id)
