"""Flipped bits in `sessions.db`: a damaged message is never shown as true, is named, and takes no other one with it."""

import asyncio
import contextlib
import random

import apsw
import pytest
from selection import campaign

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.cli.checks import databases
from beaver_hostspecs import Message

COUNT = 10


async def filled(folder):
    """Store messages of two sessions, with a value of its own in each column."""
    store = SessionStore.open(folder)
    for session in ("one", "two"):
        await store.ensure(session)
        for number in range(COUNT):
            place = f"{session}{number:02}"
            said = Message(role="user", text=f"price {place} is 1000", id=f"id-{place}", speaker=f"speaker-{place}")
            await store.append_exchange(session, [said, Message(role="assistant", text=f"noted {place}")])
    await store.close()


async def shown(folder):
    """Return the messages that are shown, resumed and found, in this order."""
    store = SessionStore.open(folder)
    try:
        return {
            *[each for name in ("one", "two") for each in (await store.show(name)).messages],
            *[each for name in ("one", "two") for each in (await store.resume(name, limit=99)).history],
        }, {each.snippet for each in await store.search("price", 99)}
    finally:
        await store.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of state with closed sessions, and the messages and snippets that it shows."""
    folder = tmp_path_factory.mktemp("sessions") / "state"
    asyncio.run(filled(folder))
    return folder, asyncio.run(shown(folder))


@pytest.mark.parametrize(("seed", "count"), [(1, 25), *campaign((2, 400))])
def test_flipped_bits(whole, tmp_path, caplog, seed, count):
    """Bits flipped in messages show nothing wrong, and each missing message is in the log and found by the doctor."""
    folder, (messages, snippets) = whole
    chance, results = random.Random(seed), []
    content = (folder / "sessions.db").read_bytes()
    places = [at for at in range(len(content)) if content[at : at + 6] in {b"price ", b"noted ", b"id-one", b"speake"}]
    for _ in range(count):
        damaged = bytearray(content)
        damaged[chance.choice(places) + chance.randrange(14)] ^= 1 << chance.randrange(8)
        (tmp_path / "sessions.db").write_bytes(damaged)
        caplog.clear()
        with contextlib.suppress(StorageError):
            now, found = asyncio.run(shown(tmp_path))
            named = "message_damaged" in caplog.text, databases.sessions(tmp_path).level
            results.append((now - messages, found - snippets, len(messages - now), named))
    assert len(results) > 0.9 * count
    assert [] == [each for each in results if each[0] or each[1]]
    # The other flips are in the title of a session, which has no checksum, or in the index of words.
    assert {(1, (True, "problem"))} == {each[2:] for each in results if each[2]}
    assert sum(each[2] for each in results) > 0.4 * count


def test_a_vanished_message(whole, tmp_path, caplog):
    """A session that lost a message is in the log when it is shown, and the doctor names it."""
    (tmp_path / "sessions.db").write_bytes((whole[0] / "sessions.db").read_bytes())
    with contextlib.closing(apsw.Connection(str(tmp_path / "sessions.db"))) as connection:
        connection.execute("DELETE FROM messages WHERE number = 7")
    now, _ = asyncio.run(shown(tmp_path))

    assert (1, True) == (len(whole[1][0] - now), "session_damaged number=1" in caplog.text)
    assert "session 'one' has 19 of 20 messages" in databases.sessions(tmp_path).text
