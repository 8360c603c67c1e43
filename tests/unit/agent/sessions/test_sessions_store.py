"""The store keeps sessions, and answers from what it kept."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from beaver_hooks.agent.errors import SessionError, StorageError, UnknownSession
from beaver_hooks.agent.sessions.records import HiddenEvent, ImportReport, Resumed, Session, SessionInfo
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hostspecs import Message, Secret, Trust

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


class Ticking:
    """Every look at it is a second later."""

    def __init__(self):
        self.time = WHEN

    def now(self):
        self.time += timedelta(seconds=1)
        return self.time

    def monotonic(self):
        return 0.0


@pytest.fixture
async def store(tmp_path):
    store = SessionStore.open(tmp_path / ".beaver", clock=Ticking())
    yield store
    await store.close()


def at(seconds):
    return WHEN + timedelta(seconds=seconds)


def exchange(prompt, answer="yes", **rest):
    return [Message(role="user", text=prompt, when=WHEN, **rest), Message(role="assistant", text=answer, when=WHEN)]


async def filled(store):
    """Two sessions: one with two exchanges and a hidden event, one empty."""
    await store.ensure("a", "me")
    await store.ensure("b")
    await store.append_exchange("a", exchange("first \ud800 words", id="m\ud800", speaker="Ann"))
    await store.append_exchange("a", exchange("second"))
    await store.add_event("a", "turn_opened", {"plugins": 2})


async def test_sessions_are_listed(store):
    """The list shows sessions with their first words and counts, and leaves out sessions without messages."""
    await filled(store)
    a = SessionInfo(id="a", user="me", title="first \ufffd words", created=at(1), updated=at(4), messages=4, events=1)
    b = SessionInfo(id="b", created=at(2), updated=at(2))

    assert b == (await store.show("b")).info
    assert (a,) == await store.list()
    assert (a,) == await store.list(1) == await store.list(user_id="me")
    assert () == await store.list(-1) == await store.list(user_id="you")


async def test_history_is_the_newest_visible_messages(store):
    """The history returns messages in order and unchanged."""
    await filled(store)
    whole = (*exchange("first \ud800 words", id="m\ud800", speaker="Ann"), *exchange("second"))

    assert whole == await store.history("a")
    assert whole[-3:] == await store.history("a", 3)
    assert () == await store.history("a", 0) == await store.history("b", 10**30)


@pytest.mark.parametrize("text", ["x" * 1_000_000, " \n\t", "", "nul\0nul", "lone \ud800\udfff", "\ufffe\u202e"])
async def test_any_text_is_kept(store, text):
    """A megabyte, only white space, NUL and lone surrogates come back as they were."""
    session = await store.ensure()
    await store.append_exchange(session, exchange(text, text))

    assert tuple(exchange(text, text)) == await store.history(session)
    assert () == await store.integrity()


async def test_hidden_events_are_hidden(store):
    """Hidden events appear in no history and no search, and hold no secrets."""
    await filled(store)
    secret = Secret("sk-hidden-event-canary")
    await store.add_event("a", "noted", {"text": secret.reveal()})
    noted = HiddenEvent(name="noted", at=at(6), payload={"text": "[secret]"})
    opened = HiddenEvent(name="turn_opened", at=at(5), payload={"plugins": 2})
    stored = await store.events("a")

    assert (opened, noted) == stored
    assert stored[1:] == await store.events("a", 1)
    assert 4 == len(await store.history("a"))
    assert () == await store.search("turn_opened plugins noted")
    assert () == (await store.show("a")).events
    assert stored == (await store.show("a", hidden=True)).events


async def test_a_session_is_renamed(store):
    """A title replaces the first words, on one line, until it is taken away."""
    await filled(store)
    await store.rename("a", " My\n\0title ")
    named = (await store.show("a")).info.title
    await store.rename("a", None)

    assert ("My \ufffdtitle", "first \ufffd words") == (named, (await store.show("a")).info.title)


async def test_a_given_title_has_no_secrets(store):
    """A credential in a title that the user gives is masked before it is stored."""
    await filled(store)
    await store.rename("a", "the box with password=hunter2x")

    assert "the box with password=[redacted: password]" == (await store.show("a")).info.title


async def test_a_session_is_whose_it_was_first(store):
    """Ensuring a session again changes nothing."""
    await filled(store)
    before = await store.show("a")

    assert "a" == await store.ensure("a", "somebody else")
    assert before == await store.show("a")


async def test_a_session_is_resumed(store):
    """The next turn finds its newest messages; looking stores nothing, beginning does."""
    await filled(store)
    whole = (*exchange("first \ud800 words", id="m\ud800", speaker="Ann"), *exchange("second"))
    before = await store.show("a")
    found = [await store.begin("a", "me"), await store.resume("a", limit=1), await store.resume("a", limit=0)]
    assert Resumed(id="c") == await store.resume("c")
    with pytest.raises(UnknownSession):
        await store.show("c")
    new = [await store.begin("c", "you"), await store.begin()]

    assert [Resumed(id="a", history=whole), Resumed(id="a", history=whole[-1:]), Resumed(id="a")] == found
    assert [Resumed(id="c"), Resumed(id=new[1].id)] == new
    assert before == await store.show("a")
    assert "you" == (await store.show("c")).info.user
    assert ["a"] == [info.id for info in await store.list()]


async def test_a_session_of_somebody_else_is_not_resumed(store):
    """A session is resumed by its user, or by a nameless caller at full trust; one without a user takes no user."""
    await filled(store)
    before = await store.list()
    said = []
    for session, user, trust in (("a", "you", Trust.FULL), ("a", None, Trust.INNER), ("b", "you", Trust.FULL)):
        with pytest.raises(SessionError) as caught:
            await store.begin(session, user, trust=trust)
        said.append(str(caught.value).partition(";")[0])
    allowed = [
        (await store.begin(session, user, trust=trust)).id
        for session, user, trust in (("a", "me", Trust.PUBLIC), ("a", None, Trust.FULL), ("b", None, Trust.FULL))
    ]

    others, nobodys = "The session belongs to another user", "The session was started without a user"
    assert [others, others, nobodys] == said
    assert (["a", "a", "b"], before) == (allowed, await store.list())


@pytest.mark.parametrize("trust", list(Trust))
async def test_a_session_without_a_user_is_not_gone_on_with_at_less_trust(store, tmp_path, trust):
    """A session that began with more trust refuses a caller with less, also in a second store on the same folder."""
    begun = {each: (await store.begin(each.value, trust=each)).id for each in Trust}
    for each in begun.values():
        await store.append_exchange(each, exchange("told"))
    other, refused = SessionStore.open(tmp_path / ".beaver"), {}
    for each, session in begun.items():
        try:
            assert 2 == len((await other.begin(session, trust=trust)).history)
        except SessionError as error:
            refused[each] = str(error)
    await other.close()

    said = "The session was started with more trust; leave the id out to start a new session."
    order = list(Trust)
    assert dict.fromkeys(order[: order.index(trust)], said) == refused


@pytest.mark.parametrize("trust", list(Trust))
async def test_a_session_of_a_user_is_not_continued_with_less_trust(store, trust):
    """Others may read along where the trust is less than it was when the session began."""
    continued = []
    for each in Trust:
        await store.begin(each.value, "me", trust=each)
        with contextlib.suppress(SessionError):
            continued.append((await store.begin(each.value, "me", trust=trust)).id)

    assert [each.value for each in Trust if trust.reaches(each)] == continued


async def test_whether_a_caller_may_go_on_is_told_without_a_turn(store):
    """A session of another caller is refused, the caller's own and one that is not stored are not."""
    await store.begin("owner's", "owner", trust=Trust.FULL)
    for user, trust in (("stranger", Trust.FULL), ("owner", Trust.PUBLIC), (None, Trust.INNER)):
        with pytest.raises(SessionError):
            await store.check("owner's", user, trust)

    assert [None] * 3 == [
        await store.check("owner's", "owner", Trust.FULL), await store.check("owner's", None, Trust.FULL),
        await store.check("new", "stranger", Trust.PUBLIC),
    ]  # fmt: skip


