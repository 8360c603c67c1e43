"""The settings of `memory.local.embedding`, and the embedder that they select."""

import sys

import attrs
import pytest

from beaver_hostspecs import ConfigurationError, Secret
from beaver_hostspecs.settings import HELP, Unfit
from beaver_hostspecs.testing import make_canary
from beaver_memory.embedding import factory, static
from beaver_memory.embedding.errors import EmbedderMissing
from beaver_memory.embedding.factory import make_embedder
from beaver_memory.embedding.settings import EmbeddingSettings

KEY = Secret("sk-0123456789")
OPENAI = {"provider": "openai", "model": "m", "dimensions": 8}
COMPATIBLE = {
    "provider": "openai-compatible", "model": "m", "dimensions": 8, "base_url": "https://h/v1", "api_key_env": "K",
}  # fmt: skip
LOCAL = {"provider": "openai-compatible", "model": "m", "dimensions": 8, "base_url": "http://localhost:1/v1"}


@pytest.mark.shows("002-107", "003-133")
def test_the_defaults():
    """The default provider is `auto`, with one thread and a timeout of five seconds."""
    assert {
        "provider": "auto", "model": None, "dimensions": None, "base_url": None, "api_key_env": None, "api_key": None,
        "allow_insecure_http": False, "timeout_seconds": 5.0, "batch_size": None, "query_prefix": None,
        "passage_prefix": None, "threads": 1,
    } == attrs.asdict(EmbeddingSettings())  # fmt: skip


def test_every_setting_is_explained():
    """Editors show a line for each."""
    assert [] == [each.name for each in attrs.fields(EmbeddingSettings) if not each.metadata[HELP]]


@pytest.mark.shows("002-106", "002-116", "002-117", "002-118")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"dimensions": 0}, "must be between 1 and 8192"),
        ({"dimensions": 8193}, "must be between 1 and 8192"),
        ({"dimensions": 1.5}, "must be a whole number"),
        ({"batch_size": 0}, "must be between 1 and 2048"),
        ({"batch_size": 2049}, "must be between 1 and 2048"),
        ({"timeout_seconds": 0}, "must be between 0.05 and 600"),
        ({"timeout_seconds": float("nan")}, "must be between 0.05 and 600"),
        ({"threads": 0}, "must be between 1 and 64"),
        ({"model": " "}, "must not be blank"),
        ({"api_key_env": ""}, "must not be blank"),
        ({"api_key": Secret(" ")}, "must not be blank"),
        ({"query_prefix": "x" * 1001}, "must have at most 1000 characters"),
        ({"base_url": "ftp://h"}, "must be an http or https address without user, query or fragment"),
        ({"base_url": "https://u:p@h"}, "must be an http or https address without user, query or fragment"),
        ({"model": "m"}, "`model` has no effect while `provider` is `auto`; name a provider, or remove it"),
        (
            {"provider": "none", "api_key_env": "K"},
            "`apiKeyEnv` has no effect while `provider` is `none`; name a provider, or remove it",
        ),
        (
            {"provider": "onnx", "api_key_env": "K"},
            "`provider` is `onnx`, which needs no `baseUrl`, `apiKeyEnv` or `apiKey`; remove it",
        ),
        ({"provider": "openai", "dimensions": 8}, "`provider` is `openai`, which needs `model`; set it"),
        ({"provider": "voyage", "model": "m"}, "`provider` is `voyage`, which needs `dimensions`; set it"),
        (
            {"provider": "openai-compatible", "model": "m", "dimensions": 8},
            "`provider` is `openai-compatible`, which needs `baseUrl`; set it",
        ),
        (
            COMPATIBLE | {"api_key_env": None},
            "`provider` is `openai-compatible` on another machine, which needs `apiKeyEnv`; set it",
        ),
        (COMPATIBLE | {"api_key": KEY}, "`apiKey` and `apiKeyEnv` are both given; remove one of them"),
        (
            COMPATIBLE | {"base_url": "http://h/v1"},
            (
                "`baseUrl` is plain http to another machine, so others can read the credential on the way; use https, or"
                " set `allowInsecureHttp` to true"
            ),
        ),
    ],
)
def test_what_cannot_work_is_refused(given, problem):
    """Each bound and each contradiction has a sentence that holds no value."""
    with pytest.raises(Unfit) as caught:
        EmbeddingSettings(**given)
    assert problem == str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"provider": "none"},
        {"provider": "onnx", "model": "e5-small", "dimensions": 384},
        {"provider": "static", "query_prefix": ""},
        OPENAI,
        COMPATIBLE,
        LOCAL,
        COMPATIBLE | {"base_url": "http://h/v1", "allow_insecure_http": True},
        {"provider": "ollama", "model": "m", "dimensions": 8, "base_url": "http://h:11434"},
        {"dimensions": None, "batch_size": 1, "timeout_seconds": 600, "threads": 64},
    ],
)
def test_what_can_work_is_taken(given):
    """Each provider and every bound is accepted."""
    assert EmbeddingSettings(**given)


