"""Threads ask the small model of the host, within the time that the plugin has."""

import asyncio

import pytest

from beaver_hooks_local.capture.small_model import MOST_TOKENS, SmallModelAsker


class Model:
    """A small model that answers, unless it hangs."""

    def __init__(self, *, hangs=False):
        self.hangs, self.asked = hangs, []

    async def complete(self, prompt, *, max_tokens):
        self.asked.append((prompt, max_tokens))
        if self.hangs:
            await asyncio.Event().wait()
        return "Noted."


@pytest.mark.parametrize(("hangs", "seconds", "ended", "asked"), [(True, 0.02, False, 1), (False, 20.0, True, 0)])
async def test_no_answer_in_time(hangs, seconds, ended, asked):
    """A model that hangs is given up, and a model is not asked once the time of closing is over."""
    model = Model(hangs=hangs)
    ask = SmallModelAsker(model, asyncio.get_running_loop(), seconds)
    if ended:
        ask.end_in(0)
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(ask, "Extract.")
    assert len(model.asked) == asked


async def test_an_answer_while_the_plugin_closes():
    """An answer that comes before the end of closing is used."""
    model = Model()
    ask = SmallModelAsker(model, asyncio.get_running_loop(), 20.0)
    ask.end_in(20.0)
    assert await asyncio.to_thread(ask, "Extract.") == "Noted."
    assert model.asked == [("Extract.", MOST_TOKENS)]
