"""Every entrance shows and changes memory only as the trust table allows, and an entrance without a row fails."""

import pytest
from adapters.trust_commands import COMMANDS, IN_THE_MATRIX, OFFERED, TOOLS, found_commands
from adapters.trust_entrances import ADAPTERS, ENTRANCES, Watching, beaver, found_adapters, trust_unless_told
from adapters.trust_matrix import CURATED, EXPECTED, LOCAL, USERS, expected, look
from adapters.trust_world import OWNER, PROMPT, SECOND, World, found
from integration.openai_server import serve, whole
from mcp import MCPError
from mcp.client import Client

from beaver_hooks import Host
from beaver_hooks.adapters.mcp_server import Identity, MemoryServer
from beaver_hostspecs import BeaverError, CommandContext, NotAllowed, Trust


@pytest.mark.parametrize("trust", list(Trust))
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("entrance", ENTRANCES)
async def test_each_cell_is_as_designed(entrance, user, trust):
    """Each entrance shows, offers and writes for a user at a trust as the design's table says."""
    seen = await look(entrance, user, trust)
    assert {what: expected(what, user, trust) for what in seen} == seen


OFFERED_BEFORE_A_RUN = {"before_after", "openai_agents"}
"""Frameworks that ask for tools before they know the user: a tool that the user may not use is refused when called."""


@pytest.mark.parametrize("entrance", ENTRANCES)
async def test_off_leaves_nothing_on(entrance):
    """An owner of full trust who has switched memory off is shown nothing, and nothing is kept, at every entrance."""
    seen = await look(entrance, OWNER, Trust.FULL, off=True)
    if entrance in OFFERED_BEFORE_A_RUN:
        del seen["tools offered"]
    assert dict.fromkeys(seen, "-") == seen


def test_every_adapter_has_a_row():
    """A module among the adapters that the matrix does not drive fails this test."""
    assert found_adapters() == {*ADAPTERS}


def test_every_command_has_a_row():
    """A command of `beaver`, or of a plugin's group, without a row in the matrix fails this test."""
    tree = dict(found_commands())
    takes_user = {name for name in tree if any("--user" in option.opts for option in tree[name].params)}
    rows = {name for name, row in COMMANDS.items() if row.second is not None}
    assert ({*tree}, takes_user - IN_THE_MATRIX) == ({*COMMANDS} | IN_THE_MATRIX, rows)


@pytest.mark.parametrize("command", COMMANDS)
async def test_each_command_shows_what_is_the_users(command):
    """A command at the terminal shows the owner's memory or, with `--user`, that user's, as its row says."""
    row = COMMANDS[command]
    wanted, seen = {}, {}
    async with World() as world:
        for user, shown in ((OWNER, row.owner), (SECOND, row.second)):
            if shown is not None:
                option = () if row.second is None else ("--user", user)
                wanted[user] = shown
                seen[user] = found(await beaver(world, *command.split(), *row.words, *option))
    assert wanted == seen


@pytest.mark.parametrize("trust", list(Trust))
async def test_each_command_of_a_plugin_is_for_those_it_belongs_to(trust):
    """Each plugin command is listed and run from its least trust on, and shows what the table says."""
    context = CommandContext(session="matrix", user=OWNER, trust=trust)
    stores = expected("local command", OWNER, trust)
    wanted = {
        each: (shown if shown != "by store" else stores) if trust.reaches(Trust(least)) else "refused"
        for each, (least, shown) in OFFERED.items()
    }
    async with World() as world, world.host() as host:
        listed = {(plugin, each.name) for plugin, all_ in host.offered_commands(context).items() for each in all_}
        seen = {each: await _answer(host, each, context) for each in _all_commands(host)}
    assert ({each for each in wanted if wanted[each] != "refused"}, wanted) == (listed, seen)


def _all_commands(host):
    return [(plugin, each.name) for plugin, commands in host.commands.items() for each in commands]


async def _answer(host, command, context):
    words = ("harbour",) if command[1] == "search" else ()
    try:
        return found(await host.run_command(*command, words, context))
    except NotAllowed:
        return "refused"
    except BeaverError as error:
        return found(str(error))


