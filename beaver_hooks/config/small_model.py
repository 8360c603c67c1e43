"""The section `host.smallModel`: a small language model that the host lends to plugins."""

import attrs

from beaver_hooks.config.provider import API_KEY, BASE_URL, check_exposure
from beaver_hostspecs import Secret
from beaver_hostspecs.settings import not_empty, positive, setting


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
