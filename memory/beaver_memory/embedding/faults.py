"""Errors of providers over HTTP. Their texts are constant: they hold nothing that a provider sent."""

from types import MappingProxyType

from beaver_memory.embedding.errors import Category, EmbeddingError, failure

_SECTION = "memory.local.embedding"
_BUSY = 429
_REDIRECTS, _SERVER = range(300, 400), range(500, 600)

_STATUSES = MappingProxyType(
    {
        401: ("does not accept the credential", f"Set {_SECTION}.apiKeyEnv to a variable that holds a valid key."),
        403: ("does not allow this", f"Check the permissions of the key in {_SECTION}.apiKeyEnv."),
        404: ("does not know this address or model", f"Check {_SECTION}.baseUrl and model."),
        _BUSY: ("gets too many requests", "Wait a while, or check the account's quota."),
    }
)

_BROKEN: MappingProxyType[str, tuple[Category, str, str]] = MappingProxyType(
    {
        "connection": (
            "unavailable",
            "cannot be reached",
            f"Check {_SECTION}.baseUrl, the network, and that the server runs.",
        ),
        "dns": ("unavailable", "has a name that cannot be resolved", f"Check {_SECTION}.baseUrl and the network."),
        "connect_timeout": ("timeout", "refuses connections", f"Check {_SECTION}.baseUrl, and that the server runs."),
        "tls": ("unavailable", "has no trusted certificate", f"Check {_SECTION}.baseUrl and its certificate."),
        "truncated": ("unavailable", "stopped in the middle of its answer", "Try again, and check the network."),
        "too_large": ("malformed", "sent an answer that is too large", f"Check {_SECTION}.baseUrl and dimensions."),
        "encoded": (
            "malformed",
            "compressed its answer, although the request did not allow that",
            f"Check {_SECTION}.baseUrl.",
        ),
    }
)


def broken(provider: str, what: str, seconds: float) -> EmbeddingError:
    """Return the error for a failed request.

    Args:
        provider: the provider.
        what: the `failure` of a `beaver_toolkit.http.Reply`.
        seconds: the time limit of the request.
    """
    if what == "timeout":
        return failure(
            provider,
            "timeout",
            f"The embedding provider {provider} did not answer within {seconds:g} seconds",
            f"Try again, or raise {_SECTION}.timeoutSeconds.",
        )
    category, problem, remedy = _BROKEN[what]
    return failure(provider, category, f"The embedding provider {provider} {problem}", remedy)


def from_status(provider: str, status: int) -> EmbeddingError:
    """Return the error for an HTTP status that is no success."""
    problem, remedy = _explained(status)
    category: Category = "unavailable" if status == _BUSY or status in _SERVER else "refused"
    said = f"The embedding provider {provider} {problem} (HTTP {status})"
    return failure(provider, category, said, remedy, status=status)


def unusable(provider: str, category: Category, problem: str) -> EmbeddingError:
    """Return the error for an answer that holds no embeddings.

    Args:
        provider: the provider.
        category: the kind of defect.
        problem: the defect in words.
    """
    return failure(
        provider,
        category,
        f"The answer of the embedding provider {provider} {problem}",
        f"Check {_SECTION}.baseUrl, model and dimensions.",
    )


def _explained(status: int) -> tuple[str, str]:
    if status in _SERVER:
        return "failed", "Try again later."
    if status in _REDIRECTS:
        return (
            "redirected the request to another address",
            f"Set {_SECTION}.baseUrl to its address; redirects are not followed.",
        )
    return _STATUSES.get(status, ("refused the request", f"Check {_SECTION}.baseUrl, model and dimensions."))
