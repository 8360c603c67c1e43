"""The health of the plugins as resources, without content and without secrets.

A client of full trust reads the reason for a plugin's bad health. Other clients read its state alone: the reason may
name folders and addresses of the owner.
"""

import json
from collections.abc import Mapping

import mcp_types as types
from mcp import MCPError

from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.adapters.mcp_server.texts import clean, clean_all
from beaver_hooks.host import Host
from beaver_hooks.receipts.health import Health
from beaver_hooks.receipts.recorder import HOST
from beaver_hostspecs import Trust

JSON_URI = "beaver://health"
TEXT_URI = "beaver://health/text"
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"


class Resources:
    """Lists and reads the two resources: health as JSON, and as lines for people."""

    def __init__(self, host: Host, identity: Identity) -> None:
        self._host = host
        self._identity = identity

    def listed(self) -> types.ListResourcesResult:
        """Return both."""
        about = "The health of each memory plugin: its state, since when, and why."
        resources = [
            types.Resource(name="health", uri=JSON_URI, mime_type=JSON_TYPE, description=about),
            types.Resource(name="health-text", uri=TEXT_URI, mime_type=TEXT_TYPE, description=about),
        ]
        return types.ListResourcesResult(resources=resources, ttl_ms=0, cache_scope="private")

    def read(self, uri: str) -> types.ReadResourceResult:
        """Return one of them.

        Raises:
            MCPError: there is no such resource.
        """
        if uri not in (JSON_URI, TEXT_URI):
            raise MCPError(
                types.INVALID_PARAMS, f"there is no such resource; the resources are: {JSON_URI}, {TEXT_URI}"
            )
        health = self._host.health()
        if self._identity.trust is not Trust.FULL:
            health = {name: Health(state=each.state, since=each.since) for name, each in health.items()}
        text, kind = (as_json(health), JSON_TYPE) if uri == JSON_URI else (as_lines(health), TEXT_TYPE)
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")


def as_json(health: Mapping[str, Health]) -> str:
    """Return the health of every plugin, and the host's own, as one JSON object."""
    plugins = {name: _plain(each) for name, each in health.items() if name != HOST}
    known: dict[str, object] = {"plugins": plugins}
    if HOST in health:
        known["host"] = _plain(health[HOST])
    return json.dumps(clean_all(known), ensure_ascii=False)


def _plain(health: Health) -> dict[str, object]:
    since = None if health.since is None else health.since.isoformat()
    return {"state": health.state, "since": since, "sources": dict(health.faults), "reason": health.reason}


def as_lines(health: Mapping[str, Health]) -> str:
    """Return the health of every plugin, one line each."""
    return "\n".join(clean(f"{name}: {each}") for name, each in health.items()) or "no plugin is installed"
