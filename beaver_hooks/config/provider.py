"""The section `provider`: which language model the agent talks to."""

import re
from typing import Literal

import attrs

from beaver_hostspecs import Secret
from beaver_hostspecs.settings import Check, Unfit, between, not_empty, positive, setting
from beaver_toolkit.urls import is_exposed, split

ProviderKind = Literal["openai", "offline"]

_KEY = re.compile(r"[!-~]+")


def _is_url(url: object) -> bool:
    return isinstance(url, str) and split(url) is not None


def _is_key(key: object) -> bool:
    return isinstance(key, Secret) and _KEY.fullmatch(key.reveal()) is not None


BASE_URL = Check(
    wanted="must be an http or https URL without user name, query and fragment, its host in ASCII",
    fits=_is_url,
    keywords={"pattern": "^[hH][tT][tT][pP][sS]?://[^?#@/]+(/[^?#]*)?$"},
)
API_KEY = Check(wanted="must be printable ASCII without blanks", fits=_is_key)
"""What the address and the credential of a language model must be."""


def check_exposure(base_url: str, *, allowed: bool) -> None:
    """Refuse an address to which texts would leave this machine unencrypted, unless that is allowed."""
    if not allowed and is_exposed(base_url):
        raise Unfit("has a `baseUrl` with plain http on another machine; use https, or set `allowInsecureHttp`")


@attrs.frozen(kw_only=True)
class ProviderSettings:
    """How the agent reaches its model. Without this section the provider is offline."""

    kind: ProviderKind = setting(
        default="offline", help="openai (any OpenAI-compatible endpoint) or offline (no network, no model)"
    )
    base_url: str | None = setting(
        default=None,
        help="the address of the API, for example https://api.openai.com/v1",
        validator=BASE_URL,
    )
    model: str | None = setting(default=None, help="the model's name at the provider", validator=not_empty())
    api_key: Secret | None = setting(
        default=None,
        help='the credential, preferably as {"env": "NAME"}; local servers need none',
        validator=API_KEY,
    )
    timeout_seconds: float = setting(
        default=120.0, help="seconds that one answer may take in all, retries included", validator=positive()
    )
    max_bytes: int = setting(
        default=4 * 1024 * 1024, help="bytes that one answer may have", validator=between(1024, 2**30)
    )
    max_retries: int = setting(
        default=2, help="how often a busy provider (HTTP 429 or 503) is asked again", validator=between(0, 10)
    )
    merge_messages: bool = setting(
        default=False, help="whether adjacent messages of one role are sent as one, for servers that refuse them"
    )
    allow_insecure_http: bool = setting(
        default=False, help="whether prompts may leave this machine unencrypted, by plain http"
    )

    def __attrs_post_init__(self) -> None:
        if self.kind == "openai" and (self.base_url is None or self.model is None):
            raise Unfit("needs `baseUrl` and `model` for the kind `openai`")
        if self.base_url is not None:
            check_exposure(self.base_url, allowed=self.allow_insecure_http)


@attrs.frozen(kw_only=True)
class SmallModelSettings:
    """How the host reaches the small model. Without this section it lends none."""

    base_url: str = setting(
        help="the address of an OpenAI-compatible API, for example http://127.0.0.1:11434/v1", validator=BASE_URL
    )
    model: str = setting(help="the model's name there; a fast one is enough", validator=not_empty())
    api_key: Secret | None = setting(
        default=None, help='the credential, preferably as {"env": "NAME"}; local servers need none', validator=API_KEY
    )
    timeout_seconds: float = setting(
        default=6.0, help="seconds that one answer may take, whatever a plugin allows", validator=positive()
    )
    allow_insecure_http: bool = setting(
        default=False, help="whether texts of conversations may leave this machine unencrypted, by plain http"
    )

    def __attrs_post_init__(self) -> None:
        check_exposure(self.base_url, allowed=self.allow_insecure_http)
