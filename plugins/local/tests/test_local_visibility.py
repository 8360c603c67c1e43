"""Whose memories a turn and a command may see."""

from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, Scope, Trust
from beaver_hostspecs.testing import RecordingReport, make_turn
from beaver_memory.records import Owner, Store
from beaver_memory.runtime.troubles import Troubles
from beaver_memory.views import Reach

NOON = datetime(2026, 3, 1, tzinfo=UTC)
SCOPE = Scope(tenant="t", project="p", agent="a")


def test_a_turn_and_a_command_see_the_same():
    """The command of the same user in the same session sees what the turn sees."""
    turn = make_turn(user="ann", session="s", scope=SCOPE, trust="inner")
    context = CommandContext(user="ann", session="s", scope=SCOPE, trust="inner")

    assert Visibility.of_turn(turn, Reach()) == Visibility.of_command(context, Reach())
    assert Visibility(owner=Owner(tenant="t", user="ann"), project="p", session="s", agent="a", trust=Trust.INNER) == (
        Visibility.of_turn(turn, Reach())
    )


@pytest.mark.parametrize(
    ("user", "expected"), [("ann", (Owner(tenant="t", user="ann"), Owner(tenant="t"))), (None, (Owner(tenant="t"),))]
)
def test_owners(user, expected):
    """A turn sees the memories of its user and those of no user, and may change its own only."""
    sight = Visibility.of_turn(make_turn(user=user, scope=SCOPE, trust="full"), Reach())

    assert (expected, (expected[0],)) == (sight.filters(NOON).view.owners, sight.own(NOON).view.owners)


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_blank_name_is_nobodys(blank):
    """Turns, commands and scopes refuse a blank user, session, tenant, project or agent."""
    refused = []
    for name, make in (
        ("user", make_turn),
        ("user", CommandContext),
        ("session", CommandContext),
        ("tenant", Scope),
        ("project", Scope),
        ("agent", Scope),
    ):
        with pytest.raises(ValueError, match=f"{name} must be a str that is not blank, or None") as caught:
            make(**{name: blank})
        refused.append(type(caught.value))

    assert [ValueError] * 6 == refused


@given(st.sampled_from(Trust), st.lists(st.sampled_from(Store)))
def test_stores(trust, wanted):
    """Naming stores narrows the visible stores and never widens them."""
    sight = Visibility.of_turn(make_turn(trust=trust), Reach())
    seen = set(sight.filters(NOON, stores=wanted).view.stores)

    assert seen == (set(wanted) & set(sight.stores) if wanted else set(sight.stores))


NAMES = st.text(alphabet=st.characters(), max_size=5).filter(str.strip)


@given(NAMES | st.just("x" * 2000), NAMES)
def test_names_stay_apart(one, other):
    """Different user names give different owners, also names that the store cannot hold."""
    owners = [Visibility.of_turn(make_turn(user=user, trust="full"), Reach()).owner for user in (one, other)]

    assert (one == other) == (owners[0] == owners[1])


@pytest.mark.parametrize("given", ["\0", "x" * 2000, "sha256-", "sha256-" + "0" * 64])
def test_a_name_like_a_hashed_one(given):
    """A name equal to the replacement of another name is not taken for that name."""
    one = Visibility.of_turn(
        make_turn(user=given, scope=Scope(tenant=given, project=given, agent=given), session=given), Reach()
    )
    name = one.owner.user
    other = Visibility.of_turn(
        make_turn(user=name, scope=Scope(tenant=name, project=name, agent=name), session=name), Reach()
    )
    pairs = [(getattr(one, field), getattr(other, field)) for field in ("owner", "project", "agent", "session")]

    assert [] == [pair for pair in [*pairs, (one.owner.tenant, other.owner.tenant)] if pair[0] == pair[1]]


def test_a_sight_that_is_narrowed():
    """Changing one field of a `Visibility` keeps the names in its other fields."""
    sight = Visibility.of_turn(make_turn(user="\0", scope=Scope(project="\0", agent="\0"), session="s"), Reach())

    assert (sight.project, sight.agent) == ((narrowed := attrs.evolve(sight, session="")).project, narrowed.agent)


def test_troubles():
    """A trouble is reported once, and the health recovers at the first success and when no trouble is left."""
    troubles, report = Troubles(), RecordingReport()
    troubles.ended("embedding", report)
    troubles.ended("embedding", report)
    troubles.began("embedding", "timeout", report)
    troubles.began("embedding", "timeout", report)
    troubles.began("trace", "OSError", report)
    troubles.ended("embedding", report)

    assert (["embedding_timeout", "trace_OSError"], 1) == (report.degradations, report.recoveries)
    assert ("trace_OSError",) == troubles.now
    troubles.ended("trace", report)
    assert 2 == report.recoveries


@pytest.mark.parametrize(
    ("user", "trust", "stores"),
    [
        (None, Trust.FULL, {Store.PRIVATE, Store.SHARED, Store.SOCIAL}),
        (None, Trust.INNER, set()),
        (None, Trust.FAMILIAR, set()),
        ("u", Trust.FAMILIAR, {Store.SOCIAL}),
        ("u", Trust.PUBLIC, set()),
    ],
)
def test_what_belongs_to_no_user_is_changed_by_the_owner_alone(user, trust, stores):
    """A caller without an id changes memories without a user at full trust only."""
    assert stores == {*Visibility.of_command(CommandContext(user=user, trust=trust), Reach()).own(NOON).view.stores}
