"""A deleted session, or a forgotten turn, leaves none of its words in the files."""

import random
import string

import pytest

from beaver_hooks.agent.sessions.records import ForgetReport
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hostspecs import Message


def word(chance):
    return "zq" + "".join(chance.choices(string.ascii_lowercase, k=12))


def left(folder, words):
    """Return the words of which the files still hold a good part."""
    raw = b"".join(each.read_bytes() for each in folder.iterdir())
    return {each for each in words if any(each[at : at + 8].encode() in raw for at in range(len(each) - 7))}


async def fill(store, session, words):
    await store.ensure(session, words[0])
    await store.rename(session, words[1])
    await store.add_event(session, words[2], {"fact": words[3]})
    for at in range(4, len(words), 8):
        prompt, answer = " ".join(words[at : at + 4]), " ".join(words[at + 4 : at + 8])
        message = Message(role="user", text=prompt, id=words[at] + "id", speaker=words[at])
        await store.append_exchange(session, [message, Message(role="assistant", text=answer * 40)])


async def test_no_byte_of_a_deleted_session_is_left(tmp_path):
    """No file holds texts, titles, ids, events or index terms of a deleted session; other sessions are still found."""
    chance = random.Random(1)
    gone, stays = [word(chance) for _ in range(304)], [word(chance) for _ in range(104)]
    store = SessionStore.open(tmp_path / "state")
    await fill(store, "a", gone[:154])
    await fill(store, "b", stays)
    await fill(store, word(chance), gone[154:])
    before = left(tmp_path / "state", gone)
    for session in await store.list():
        if session.id != "b":
            await store.delete(session.id)
    after = left(tmp_path / "state", gone)
    hits = [hit.session for each in stays[4:] for hit in await store.search(each)]
    await store.rename("b", "harmless")
    problems = await store.integrity()
    await store.close()

    assert ({*gone}, set(), ["b"] * 100, ()) == (before, after, hits, problems)


TOKEN = "ghp_" + "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=36))
SAID = f"Use {TOKEN} for the build, my password is hunter2tulip."
MASKED = "Use [redacted: github token] for the build, my password is [redacted: password]."


@pytest.mark.shows("003-106")
async def test_sessions_hold_no_secrets(tmp_path):
    """Messages that a turn or an import stores, of the user and of the model, have masks; no file holds a secret."""
    store = SessionStore.open(tmp_path / "state")
    await exchange(store, "a", SAID, f"I will use {TOKEN}.")
    lines = [line.replace(MASKED, SAID) async for line in store.export("a")]
    await store.import_([line.replace('"a"', '"b"') for line in lines])
    said = [message.text for each in ("a", "b") for message in await store.history(each, 10)]
    await store.close()

    assert [MASKED, "I will use [redacted: github token]."] * 2 == said
    assert SAID in "".join(lines)
    assert set() == left(tmp_path / "state", [TOKEN, "hunter2tulip"])


async def test_search_tells_no_secret(tmp_path):
    """Where messages keep secrets, index, titles and snippets hold none, and the words of one still erase its turn."""
    token = TOKEN
    store = SessionStore.open(tmp_path / "state", store_secrets=True)
    await exchange(store, "a", SAID, "Done.")
    await exchange(store, "b", "Something else about the build.", "Done.")
    found = [await store.search(each) for each in (token, "hunter2tulip")]
    (hit,) = [each for each in await store.search("build") if each.session == "a"]
    (title,) = [each.title for each in await store.list() if each.id == "a"]
    history = await store.history("a", 10)
    gone = await store.forget(f"{token} build")
    rest = [each.id for each in await store.list()]
    await store.close()
    text = MASKED
    assert ([(), ()], text, text, True, ["b"]) == (found, hit.snippet, title, token in history[0].text, rest)
    assert ForgetReport(messages=2, sessions=1, emptied=1) == gone


async def exchange(store, session, prompt, *answers):
    await store.ensure(session, session)
    messages = [Message(role="user", text=prompt), *(Message(role="assistant", text=each) for each in answers)]
    await store.append_exchange(session, messages)


async def said(store):
    """Return title and texts of each session, by its id."""
    sessions = [await store.show(each.id) for each in await store.list()]
    return {each.info.id: (each.info.title, [message.text for message in each.messages]) for each in sessions}


async def test_forgetting_words(tmp_path):
    """The turns that hold all words are erased with prompt and answer, and a session without another turn with them."""
    store = SessionStore.open(tmp_path / "state")
    await exchange(store, "a", "When is the release?", "The zqquokka releases on Thursday.")
    await exchange(store, "a", "And the tests?", "On Friday.")
    await exchange(store, "b", "Zqquokka release on Thursday", "Noted.")
    await exchange(store, "c", "Is there a zqquokka?", "No.")
    quoting = [await store.quoting(texts) for texts in (["zqquokka release Thursday"], ["nothing", "zqquokka"], ["?!"])]
    quoting.append(await store.quoting(["zqquokka"], user_id="c"))
    found = [hit.session for hit in await store.holding("thursday ZQQUOKKA")]
    other = await store.forget("thursday zqquokka", user_id="c")
    report = await store.forget("thursday zqquokka")
    rest = await said(store)
    hits = [hit.session for hit in await store.search("zqquokka")]
    problems = await store.integrity()
    await store.close()

    assert ([2, 3, 0, 1], ["a", "b"]) == (quoting, found)
    assert (ForgetReport(), ForgetReport(messages=4, sessions=2, emptied=1)) == (other, report)
    assert {
        "a": ("And the tests?", ["And the tests?", "On Friday."]),
        "c": ("Is there a zqquokka?", ["Is there a zqquokka?", "No."]),
    } == rest
    assert (["c"], ()) == (hits, problems)


async def test_a_title_of_the_words_is_forgotten(tmp_path):
    """A title that holds all words goes with the turn, and another title stays."""
    store = SessionStore.open(tmp_path / "state")
    for session, title in (("a", "The zqquokka, Thursday"), ("b", "Planning")):
        await exchange(store, session, "When?", "Thursday, zqquokka.")
        await exchange(store, session, "Thanks", "Good.")
        await store.rename(session, title)
    await store.forget("zqquokka thursday")
    rest = await said(store)
    await store.close()

    assert {"a": "Thanks", "b": "Planning"} == {session: title for session, (title, _) in rest.items()}


async def test_no_byte_of_a_forgotten_turn_is_left(tmp_path):
    """No file holds a word of the erased turns."""
    chance = random.Random(2)
    gone = [word(chance) for _ in range(60)]
    store = SessionStore.open(tmp_path / "state")
    for at in range(0, 60, 3):
        await exchange(store, "a", f"{gone[at]} zqneedle", f"{gone[at + 1]} {gone[at + 2]} " * 30)
        await exchange(store, "a", "Something else", "Yes")
    before = left(tmp_path / "state", gone)
    report = await store.forget("zqneedle")
    after = left(tmp_path / "state", gone)
    await store.close()

    assert (ForgetReport(messages=40, sessions=1), {*gone}, set()) == (report, before, after)
