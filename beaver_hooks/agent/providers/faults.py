"""The faults of a provider, each as one sentence and a remedy. Pure: no network.

An error shows only the provider's own short message: without control characters, scrubbed, on one line and cut. The
answer to a refused credential is never shown, since providers repeat parts of the credential.
"""

from beaver_hooks.agent.errors import ProviderError
from beaver_hostspecs import scrub
from beaver_hostspecs.neutralising import neutralise
from beaver_toolkit.strict_json import InvalidJson, loads

LONGEST_DETAIL = 200
_TOO_LONG = 50 * LONGEST_DETAIL
"""A longer message is not shown: it may quote the request."""

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


_SENTENCES = {
    "connection": "The provider cannot be reached or does not speak HTTP. Check provider.baseUrl, the network, and that"
    " the server runs.",
    "malformed": "The provider's answer cannot be used: {}. Check that provider.baseUrl names an OpenAI-compatible"
    " API.",
    "timeout": "The provider did not answer within {:g} seconds. Try again, or raise provider.timeoutSeconds.",
    "too_large": "The provider's answer has more than {} bytes. Raise provider.maxBytes if that is what you expect.",
    "truncated": "The provider's answer ended before it was complete. Try again, and check the network if it happens"
    " often.",
}
"""The text of each fault without a status, by its category."""


def fault(category: str, *details: object) -> ProviderError:
    """Return the error of a category without a status: the problem of `malformed`, or the limit that was exceeded."""
    return ProviderError(_SENTENCES[category].format(*details), category=category)


def malformed(problem: str) -> ProviderError:
    """Return the error for an answer that does not fit an OpenAI-compatible API."""
    return fault("malformed", problem)


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

    A code that is an HTTP status has the meaning of the status; any other code is a failure of the server.
    """
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and code in _ERRORS:
        return from_status(code, _message(error))
    detail = _message(error)
    shown = f"the provider reports an error: {detail}" if detail else "the provider reports an error"
    return ProviderError(f"There is no answer: {shown}. Try again later.", category="server_error")


def detail_of(body: bytes) -> str:
    """Return the provider's own short message from the body of an error, or an empty text."""
    try:
        value = loads(body)
    except InvalidJson:
        return ""
    return _message(value.get("error")) if isinstance(value, dict) else ""


def brief(text: str) -> str:
    """Return a foreign text safe for an error: harmless, scrubbed, on one line and cut; empty if it is long."""
    if len(text) > _TOO_LONG:
        return ""
    # Scrubbed after it is neutralised, since an invisible character could hide a credential; cut last, since half of a
    # credential could stay.
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
