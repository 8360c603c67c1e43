"""A memory of two people, with a word of its own in each part, so that a leak shows its part.

The owner keeps MEMORY.md and USER.md, has a Memory Gateway, and one local memory in each store. The second user has one
private local memory and, where profiles are kept per user, a USER.md. Every part is about the harbour, which is what the
prompts ask about.
"""

import json
import shutil
import tempfile
from pathlib import Path

from beaver_hooks import Host
from beaver_hooks.config import load_config
from beaver_hooks_gateway.testing import FakeGateway
from beaver_hostspecs import Secret, Trust

OWNER, SECOND = "owner", "second"
PROMPT = "What do we know about the harbour?"
KEY = "uk_of_the_matrix_gateway"

WORDS = {
    "notes": "kn0tes", "profile": "pr0file", "second's profile": "s2profile", "gateway": "g4teway",
    "private": "pr1vate", "shared": "sh4red", "social": "s0cial", "second's": "s2private",
}  # fmt: skip
"""The word of each part."""

WRITTEN = {"memory": "wr1tten-curated", "memory_write": "wr1tten-local"}
"""What the model writes by each tool that writes."""

ARGUMENTS = {
    "memory": {"target": "user", "action": "add", "content": WRITTEN["memory"]},
    # It contradicts no sentence of a part: a write that does ends the memory.
    "memory_write": {"title": f"Ships enter the harbour by {WRITTEN['memory_write']}."},
    "memory_search": {"query": "harbour"},
}
"""How the model calls each of the tools that the matrix is about."""


def sentence(part):
    """Return the sentence of a part."""
    return f"The harbour is {WORDS[part]}."


def found(text, parts=tuple(WORDS)):
    """Return which parts a text gives away, as one value of a cell."""
    return " ".join(part.replace(" ", "_") for part in parts if WORDS[part] in text) or "-"


class World:
    """A state folder with that memory, a configuration over it, and the gateway. Enter it with `async with`."""

    def __init__(self, *, per_user=False):
        self.folder = Path(tempfile.mkdtemp(prefix="beaver-trust-"))
        self.state = self.folder / ".beaver"
        self.config = self.folder / "config.json"
        self.gateway = FakeGateway(
            user_key=Secret(KEY),
            results=[
                {"id": "g1", "session_id": "chat:old", "text": sentence("gateway"), "score": 0.9,
                 "source_scope": "resources", "resource_uri": "docs://harbour"},
            ],
        )  # fmt: skip
        self._per_user = per_user

    async def __aenter__(self):
        await self.gateway.__aenter__()
        self._configure()
        async with self.host() as host:
            await self._fill(host)
        self.gateway.received.clear()
        return self

    async def __aexit__(self, *error):
        await self.gateway.__aexit__(*error)
        shutil.rmtree(self.folder, ignore_errors=True)

    def host(self, **more):
        """Return a host over this memory, not open yet."""
        loaded = load_config(self.config, environment={})
        return Host(
            entry_points=["curated", "gateway", "local"], config=loaded.config, state_folder=self.state,
            environment={"MATRIX_KEY": KEY}, **more,
        )  # fmt: skip

    def section(self, name):
        """Return a section of the configuration."""
        return json.loads(self.config.read_text()).get(name)

    def change(self, name, section):
        """Put a section into the configuration."""
        self.config.write_text(json.dumps({**json.loads(self.config.read_text()), name: section}))

    def written(self):
        """Return for each tool that writes whether its text is in the files, and whether the gateway was written."""
        curated = [each.read_text() for each in (self.state / "plugins" / "curated").rglob("*.md")]
        local = [each.read_bytes() for each in (self.state / "plugins" / "local").glob("memory.db*")]
        return {
            "memory": any(WRITTEN["memory"] in text for text in curated),
            "memory_write": any(WRITTEN["memory_write"].encode() in content for content in local),
            "gateway": bool(self.gateway.bodies("add")),
        }

    def curated_files(self):
        """Return the curated files by their paths; a user's folder has the user's id in front."""
        folder = self.state / "plugins" / "curated"
        return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*.md")}

    def _configure(self):
        gateway = {
            "baseUrl": self.gateway.base_url, "userId": self.gateway.user_id, "userKey": {"env": "MATRIX_KEY"},
        }  # fmt: skip
        memory = {
            "mode": "hybrid", "curated": {"perUser": self._per_user}, "gateway": gateway, "local": {"enabled": True},
        }  # fmt: skip
        provider = {"kind": "openai", "baseUrl": "http://127.0.0.1:9/v1", "model": "scripted"}
        whole = {
            "memory": memory, "plugins": {"disabled": ["tally"]}, "provider": provider,
            "host": {"stateFolder": str(self.state)},
        }  # fmt: skip
        self.config.write_text(json.dumps(whole))

    async def _fill(self, host):
        async def use(tool, user, **arguments):
            answer = await host.use_tool(tool, arguments, session="before", user=user, trust=Trust.FULL)
            assert "error" not in answer, answer

        await use("memory", OWNER, target="memory", action="add", content=sentence("notes"))
        await use("memory", OWNER, target="user", action="add", content=sentence("profile"))
        if self._per_user:
            await use("memory", SECOND, target="user", action="add", content=sentence("second's profile"))
        for store in ("private", "shared", "social"):
            await use("memory_write", OWNER, title=sentence(store), store=store)
        await use("memory_write", SECOND, title=sentence("second's"), store="private")
