"""The Memory Gateway: a remote memory behind HTTP, searched before each prompt and added to after each completed turn.

It imports the contract and httpx, and nothing of the host. The entry point `gateway` names `Gateway`, its zero-argument
factory. `beaver_hooks_gateway.testing` is a fake gateway, which only tests import.
"""

from beaver_hooks_gateway.client import GatewayClient
from beaver_hooks_gateway.errors import (
    GatewayError,
    GatewayMalformed,
    GatewayRefused,
    GatewayTimedOut,
    GatewayUnknown,
    GatewayUnreachable,
)
from beaver_hooks_gateway.plugin import Gateway
from beaver_hooks_gateway.service import MemoryGatewayService
from beaver_hooks_gateway.settings import BreakerSettings, GatewaySettings

__all__ = [
    "BreakerSettings",
    "Gateway",
    "GatewayClient",
    "GatewayError",
    "GatewayMalformed",
    "GatewayRefused",
    "GatewaySettings",
    "GatewayTimedOut",
    "GatewayUnknown",
    "GatewayUnreachable",
    "MemoryGatewayService",
]
