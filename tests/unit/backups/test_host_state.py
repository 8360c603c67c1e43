"""Conversations in a backup, merged into others."""

import pytest

from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.backups.host_state import HostState
from beaver_hostspecs import Message, RestoreRequest

SAID = "The password is hunter2tulip."
MASKED = "The password is [redacted: password]."


async def stored(folder, session, *prompts, **settings):
    store = SessionStore.open(folder, **settings)
    await store.ensure(session)
    for prompt in prompts:
        await store.append_exchange(session, [Message(role="user", text=prompt)])
    texts = [each.text for each in await store.history(session)]
    await store.close()
    return texts


@pytest.mark.parametrize(("kept", "expected"), [(False, [MASKED, "More."]), (True, [SAID, "More."])])
async def test_a_merge_masks_the_secrets_of_a_backup(tmp_path, kept, expected):
    """A merge masks secrets in what it adds, unless the settings keep them; the same session with a mask is no conflict."""
    await stored(tmp_path / "old", "s", SAID, "More.", store_secrets=True)
    await stored(tmp_path / "new", "other", "Hello.")
    HostState(folder=tmp_path / "old", environment={}).write(tmp_path / "copy")
    request = RestoreRequest(folder=tmp_path / "copy", merge=True)
    state = HostState(folder=tmp_path / "new", environment={}, store_secrets=kept)
    added = state.restore(request)
    there = state.restore(request)
    texts = await stored(tmp_path / "new", "s")
    await stored(tmp_path / "new", "s", "And more.")
    longer = state.restore(request)

    assert expected == texts
    assert [1, 0, 0] == [each.added["sessions"] for each in (added, there, longer)]
    assert [0, 1, 1] == [each.present["sessions"] for each in (added, there, longer)]
    assert [(), (), ()] == [each.conflicts for each in (added, there, longer)]
