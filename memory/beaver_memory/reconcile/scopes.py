"""Decides whether a statement holds only in a part of the cases of another one. Pure.

"We no longer use Docker on macOS" leaves "We use Docker" true, and "I take the train when it rains" leaves "I take the
bus to work" true.
"""

from beaver_memory.reconcile.claim import Claim


def is_narrower(later: Claim, earlier: Claim) -> bool:
    """Return whether the later statement names a condition or a purpose, and the earlier one names none."""
    # "I moved to Porto for my job" tells a reason.
    purposes = frozenset() if later.changes else later.purposes
    return _is_limit(later, later.conditions, earlier, earlier.conditions) or _is_limit(
        later, purposes, earlier, earlier.purposes
    )


def denies_a_part(denial: Claim, other: Claim) -> bool:
    """Return whether a denial leaves a part of the other statement true.

    It names a condition, a purpose or a place that the other statement does not name, or only some members of a list.
    """
    return leaves_members(denial, other) or (bool(_limits(denial)) and not _limits(denial) & other.content)


def leaves_members(denial: Claim, other: Claim) -> bool:
    """Return whether a denial names only some members of a list: "We no longer use Kubernetes" of two tools."""
    named = [not each.isdisjoint(denial.content) for each in other.parts]
    return any(named) and not all(named)


def gives_up_a_part(later: Claim, earlier: Claim) -> bool:
    """Return whether the later statement gives up a part of the earlier one: "I stopped using Slack on my phone"."""
    limits = _limits(later) & later.replaced
    return bool(limits) and not limits & earlier.content


def _limits(denial: Claim) -> frozenset[str]:
    # "I sold my car in Berlin": where something happened limits nothing.
    return frozenset() if denial.happened else denial.conditions | denial.purposes | denial.places


def _is_limit(later: Claim, limits: frozenset[str], earlier: Claim, earlier_limits: frozenset[str]) -> bool:
    if not limits or earlier_limits or limits & earlier.content:
        return False
    # "The meeting is on Fridays" gives a value, and no condition.
    names = later.attributes.keys() & earlier.attributes.keys() or later.attributes.keys()
    return not names or not all(limits >= set(later.attributes[name].value) for name in names)