@pytest.mark.parametrize("ids", [("", None), ("a\nb", None), (7, None), ("a", ""), ("a", "x" * 513)])
async def test_ids_that_do_not_fit_are_not_resumed(store, ids):
    """The store refuses an unusable id with a sentence, and makes no session."""
    with pytest.raises(SessionError, match="without control characters; use another one"):
        await store.begin(*ids)

    assert () == await store.list()


async def test_new_ids_differ(store):
    """Each call without an id makes a new session."""
    assert 2 == len({await store.ensure(), await store.ensure()})


async def test_unknown_sessions(store):
    """Every method that takes a session raises `UnknownSession` for an unknown id."""
    calls = [
        lambda: store.append_exchange("x", exchange("p")),
        lambda: store.history("x"),
        lambda: store.add_event("x", "n", {}),
        lambda: store.events("x"),
        lambda: store.show("x"),
        lambda: store.rename("x", "t"),
        lambda: store.delete("x"),
        lambda: store.search("q", session_id="x"),
    ]
    said = []
    for call in calls:
        with pytest.raises(UnknownSession) as caught:
            await call()
        said.append(str(caught.value))

    assert ["There is no such session; `beaver sessions list` lists the stored ones."] * len(calls) == said
    with pytest.raises(UnknownSession):
        [line async for line in store.export("x")]
    with pytest.raises(SessionError):
        await store.ensure("a\nb")
    with pytest.raises(SessionError):
        await store.history("\ud800")