@pytest.mark.parametrize("trust", list(Trust))
async def test_what_the_mcp_server_lists_is_for_those_it_belongs_to(trust):
    """Tools and prompts of the server are listed and answered from their least trust, and the health has no memory."""
    tools = {name for name, least in TOOLS.items() if trust.reaches(Trust(least))}
    prompts = {f"memory_{one}_{two}" for (one, two), (least, _) in OFFERED.items() if trust.reaches(Trust(least))}
    async with World() as world, world.host() as host:
        server = MemoryServer(host, Identity(user=OWNER, trust=trust))
        async with Client(server.server, cache=None) as client:
            listed = (
                {each.name for each in (await client.list_tools()).tools},
                {each.name for each in (await client.list_prompts()).prompts},
            )
            refused = [await _refusal(client.call_tool(name, {})) for name in {*TOOLS} - tools]
            for one, two in OFFERED:
                if f"memory_{one}_{two}" not in prompts:
                    refused.append(await _refusal(client.get_prompt(f"memory_{one}_{two}", {})))
            health = [
                found(str(await client.read_resource(str(each.uri))))
                for each in (await client.list_resources()).resources
            ]
    assert ((tools, prompts), {"-"} if refused else set(), ["-", "-"]) == (listed, {*refused}, health)


async def _refusal(work):
    """Return what an error of the server gives away; a call that succeeds fails the test."""
    with pytest.raises(MCPError) as caught:
        await work
    return found(str(caught.value))


PER_USER = {
    # trust                owner                  second
    Trust.FULL:     ("notes profile",  "notes second's_profile"),
    Trust.INNER:    ("notes profile",  "notes second's_profile"),
    Trust.FAMILIAR: ("profile",        "second's_profile"),
    Trust.PUBLIC:   ("profile",        "second's_profile"),
}  # fmt: skip


@pytest.mark.parametrize("trust", list(Trust))
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("entrance", ["Host", "AgentLoop", "mcp_server"])
async def test_a_profile_per_user_is_its_users_at_any_trust(entrance, user, trust):
    """With `perUser` the notes stay the owner's, and each user reads and writes their own profile."""
    seen = await look(entrance, user, trust, per_user=True)
    wanted = PER_USER[trust][USERS.index(user)]
    curated = {what: seen[what] for what in ("curated block", "curated command", "curated tool write") if what in seen}
    assert {what: "written" if what == "curated tool write" else wanted for what in curated} == curated


def test_the_table_has_the_cells_of_the_design():
    """Every row of the table has a cell for each trust."""
    assert {len(row) for row in EXPECTED.values()} == {len(Trust)}


UNLESS_TOLD = {
    "agent_framework": "public",
    "before_after": "public",
    "claude_agent_sdk": "public",
    "claude_code": "full",
    "google_adk": "public",
    "langchain": "public",
    "mcp_server": "public",
    "openai_agents": "public",
    "pydantic_ai": "public",
    "strands": "public",
}


@pytest.mark.parametrize("entrance", ADAPTERS)
async def test_the_trust_of_an_adapter_unless_told(entrance, tmp_path):
    """An adapter gives users public trust, and Claude Code gives the person at the terminal full trust."""
    watching = Watching()
    host = Host({"watching": watching}, state_folder=tmp_path / "kept", environment={})
    assert UNLESS_TOLD[entrance] == await trust_unless_told(entrance, host, watching)


@pytest.mark.parametrize("words", [("run", PROMPT), ("chat",)], ids=["run", "chat"])
@pytest.mark.parametrize("configured", [None, "familiar"])
async def test_the_trust_of_the_agent_unless_told(words, configured):
    """`beaver run` and `beaver chat` use the trust of `agent.trust`, which is full by default."""
    wanted = configured or "full"
    async with World() as world, serve(whole("Done.")) as server:
        if configured is not None:
            world.change("agent", {"trust": configured})
        world.change("provider", {**world.section("provider"), "baseUrl": server.base_url})
        await beaver(world, *words, "--user", OWNER, stdin=PROMPT)
        seen = server.requests[0].body.decode()
    assert (expected("curated block", OWNER, wanted), expected("local recall", OWNER, wanted)) == (
        found(seen, CURATED), found(seen, LOCAL),
    )  # fmt: skip
