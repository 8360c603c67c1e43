"""Makes the embedder of the settings, and the one before it where those have changed.

The vectors of another model cannot be compared with: until all is embedded anew, queries go to the model before. So
that it is known then, what was chosen is kept in a file. That file names a model and nobody to ask: a provider over the
network is asked for an earlier model only where the settings name that provider still.
"""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from beaver_hostspecs import BeaverError
from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.embedding.factory import make_embedder, model_folder
from beaver_memory.embedding.protocol import Embedder, Trace
from beaver_memory.embedding.query_cache import CachedQueries
from beaver_memory.embedding.settings import REMOTE, EmbeddingSettings

RECORD = "embedder.json"

LOCAL = ("static", "onnx", "fastembed")
"""The providers on this machine."""

_KEPT = ("provider", "model", "dimensions", "query_prefix", "passage_prefix")
"""What of the settings says which vectors come out. Whom to ask and with which credential stays with the settings."""


@attrs.frozen(kw_only=True)
class Embedders:
    """What a memory embeds with.

    Attributes:
        current: what the settings ask for, or `None` for finding by words alone.
        previous: what was asked for before, where that was another one and can still be had.
        trouble: why what is asked for cannot be had.
    """

    current: Embedder | None = None
    previous: Embedder | None = None
    trouble: EmbeddingError | None = None


def make_embedders(
    settings: EmbeddingSettings,
    state_folder: Path,
    environment: Mapping[str, str],
    trace: Trace,
    *,
    folders: Sequence[Path] = (),
) -> Embedders:
    """Return the embedders; neither network nor model is touched.

    Args:
        settings: what is asked for.
        state_folder: where what was chosen is kept.
        environment: where credentials are.
        trace: is told what the embedders do.
        folders: where models are looked for, in this order; `state_folder` unless given.

    Raises:
        ConfigurationError: the settings do not fit.
    """
    try:
        current = _made(settings, folders or (state_folder,), environment, trace)
    except EmbeddingError as error:
        return Embedders(trouble=error)
    if current is None:
        return Embedders()
    previous = _previous(settings, state_folder, folders or (state_folder,), environment, trace)
    if previous is not None and previous.identity.key == current.identity.key:
        previous.close()
        previous = None
    kept = None if previous is None else CachedQueries(previous)
    return Embedders(current=CachedQueries(current), previous=kept)


def remember(settings: EmbeddingSettings, embedder: Embedder, state_folder: Path) -> None:
    """Keep what was chosen, once everything is embedded with it.

    Raises:
        OSError: it cannot be kept.
    """
    body = {name: getattr(settings, name) for name in _KEPT}
    # What `auto` came to, because another time it may come to something else.
    body |= {name: getattr(embedder.identity, name) for name in ("provider", "model", "dimensions")}
    path = state_folder / RECORD
    text = json.dumps(body, sort_keys=True)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text("utf-8") == text:
            return
    new = path.with_name(f".{RECORD}.{os.getpid()}.tmp")
    try:
        new.touch(mode=0o600)
        new.write_text(text, "utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _previous(
    settings: EmbeddingSettings,
    state_folder: Path,
    folders: Sequence[Path],
    environment: Mapping[str, str],
    trace: Trace,
) -> Embedder | None:
    """Return what was chosen before, as far as it can be had: without it words alone find until all is embedded."""
    try:
        known = json.loads((state_folder / RECORD).read_text("utf-8"))
        before = _before(settings, {name: known[name] for name in _KEPT if known.get(name) is not None})
        return _made(before, folders, environment, trace)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError, BeaverError) as error:
        trace("previous_embedder_unavailable", error=type(error).__name__)
        return None


def _made(
    settings: EmbeddingSettings, folders: Sequence[Path], environment: Mapping[str, str], trace: Trace
) -> Embedder | None:
    folder = model_folder(settings, folders)
    return make_embedder(settings, state_folder=folder, environment=environment, trace=trace)


def _before(settings: EmbeddingSettings, known: Mapping[str, Any]) -> EmbeddingSettings:
    """Return the settings that the record stands for.

    Raises:
        ValueError: there are none, or they would ask somebody whom the settings do not name.
    """
    if known.get("provider") not in (*LOCAL, settings.provider):
        raise ValueError("it was another provider")
    if known["provider"] in REMOTE:
        return attrs.evolve(settings, **known)
    return EmbeddingSettings(**known)
