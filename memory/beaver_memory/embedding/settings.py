"""The settings in the section `memory.local.embedding` of the configuration."""

from typing import Any, Literal

import attrs

from beaver_hostspecs import Secret
from beaver_hostspecs.settings import Check, Unfit, between, setting
from beaver_toolkit.urls import is_exposed, is_here, split

PATH = "memory.local.embedding"

MOST_DIMENSIONS = 8192
"""The longest embedding."""

ProviderName = Literal["auto", "none", "static", "onnx", "openai-compatible", "openai", "voyage", "cohere", "ollama"]

REMOTE = ("openai-compatible", "openai", "voyage", "cohere", "ollama")
"""The providers over HTTP."""

_UNCHOSEN = {
    "model": "model",
    "dimensions": "dimensions",
    "base_url": "baseUrl",
    "api_key_env": "apiKeyEnv",
    "api_key": "apiKey",
    "query_prefix": "queryPrefix",
    "passage_prefix": "passagePrefix",
}
"""Settings that require a chosen provider."""

_LONGEST_PREFIX = 1000

_not_blank = Check(
    wanted="must not be blank", fits=lambda value: isinstance(value, str) and bool(value.strip()),
    keywords={"minLength": 1},
)  # fmt: skip
_no_blank_secret = Check(wanted="must not be blank", fits=lambda value: bool(value.reveal().strip()))
_url = Check(
    wanted="must be an http or https address without user, query or fragment",
    fits=lambda value: isinstance(value, str) and split(value) is not None,
)
_whole = Check(wanted="must be a whole number", fits=lambda value: isinstance(value, int))
_short = Check(
    wanted=f"must have at most {_LONGEST_PREFIX} characters", fits=lambda value: len(value) <= _LONGEST_PREFIX,
    keywords={"maxLength": _LONGEST_PREFIX},
)  # fmt: skip


def _count(low: int, high: int) -> list[Check]:
    return [_whole, between(low, high)]


@attrs.frozen(kw_only=True)
class EmbeddingSettings:
    """The settings of the embedder; camelCase in the file."""

    provider: ProviderName = setting(
        default="auto",
        help=(
            "what computes embeddings; `auto` takes an installed model, else the static one if its package is"
            " installed, else none"
        ),
    )
    model: str | None = setting(default=None, help="the model, by the provider's name for it", validator=_not_blank)
    dimensions: int | None = setting(
        default=None, help="the length of the model's vectors", validator=_count(1, MOST_DIMENSIONS)
    )
    base_url: str | None = setting(
        default=None, help="the address of the provider, if it is not the default one", validator=[_not_blank, _url]
    )
    api_key_env: str | None = setting(
        default=None, help="the name of the environment variable that holds the credential", validator=_not_blank
    )
    api_key: Secret | None = setting(
        default=None, help="the credential itself, in place of apiKeyEnv; a secret", validator=_no_blank_secret
    )
    allow_insecure_http: bool = setting(
        default=False,
        help="whether a credential may be sent by plain http to another machine, where others can read it",
    )
    timeout_seconds: float = setting(
        default=5.0, help="the most seconds that a request may take, with its retries", validator=between(0.05, 600)
    )
    batch_size: int | None = setting(
        default=None, help="the most texts of one request, within the limit of the provider",
        validator=_count(1, 2048),
    )  # fmt: skip
    query_prefix: str | None = setting(
        default=None, help="the text put before a query, if not the default of the model", validator=_short
    )
    passage_prefix: str | None = setting(
        default=None, help="the text put before a passage, if not the default of the model", validator=_short
    )
    threads: int = setting(
        default=1, help="how many threads a model on this machine may use for one text", validator=_count(1, 64)
    )

    def __attrs_post_init__(self) -> None:
        """Reject contradictory settings."""
        if self.provider in {"auto", "none"}:
            self._check_nothing_chosen()
        elif self.provider in REMOTE:
            self._check_remote()
        elif self._given("base_url", "api_key_env", "api_key"):
            raise Unfit(
                f"`provider` is `{self.provider}`, which needs no `baseUrl`, `apiKeyEnv` or `apiKey`; remove it"
            )

    def _check_nothing_chosen(self) -> None:
        if given := self._given(*_UNCHOSEN):
            raise Unfit(
                f"`{given[0]}` has no effect while `provider` is `{self.provider}`; name a provider, or remove it"
            )

    def _check_remote(self) -> None:
        missing = [name for name in ("model", "dimensions") if getattr(self, name) is None]
        if missing:
            raise Unfit(f"`provider` is `{self.provider}`, which needs `{missing[0]}`; set it")
        if self.provider == "openai-compatible" and self.base_url is None:
            raise Unfit("`provider` is `openai-compatible`, which needs `baseUrl`; set it")
        if self.api_key is not None and self.api_key_env is not None:
            raise Unfit("`apiKey` and `apiKeyEnv` are both given; remove one of them")
        self._check_key()

    def _check_key(self) -> None:
        keyed = self.api_key is not None or self.api_key_env is not None
        url = self.base_url
        if self.provider == "openai-compatible" and not keyed and not is_here(str(url)):
            raise Unfit("`provider` is `openai-compatible` on another machine, which needs `apiKeyEnv`; set it")
        sends_key = keyed or self.provider in {"openai", "voyage", "cohere"}
        if sends_key and url is not None and is_exposed(url) and not self.allow_insecure_http:
            raise Unfit(
                "`baseUrl` is plain http to another machine, so others can read the credential on the way; use https,"
                " or"
                " set `allowInsecureHttp` to true"
            )

    def _given(self, *names: str) -> list[Any]:
        return [_UNCHOSEN[name] for name in names if getattr(self, name) is not None]
