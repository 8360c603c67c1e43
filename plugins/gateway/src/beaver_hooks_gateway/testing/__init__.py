"""A fake Memory Gateway for tests: a real server on the loopback interface, as strict as a gateway should be.

    async with FakeGateway() as gateway:
        settings = GatewaySettings(base_url=gateway.base_url, user_id=gateway.user_id, user_key=gateway.user_key)
        gateway.misbehave("search", Fault.SLOW_DRIP)
        ...
    gateway.bodies("add")

It refuses a request that does not match the wire format exactly, keeps every request, and fails in every way in which
a server on a network can. It needs no test framework.
"""

from beaver_hooks_gateway.testing.faults import CONNECTION_FAULTS, Fault, Reply, reply_for
from beaver_hooks_gateway.testing.server import FakeGateway, Received, problem_of

__all__ = ["CONNECTION_FAULTS", "FakeGateway", "Fault", "Received", "Reply", "problem_of", "reply_for"]
