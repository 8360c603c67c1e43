"""Searches by the tool and the command, with an embedder for which every memory is near something."""

import numpy as np
import pytest

from beaver_hooks_local.command_handlers import RUNS
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.settings import LocalSettings
from beaver_hooks_local.tools import search_tools
from beaver_hostspecs import CommandContext
from beaver_hostspecs.testing import RecordingReport, make_turn
from beaver_memory.embedding import static
from beaver_memory.embedding.protocol import Identity
from beaver_memory.records import NewMemory


class Tea:
    """An embedder: texts are about tea, or they are not."""

    identity = Identity(provider=static.PROVIDER, model=static.MODEL, dimensions=2)

    def embed_query(self, text):
        return self.embed_passages([text])[0]

    def embed_passages(self, texts):
        return np.array([[1, 0] if "tea" in text or "drink" in text else [0, 1] for text in texts], "f4")

    def close(self):
        """Nothing is open."""


@pytest.fixture
def memory(make_operations):
    operations = make_operations(embedder=Tea())
    operations.engine.add([NewMemory(title="Ann likes tea."), NewMemory(title="She drinks it green, tea that is.")])
    operations.engine.embed()
    return LocalMemory(operations, LocalSettings(enabled=True))


def by_tool(memory, **arguments):
    answer = search_tools.search(memory, arguments, make_turn(trust="full"), RecordingReport())
    return [row["id"] for row in answer["results"]]


def by_command(memory, *words):
    return RUNS["search"](memory, words, CommandContext(trust="full"), RecordingReport())


def test_what_fits_in_nothing_is_not_found(memory):
    """Neither the tool nor the command shows a memory that fits the query in nothing; both show similar meanings."""
    assert ([], "No memory was found.") == (by_tool(memory, query="zebra"), by_command(memory, "zebra"))
    assert ([1, 2], 2) == (sorted(by_tool(memory, query="drink")), len(by_command(memory, "drink").splitlines()))


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": " "}])
def test_the_newest_without_words(memory, arguments):
    """A search for nothing shows the newest, which score nothing."""
    assert [1, 2] == sorted(by_tool(memory, **arguments))
