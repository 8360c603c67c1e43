"""What a provider can do wrong, each as one sentence and a remedy. Pure: no network.

Of what a provider sends only its own short error message is shown: without control characters, scrubbed, on one
line and cut. Nothing at all is shown of the answer to a refused credential, since providers repeat parts of it.
"""

from beaver_hooks.agent.errors import ProviderError
from beaver_hostspecs import scrub
from beaver_hostspecs.neutralising import neutralise
from beaver_toolkit.strict_json import InvalidJson, loads

LONGEST_DETAIL = 200
_TOO_LONG = 50 * LONGEST_DETAIL
"""A message of more than this is no short one: it holds what somebody sent."""

_UNAUTHORISED, _SERVER, _BEYOND = 401, 500, 600
_ERRORS = range(400, _BEYOND)
_REFUSED = (
    "refused",
    "The provider refused the request",
    "Check provider.model, or start a new session if this one is too long.",
)
_EXPLAINED = {
    400: _REFUSED,
    401: ("unauthorised", "The provider does not accept the credential", "Set provider.apiKey to a valid key."),
    403: ("unauthorised", "The provider does not allow this", "Check the permissions of provider.apiKey."),
    404: (
        "not_found",
        "The provider does not know this address or model",
        "Check provider.baseUrl and provider.model.",
    ),
    413: _REFUSED,
    422: _REFUSED,
    429: ("rate_limited", "The provider gets too many requests", "Wait a while, or check the account's quota."),
}
"""Category, problem and remedy of each status that has its own."""


def malformed(problem: str) -> ProviderError:
    """Return the error for an answer that is not what an OpenAI-compatible API sends."""
    return ProviderError(
        f"The provider's answer cannot be used: {problem}. Check that provider.baseUrl names an OpenAI-compatible API.",
        category="malformed",
    )


def truncated() -> ProviderError:
    """Return the error for an answer that ended in the middle."""
    return ProviderError(
        "The provider's answer ended before it was complete. Try again, and check the network if it happens often.",
        category="truncated",
    )


def too_large(limit: int) -> ProviderError:
    """Return the error for an answer of more than `limit` bytes."""
    return ProviderError(
        f"The provider's answer has more than {limit} bytes. Raise provider.maxBytes if that is what you expect.",
        category="too_large",
    )


def timed_out(seconds: float) -> ProviderError:
    """Return the error for an answer that took more than `seconds`."""
    return ProviderError(
        f"The provider did not answer within {seconds:g} seconds. Try again, or raise provider.timeoutSeconds.",
        category="timeout",
    )


def unreachable() -> ProviderError:
    """Return the error for a connection that failed before any answer, or an answer that is no HTTP."""
    return ProviderError(
        "The provider cannot be reached or does not speak HTTP. Check provider.baseUrl, the network, and that the"
        " server runs.",
        category="connection",
    )


def from_status(status: int, detail: str = "") -> ProviderError:
    """Return the error for an HTTP status that is no success.

    Args:
        status: the status.
        detail: the provider's own message, as `detail_of` or `brief` returns it.
    """
    category, problem, remedy = _explain(status)
    shown = f"HTTP {status}: {detail}" if detail and status != _UNAUTHORISED else f"HTTP {status}"
    return ProviderError(f"{problem} ({shown}). {remedy}", category=category, status=status)


def from_error(error: object) -> ProviderError:
    """Return the error for the value of `error` in an answer that claims success.

    A code that is an HTTP status means what the status means; anything else is a failure of the server.
    """
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and code in _ERRORS:
        return from_status(code, _message(error))
    detail = _message(error)
    shown = f"the provider reports an error: {detail}" if detail else "the provider reports an error"
    return ProviderError(f"There is no answer: {shown}. Try again later.", category="server_error")


def detail_of(body: bytes) -> str:
    """Return the provider's own short message from the body of an error, or nothing."""
    try:
        value = loads(body)
    except InvalidJson:
        return ""
    return _message(value.get("error")) if isinstance(value, dict) else ""


def brief(text: str) -> str:
    """Return a foreign text as an error may show it: harmless, scrubbed, on one line, short; a long one not at all."""
    if len(text) > _TOO_LONG:
        return ""
    # Scrubbed after it is neutralised, or an invisible character would hide a credential; cut last, or half of one
    # would stay.
    line = scrub(" ".join(neutralise(text).split()))
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 3] + "..."


def _message(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return brief(message).rstrip(".") if isinstance(message, str) else ""


def _explain(status: int) -> tuple[str, str, str]:
    """Return category, problem and remedy."""
    if status in range(_SERVER, _BEYOND):
        return "server_error", "The provider failed", "Try again later."
    unexpected = (
        "http_error",
        "The provider's answer is unexpected",
        "Check provider.baseUrl; redirects are not followed.",
    )
    return _EXPLAINED.get(status, unexpected)
