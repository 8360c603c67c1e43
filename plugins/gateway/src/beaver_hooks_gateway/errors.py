r"""The errors of requests to a gateway.

    PluginError
    └── GatewayError           one request failed
        ├── GatewayUnreachable     no connection: `connection`, `dns`, `tls`
        ├── GatewayTimedOut        the deadline passed: `timeout`
        ├── GatewayRefused         a status that is no success: `unauthorised`, `server_error` ...
        ├── GatewayMalformed       an answer that cannot be used: `invalid_json`, `invalid_shape`, `too_large` ...
        └── GatewayUnknown         sent, and it is unknown whether it arrived: `unknown`

They hold only the name of the plugin, operation, path, category and status: no body, no credential,
no address. None is chained to an error of the HTTP library, because those hold the request.
"""

from types import MappingProxyType
from typing import Literal

from beaver_hostspecs import PluginError

Operation = Literal["search", "add", "flush"]

PATHS: MappingProxyType[Operation, str] = MappingProxyType(
    {"search": "/memories/search", "add": "/memories/add", "flush": "/memories/flush"}
)
"""The path of each operation below the gateway's address."""

_STATUSES = MappingProxyType(
    {
        400: ("bad_request", "Check memory.gateway.appId and projectId."),
        401: ("unauthorised", "Set memory.gateway.userId and userKey to valid credentials."),
        403: ("forbidden", "Check the permissions of the user memory.gateway.userId."),
        404: ("not_found", "Check memory.gateway.baseUrl."),
        409: ("conflict", "See the gateway's log."),
        422: ("invalid_request", "Check memory.gateway.appId, projectId and scope."),
        429: ("rate_limited", "Ask for fewer results or a higher quota."),
    }
)
_REDIRECTS, _SERVER = range(300, 400), range(500, 600)
_CREDENTIALS = frozenset({"unauthorised", "forbidden"})
TRANSIENT = frozenset({"connection", "dns", "tls", "timeout", "truncated", "rate_limited", "server_error"})
"""Categories of failures that may pass without a fix."""

_PROBLEMS = MappingProxyType(
    {
        "connection": ("the gateway cannot be reached", "Check memory.gateway.baseUrl and that the gateway runs."),
        "dns": ("the gateway's name cannot be resolved", "Check memory.gateway.baseUrl and the network."),
        "tls": ("no secure connection could be made", "Check the gateway's certificate and memory.gateway.caBundle."),
        "timeout": ("the gateway did not answer in time", "Try again, or raise memory.gateway.timeoutSeconds."),
        "truncated": ("the connection ended before the answer was complete", "Try again; check the network."),
        "too_large": ("the answer is too large", "Raise memory.gateway.maxBytes if that is what you expect."),
        "encoded": (
            "the answer is compressed, although the request did not allow that",
            "Let the gateway answer uncompressed.",
        ),
        "invalid_json": ("the answer is not strict JSON", "Check that memory.gateway.baseUrl names a Memory Gateway."),
        "invalid_shape": (
            "the answer does not have the expected fields",
            "Check that memory.gateway.baseUrl names a Memory Gateway.",
        ),
        "unknown": (
            "the answer was lost, so the message may or may not be stored",
            "It is not sent again, so that nothing is stored twice.",
        ),
    }
)


class GatewayError(PluginError):
    """A request failed.

    Attributes:
        operation: `search`, `add` or `flush`.
        path: the path of the operation.
        category: the kind of failure, in a word.
        status: the HTTP status, where there was one.
    """

    def __init__(self, operation: Operation, category: str, *, status: int | None = None) -> None:
        self.operation = operation
        self.path = PATHS[operation]
        self.category = category
        self.status = status
        problem, remedy = _explained(category, status)
        code = "" if status is None else f" (HTTP {status})"
        super().__init__(f"Memory Gateway {operation}: {problem}{code}. {remedy}", plugin="gateway")

    @property
    def transient(self) -> bool:
        """Whether the failure may pass without a fix."""
        return self.category in TRANSIENT

    @property
    def credentials(self) -> bool:
        """Whether the gateway does not accept the credentials."""
        return self.category in _CREDENTIALS


class GatewayUnreachable(GatewayError):
    """There is no connection; nothing was sent."""


class GatewayTimedOut(GatewayError):
    """The deadline of the operation passed."""


class GatewayRefused(GatewayError):
    """The gateway answered with a status that is no success."""


class GatewayMalformed(GatewayError):
    """The answer cannot be used."""


class GatewayUnknown(GatewayError):
    """The request was sent, and no answer says whether it arrived."""


def from_status(operation: Operation, status: int) -> GatewayRefused:
    """Return the error for a status that is no success."""
    if status in _STATUSES:
        category = _STATUSES[status][0]
    elif status in _REDIRECTS:
        category = "redirected"
    else:
        category = "server_error" if status in _SERVER else "http_error"
    return GatewayRefused(operation, category, status=status)


def _explained(category: str, status: int | None) -> tuple[str, str]:
    if category in _PROBLEMS:
        return _PROBLEMS[category]
    if category == "redirected":
        return (
            "the gateway redirects to another address, and redirects are not followed",
            "Set memory.gateway.baseUrl to the new address.",
        )
    problem = f"the gateway refused it: {category}"
    return problem, _STATUSES.get(status or 0, ("", "Try again later, and see the gateway's log."))[1]
