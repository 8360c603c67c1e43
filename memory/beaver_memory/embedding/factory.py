"""Makes the embedder of the settings. The packages of a provider are imported only when it is chosen."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from beaver_hostspecs import ConfigurationError, Secret
from beaver_memory.embedding import onnx, static
from beaver_memory.embedding.catalog import KNOWN, KnownModel
from beaver_memory.embedding.errors import failure
from beaver_memory.embedding.models import check_model, is_there
from beaver_memory.embedding.protocol import Embedder, Encoder, Identity, Trace, silent
from beaver_memory.embedding.settings import PATH, EmbeddingSettings
from beaver_memory.embedding.vector_checks import CheckedEmbedder
from beaver_memory.embedding.wire import WIRES

ONNX_MODEL = "e5-small"
"""The default model."""

_VARIABLE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
"""Names of variables that messages may show: the user may have put the key itself in place of a name."""


def make_embedder(
    settings: EmbeddingSettings,
    *,
    state_folder: Path,
    environment: Mapping[str, str],
    trace: Trace = silent,
    models: Mapping[str, KnownModel] = KNOWN,
) -> Embedder | None:
    """Return the embedder of the settings, or `None` if recall is by words alone.

    Does not touch the network or load a model: that happens on first use.

    Args:
        settings: the settings of embedding.
        state_folder: the folder with installed models.
        environment: the variables with credentials.
        trace: receives events of the embedder, in counts and lengths.
        models: the models that can be installed.

    Raises:
        EmbedderMissing: the model or a package is missing or incomplete, or the credential is not set.
        ConfigurationError: the settings do not fit the model, or hold a credential that cannot be sent.
    """
    provider = _chosen(settings, state_folder)
    if provider == "none":
        return None
    made = {
        onnx.PROVIDER: lambda: _onnx(settings, state_folder, models),
        static.PROVIDER: lambda: _static(settings),
    }
    encoder, identity = made.get(provider, lambda: _remote(provider, settings, environment, trace))()
    return CheckedEmbedder(encoder, _prefixed(identity, settings), trace=trace)


def onnx_identity(known: KnownModel) -> Identity:
    """Return the identity of an installed model."""
    return Identity(
        provider=onnx.PROVIDER,
        model=known.name,
        dimensions=known.dimensions,
        query_prefix=known.query_prefix,
        passage_prefix=known.passage_prefix,
    )


def _chosen(settings: EmbeddingSettings, state_folder: Path) -> str:
    """Return the provider; for `auto` the best one that is installed.

    An installed model that cannot be used is not skipped: another one would embed everything anew.
    """
    if settings.provider != "auto":
        return settings.provider
    if is_there(ONNX_MODEL, state_folder):
        return onnx.PROVIDER
    return static.PROVIDER if static.is_installed() else "none"


def _onnx(
    settings: EmbeddingSettings, state_folder: Path, models: Mapping[str, KnownModel]
) -> tuple[Encoder, Identity]:
    installed = check_model(settings.model or ONNX_MODEL, state_folder, models=models)
    identity = _fitting(settings, onnx_identity(installed.known))
    return onnx.OnnxEncoder(installed, threads=settings.threads), identity


def _static(settings: EmbeddingSettings) -> tuple[Encoder, Identity]:
    identity = Identity(provider=static.PROVIDER, model=static.MODEL, dimensions=static.DIMENSIONS)
    return static.StaticEncoder(), _fitting(settings, identity)


def _fitting(settings: EmbeddingSettings, identity: Identity) -> Identity:
    """Return the identity of a model with fixed properties.

    Raises:
        ConfigurationError: the settings describe another model.
    """
    if settings.model not in {None, identity.model}:
        raise ConfigurationError(f"{PATH}.model", f"must be `{identity.model}` for the provider `{identity.provider}`")
    if settings.dimensions not in {None, identity.dimensions}:
        raise ConfigurationError(f"{PATH}.dimensions", f"must be {identity.dimensions} for `{identity.model}`")
    return identity


def _remote(
    provider: str, settings: EmbeddingSettings, environment: Mapping[str, str], trace: Trace
) -> tuple[Encoder, Identity]:
    wire = WIRES[provider]
    key = _key(provider, settings, environment)
    try:
        client = import_module("beaver_memory.embedding.client")
    except ModuleNotFoundError:
        raise failure(
            provider, "missing_package", "The package httpx is not installed", "Install beaver-hooks-local[http]."
        ) from None
    endpoint = client.Endpoint(
        provider=provider,
        wire=wire,
        base_url=settings.base_url or wire.base_url,
        key=key,
        model=settings.model,
        dimensions=settings.dimensions,
        seconds=settings.timeout_seconds,
        batch=min(settings.batch_size or wire.batch, wire.most),
    )
    identity = Identity(provider=provider, model=str(settings.model), dimensions=int(settings.dimensions or 0))
    encoder: Encoder = client.HttpEncoder(endpoint, trace=trace)
    return encoder, identity


def _key(provider: str, settings: EmbeddingSettings, environment: Mapping[str, str]) -> Secret | None:
    """Return the credential: from the settings, from the variable that they name, or from the usual one.

    Raises:
        EmbedderMissing: a required credential is missing.
        ConfigurationError: the credential cannot be sent.
    """
    usual = WIRES[provider].key_variable
    name = settings.api_key_env or ("" if settings.api_key is not None else usual)
    if not name:
        return _sendable(settings.api_key, "apiKey")
    value = environment.get(name, "").strip()
    if not value:
        variable = name if _VARIABLE.fullmatch(name) else None
        problem = f"{variable or f'The variable of {PATH}.apiKeyEnv'} is not set"
        error = failure(provider, "missing_key", problem, f"Set it to the credential of {provider}.")
        error.variable = variable
        raise error
    return _sendable(Secret(value), "apiKeyEnv")


def _sendable(key: Secret | None, field: str) -> Secret | None:
    value = "" if key is None else key.reveal().strip()
    # Other characters end the header of the credential, and the library's error about them would show it.
    if not value.isprintable():
        raise ConfigurationError(f"{PATH}.{field}", "holds characters that no credential has; set it again")
    return Secret(value) if value else None


def _prefixed(identity: Identity, settings: EmbeddingSettings) -> Identity:
    """Return the identity with the prefixes of the settings, if they have any."""
    query, passage = settings.query_prefix, settings.passage_prefix
    return Identity(
        provider=identity.provider,
        model=identity.model,
        dimensions=identity.dimensions,
        query_prefix=identity.query_prefix if query is None else query,
        passage_prefix=identity.passage_prefix if passage is None else passage,
    )