def make(tmp_path, environment=(), **given):
    return make_embedder(EmbeddingSettings(**given), state_folder=tmp_path, environment=dict(environment))


@pytest.mark.shows("002-003", "002-018", "002-062", "003-094")
def test_none_is_nobody(tmp_path):
    """The provider `none` gives no embedder."""
    assert None is make(tmp_path, provider="none")


@pytest.mark.shows("002-018", "002-103", "002-104", "002-105", "002-119")
@pytest.mark.parametrize(
    ("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("voyage", "VOYAGE_API_KEY"), ("cohere", "COHERE_API_KEY")]
)
def test_a_missing_credential_is_named(provider, variable, tmp_path):
    """The variable that is not set is named; set, the embedder is made without a request."""
    for more in ({}, {"api_key_env": variable}):
        with pytest.raises(EmbedderMissing) as caught:
            make(tmp_path, provider=provider, model="m", dimensions=8, **more)
        assert ("missing_key", f"{variable} is not set. Set it to the credential of {provider}.") == (
            caught.value.category,
            str(caught.value),
        )
    embedder = make(tmp_path, {variable: " key \n"}, provider=provider, model="m", dimensions=8)
    embedder.close()
    assert (provider, "m", 8) == (
        embedder.identity.provider, embedder.identity.model, embedder.identity.dimensions,
    )  # fmt: skip


def test_a_variable_of_ones_own_is_not_shown(tmp_path):
    """The error for an unset variable does not repeat its configured name, which may be the key itself."""
    canary = make_canary()
    with pytest.raises(EmbedderMissing) as caught:
        make(tmp_path, **OPENAI, api_key_env=canary.reveal())
    canary.assert_clean(str(caught.value))
    assert "The variable of memory.local.embedding.apiKeyEnv is not set." in str(caught.value)


@pytest.mark.parametrize("key", ["a key of\ntwo lines", "half \ud800 a key", "a key with a bell\x07"])
def test_a_credential_that_cannot_be_sent_is_refused(key, tmp_path):
    """What would break the header is refused before any request."""
    with pytest.raises(ConfigurationError, match="holds characters that no credential has"):
        make(tmp_path, {"OPENAI_API_KEY": key}, **OPENAI)


def test_prefixes_can_be_chosen(tmp_path):
    """A model of the user's own gets the prefixes that it wants, and they are part of its identity."""
    plain, prefixed = make(tmp_path, **LOCAL), make(tmp_path, **LOCAL, query_prefix="search_query: ")
    assert ("", "search_query: ") == (plain.identity.query_prefix, prefixed.identity.query_prefix)
    assert plain.identity.key != prefixed.identity.key
    plain.close()
    prefixed.close()


@pytest.mark.shows("003-007", "003-133")
def test_auto_takes_what_is_here(tmp_path, monkeypatch):
    """Without an installed model and without the static package there is no embedder."""
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    assert None is make(tmp_path)


@pytest.mark.shows("003-133")
def test_a_broken_model_is_not_passed_over(tmp_path):
    """A damaged model is an error and is not replaced by another model."""
    (tmp_path / "models" / factory.ONNX_MODEL).mkdir(parents=True)
    with pytest.raises(EmbedderMissing) as caught:
        make(tmp_path)
    assert (
        "The files of the embedding model e5-small are damaged: a file cannot be read (No such file or directory). Run: beaver"
        " memory embedder install e5-small"
    ) == str(caught.value)


def test_a_model_that_is_not_installed(tmp_path):
    """The error for a model that is not installed names the command that installs it."""
    with pytest.raises(EmbedderMissing) as caught:
        make(tmp_path, provider="onnx")
    assert (
        "missing_model",
        "The embedding model e5-small is not installed. Run: beaver memory embedder install e5-small",
    ) == (caught.value.category, str(caught.value))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "another"}, "memory.local.embedding.model: must be `l2_supercat_256` for the provider `static`"),
        ({"dimensions": 384}, "memory.local.embedding.dimensions: must be 256 for `l2_supercat_256`"),
    ],
)
def test_a_model_comes_as_it_is(given, said, tmp_path, monkeypatch):
    """The static provider refuses a model name or length other than its own."""
    monkeypatch.setattr(static, "_folder", lambda: tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        make(tmp_path, provider="static", **given)
    assert said == str(caught.value)


def test_http_is_an_extra(tmp_path, monkeypatch):
    """Without httpx the providers say what to install, and the others work."""
    monkeypatch.setitem(sys.modules, "httpcore", None)
    for name in ("beaver_memory.embedding.client", "beaver_toolkit.http", "beaver_toolkit.http_sync"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(EmbedderMissing) as caught:
        make(tmp_path, **LOCAL)
    assert ("missing_package", "The package httpx is not installed. Install beaver-hooks-local[http].") == (
        caught.value.category,
        str(caught.value),
    )
