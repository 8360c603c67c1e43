"""Opens the engine of a memory: its embedders and its stores. Blocking."""

import contextlib
from collections.abc import Mapping

import attrs

from beaver_memory.embedding.protocol import Embedder, with_tokens
from beaver_memory.engine import MemoryEngine
from beaver_memory.reranker import NO_TOKENS
from beaver_memory.runtime.embedders import Embedders, make_embedders
from beaver_memory.runtime.profile import Location, Profile, RuntimeServices
from beaver_memory.runtime.stores import open_stores
from beaver_memory.runtime.troubles import EMBEDDER, RERANKER
from beaver_toolkit.workers import THREADS


@attrs.frozen(kw_only=True)
class OpenEngine:
    """An open engine.

    Attributes:
        engine: the engine; `close` closes its store and its embedders.
        embedder: the configured embedder, if it is available.
        lacks: for each service that opening provides, why it is missing; empty if it is there.
    """

    engine: MemoryEngine
    embedder: Embedder | None
    lacks: Mapping[str, str]


def open_engine(profile: Profile, location: Location, services: RuntimeServices) -> OpenEngine:
    """Open the engine that a profile describes.

    If the embedder is unavailable, the report says so, and the engine searches by words alone.

    Raises:
        StoreError: the database cannot be used.
        ConfigurationError: the settings of the embedder do not fit.
    """
    services.trace("initializing_memory_store", given=location.is_given)
    embedders = make_embedders(
        profile.embedding,
        location.state_folder,
        services.environment,
        services.trace,
        model_folder=location.model_folder,
    )
    _tell(embedders, services)
    if profile.reranker == "tokens" and with_tokens(embedders.current) is None:
        _tell_of_no_tokens(embedders, services)
    with contextlib.ExitStack() as opened:
        for each in (embedders.current, embedders.previous):
            if each is not None:
                opened.callback(each.close)
        stores = open_stores(profile, location, services)
        opened.callback(stores.store.close)
        engine = MemoryEngine(
            stores.store,
            personal=stores.personal,
            embedder=embedders.current,
            previous=embedders.previous,
            at_once=THREADS // 2,
            nearest=stores.nearest,
            indexes=stores.indexes,
            reach=location.reach,
            reranker=profile.reranker,
            clock=services.clock,
            trace=services.trace,
        )
        # From here on the engine closes them.
        opened.pop_all()
    return OpenEngine(engine=engine, embedder=embedders.current, lacks={"embedder": _lack(embedders)})


def _lack(embedders: Embedders) -> str:
    """Return why there is no embedder, or an empty text."""
    if embedders.trouble is not None:
        return f"it needs an embedder, and the configured one is unavailable ({embedders.trouble.category})"
    return "it needs an embedder, and none is configured" if embedders.current is None else ""


def _tell(embedders: Embedders, services: RuntimeServices) -> None:
    """Report the embedder, or why it is unavailable."""
    error = embedders.trouble
    if error is not None:
        facts = {"provider": error.provider, "category": error.category, "variable": error.variable}
        services.report.event("memory_embedder_unavailable", **facts)
        services.troubles.began(EMBEDDER, error.category, services.report)
    identity = None if embedders.current is None else embedders.current.identity
    services.trace(
        "memory_embedding_configured",
        provider=identity.provider if identity else "none",
        model=identity.model if identity else None,
        dimensions=identity.dimensions if identity else None,
        changed=embedders.previous is not None,
    )


def _tell_of_no_tokens(embedders: Embedders, services: RuntimeServices) -> None:
    """Report that memories are not ranked again by their tokens."""
    provider = "none" if embedders.current is None else embedders.current.identity.provider
    facts = {"reranker": "tokens", "provider": provider, "category": NO_TOKENS}
    services.report.event("memory_reranker_unavailable", **facts)
    services.troubles.began(RERANKER, NO_TOKENS, services.report)