async def test_what_is_exported_can_be_imported(store, tmp_path):
    """Another store imports the same sessions; it skips existing ones, or replaces them on request."""
    await filled(store)
    lines = [line async for line in store.export()]
    only = [line async for line in store.export("b")]
    other = SessionStore.open(tmp_path / "other")
    reports = [await other.import_(["", *lines]), await other.import_(lines), await other.import_(lines, replace=True)]
    copies = [await other.show(each, hidden=True) for each in "ab"]
    copied = [line async for line in other.export()]
    hits = await other.search("words", user_id="me")
    await other.close()

    assert [
        ImportReport(added=2, messages=4),
        ImportReport(skipped=2),
        ImportReport(replaced=2, messages=4),
    ] == reports
    assert [await store.show(each, hidden=True) for each in "ab"] == copies
    assert lines == copied
    assert ["a"] == [hit.session for hit in hits]
    assert lines[-1:] == only


async def test_a_session_that_goes_while_all_are_exported(store):
    """The export leaves out a session that is deleted meanwhile, and has the others."""
    await filled(store)
    lines = store.export()
    first = await anext(lines)
    await store.delete("b")

    assert ["a"] == [
        line.split('"id": ')[1][1] for line in [first, *[line async for line in lines]] if "session" in line
    ]


async def test_a_bad_line_imports_nothing(store):
    """The line is named, and the good lines before it were not imported."""
    lines = ['{"type":"session","id":"a","created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"}', "", "{"]
    with pytest.raises(SessionError) as caught:
        await store.import_(lines)

    assert (
        "Line 3 is not a line of an exported session; nothing was imported. Correct or remove the line.",
        (),
    ) == (str(caught.value), await store.list())


async def test_a_closed_store(store):
    """A closed store says that it is closed; closing it again does nothing."""
    await store.close()
    await store.close()
    with pytest.raises(StorageError) as caught:
        await store.list()

    assert str(caught.value).endswith("sessions.db is closed; open the store again.")


async def test_a_store_of_another_process(store, monkeypatch):
    """A forked child cannot use the store, and closing it there does not close the parent's."""
    with monkeypatch.context() as forked:
        forked.setattr("os.getpid", lambda: -1)
        await store.close()
        with pytest.raises(StorageError) as caught:
            await store.list()

    assert str(caught.value).endswith("was opened by another process; open a store in this process.")
    assert () == await store.list()


async def test_a_whole_session(store):
    """Showing a session gives its row and its messages."""
    await filled(store)

    assert Session(info=SessionInfo(id="b", created=at(2), updated=at(2))) == await store.show("b")
