"""The settings in the section `memory.gateway` of the configuration."""

from pathlib import Path
from typing import Literal

import attrs

from beaver_hostspecs import Secret
from beaver_hostspecs.settings import Check, Unfit, between, distinct, not_empty, positive, setting
from beaver_toolkit.urls import is_exposed, split

PATH = "memory.gateway"

MiB = 1024 * 1024

SearchScope = Literal["current_chat", "resources", "all_user_memory"]

REQUIRED = {"base_url": "baseUrl", "user_id": "userId", "user_key": "userKey"}
"""The fields without which there is no gateway, with their names in the file."""

_not_blank = Check(
    wanted="must not be blank", fits=lambda value: isinstance(value, str) and bool(value.strip()),
    keywords={"minLength": 1},
)  # fmt: skip
_no_blank_secret = Check(wanted="must not be blank", fits=lambda value: bool(value.reveal().strip()))
_url = Check(
    wanted="must be an http or https address without user, query or fragment",
    fits=lambda value: isinstance(value, str) and split(value) is not None,
)


@attrs.frozen(kw_only=True)
class BreakerSettings:
    """When searches pause for a gateway that does not answer."""

    enabled: bool = setting(default=True, help="whether calls are paused for a while when the gateway does not answer")
    failures: int = setting(
        default=5, help="how many searches in a row must fail before the next ones are skipped",
        validator=between(1, 1000),
    )  # fmt: skip
    seconds: float = setting(
        default=30.0,
        help="how many seconds searches are skipped before one is tried again",
        validator=between(0.05, 86_400),
    )


@attrs.frozen(kw_only=True)
class GatewaySettings:
    """The settings of the plugin; camelCase in the file."""

    base_url: str | None = setting(
        default=None, help="the address of the gateway; a path is kept", validator=[_not_blank, _url]
    )
    user_id: str | None = setting(default=None, help="the id of the user at the gateway", validator=_not_blank)
    user_key: Secret | None = setting(
        default=None, help="the credential of that user; a secret", validator=_no_blank_secret
    )
    app_id: str = setting(default="default", help="the gateway's app", validator=_not_blank)
    project_id: str = setting(default="default", help="the gateway's project", validator=_not_blank)
    scope: tuple[SearchScope, ...] = setting(
        default=("current_chat", "resources"),
        help="the parts of the gateway to search",
        validator=[not_empty(), distinct()],
    )
    top_k: int = setting(default=8, help="how many results to ask for", validator=between(1, 100))
    timeout_seconds: float = setting(
        default=10.0, help="the most seconds that a search or an add may take", validator=positive()
    )
    flush_timeout_seconds: float | None = setting(
        default=None, help="the same for a flush, which runs a model; timeoutSeconds by default", validator=positive()
    )
    recall: bool = setting(default=True, help="whether to search before the prompt")
    persist: bool = setting(default=True, help="whether to add completed turns")
    allow_insecure_http: bool = setting(
        default=False, help="whether plain http to another machine is allowed, where others can read the key on the way"
    )
    ca_bundle: Path | None = setting(default=None, help="a file of certificates to trust instead of the default ones")
    proxy: str | None = setting(
        default=None, help="the address of a proxy; the environment's are ignored", validator=[_not_blank, _url]
    )
    max_bytes: int = setting(default=4 * MiB, help="the most bytes of an answer", validator=between(1024, 64 * MiB))
    breaker: BreakerSettings = setting(
        default=BreakerSettings(), help="when to pause calls to a gateway that does not answer"
    )

    def __attrs_post_init__(self) -> None:
        """Refuse to send the key over a network unencrypted, unless a setting allows it."""
        if self.base_url is not None and not self.allow_insecure_http and is_exposed(self.base_url, self.proxy):
            where = "through a proxy on" if self.proxy else "to"
            raise Unfit(
                f"`baseUrl` is plain http {where} another machine, so others can read `userKey` on the way; use"
                " https, or"
                " set `allowInsecureHttp` to true"
            )

    @property
    def flush_seconds(self) -> float:
        """How long a flush may take."""
        return self.timeout_seconds if self.flush_timeout_seconds is None else self.flush_timeout_seconds

    @property
    def missing(self) -> tuple[str, ...]:
        """The required fields that are not given, by their names in the file."""
        return tuple(key for name, key in REQUIRED.items() if getattr(self, name) is None)
