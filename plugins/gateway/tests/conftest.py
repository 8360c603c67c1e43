import json
import ssl
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from beaver_hooks import Host
from beaver_hooks_gateway import GatewayClient, GatewaySettings
from beaver_hooks_gateway.testing import FakeGateway

DATA = Path(__file__).parent / "data"


@pytest.fixture
async def gateway(canary):
    """A running fake gateway whose key must not turn up anywhere."""
    async with FakeGateway(user_key=canary.secret) as running:
        yield running


@pytest.fixture
async def make_client():
    """Makes clients for a fake gateway, and closes them."""
    made = []

    def make(gateway, **given):
        made.append(GatewayClient(make_settings(gateway, **given)))
        return made[-1]

    yield make
    for client in made:
        await client.close()


@pytest.fixture
def make_host(tmp_path):
    """Makes hosts by a configuration file, beside nothing but the curated memory."""

    def make(gateway=None, *, mode="hybrid", sinks=(), environment=None, state="state", **section):
        memory = {} if mode is None else {"mode": mode}
        if gateway is not None:
            memory["gateway"] = in_file(gateway, **section)
        elif section:
            memory["gateway"] = section
        path = tmp_path / "config.json"
        others = {point.name for point in entry_points(group="beaver_hooks")} - {"curated", "gateway"}
        whole = {"memory": memory, "host": {"stateFolder": state}, "plugins": {"disabled": sorted(others)}}
        path.write_text(json.dumps(whole), "utf-8")
        return Host.from_config(path, sinks=sinks, environment=environment or {}, boundary=lambda: "fixed-boundary")

    return make


@pytest.fixture
def server_tls():
    """A context to serve https with, under a certificate for 127.0.0.1 and localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "loopback.pem")
    return context


@pytest.fixture(scope="session")
def ca_bundle():
    return DATA / "loopback.pem"


def make_settings(gateway, **given):
    identity = {"base_url": gateway.base_url, "user_id": gateway.user_id, "user_key": gateway.user_key}
    return GatewaySettings(**{**identity, "timeout_seconds": 5.0, **given})


def in_file(gateway, **section):
    identity = {"baseUrl": gateway.base_url, "userId": gateway.user_id, "userKey": gateway.user_key.reveal()}
    return {**identity, "timeoutSeconds": 5, **section}
