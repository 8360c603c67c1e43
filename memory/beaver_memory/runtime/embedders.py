"""Makes the configured embedder, and the previous one if the settings have changed.

Vectors of different models cannot be compared: until all memories are embedded anew, queries use the previous model.
A file records the model last in use. It holds no address. An earlier model of a network provider is therefore used only
while the settings still name that provider.
"""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from beaver_hostspecs import BeaverError
from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.embedding.factory import make_embedder
from beaver_memory.embedding.protocol import Embedder, Trace
from beaver_memory.embedding.query_cache import CachedQueries
from beaver_memory.embedding.settings import REMOTE, EmbeddingSettings
from beaver_toolkit.files import replace

RECORD = "embedder.json"

LOCAL = ("static", "onnx")
"""The providers on this machine."""

_KEPT = ("provider", "model", "dimensions", "query_prefix", "passage_prefix")
"""The settings that determine the vectors. The record leaves out the address and the credential."""


@attrs.frozen(kw_only=True)
class Embedders:
    """The embedders of a memory.

    Attributes:
        current: the configured embedder, or `None` for searches by words alone.
        previous: the embedder before it, if it differs and is still available.
        trouble: why the configured embedder is unavailable.
    """

    current: Embedder | None = None
    previous: Embedder | None = None
    trouble: EmbeddingError | None = None


def make_embedders(
    settings: EmbeddingSettings,
    state_folder: Path | None,
    environment: Mapping[str, str],
    trace: Trace,
    *,
    model_folder: Path,
) -> Embedders:
    """Return the embedders; neither network nor model is touched.

    Args:
        settings: of the embedder.
        state_folder: holds the record of the model last in use; `None` for no record.
        environment: holds the credentials.
        trace: called at every step of the embedders.
        model_folder: holds the installed models.

    Raises:
        ConfigurationError: the settings do not fit.
    """
    try:
        current = make_embedder(settings, state_folder=model_folder, environment=environment, trace=trace)
    except EmbeddingError as error:
        return Embedders(trouble=error)
    if current is None:
        return Embedders()
    previous = None if state_folder is None else _previous(settings, state_folder, model_folder, environment, trace)
    if previous is not None and previous.identity.key == current.identity.key:
        previous.close()
        previous = None
    kept = None if previous is None else CachedQueries(previous)
    return Embedders(current=CachedQueries(current), previous=kept)


def remember(settings: EmbeddingSettings, embedder: Embedder, state_folder: Path | None) -> None:
    """Record the embedder, once all memories are embedded with it.

    Raises:
        OSError: the record cannot be written.
    """
    if state_folder is None:
        return
    body = {name: getattr(settings, name) for name in _KEPT}
    # The model that `auto` has selected, because it may select another one next time.
    body |= {name: getattr(embedder.identity, name) for name in ("provider", "model", "dimensions")}
    path = state_folder / RECORD
    text = json.dumps(body, sort_keys=True)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text("utf-8") == text:
            return
    replace(path, text.encode("utf-8"))


def _previous(
    settings: EmbeddingSettings, state_folder: Path, model_folder: Path, environment: Mapping[str, str], trace: Trace
) -> Embedder | None:
    """Return the recorded embedder, if available; without it, searches use words alone until all is embedded."""
    try:
        known = json.loads((state_folder / RECORD).read_text("utf-8"))
        before = _before(settings, {name: known[name] for name in _KEPT if known.get(name) is not None})
        return make_embedder(before, state_folder=model_folder, environment=environment, trace=trace)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError, BeaverError) as error:
        trace("previous_embedder_unavailable", error=type(error).__name__)
        return None


def _before(settings: EmbeddingSettings, known: Mapping[str, Any]) -> EmbeddingSettings:
    """Return the settings that the record describes.

    Raises:
        ValueError: the record names no provider, or a remote one that the settings do not name.
    """
    if known.get("provider") not in (*LOCAL, settings.provider):
        raise ValueError("it was another provider")
    if known["provider"] in REMOTE:
        return attrs.evolve(settings, **known)
    return EmbeddingSettings(**known)
