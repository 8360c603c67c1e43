"""A deleted session leaves none of its words in the files."""

import random
import string

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
