"""The parts of the MCP server that need no client: schemas, the gate, the token, the wire, where to listen."""

import asyncio
import contextlib
import json
import os
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("mcp_types", reason="the extra `mcp` is not installed")

import httpx2
import mcp_types as types

from beaver_hooks import Host
from beaver_hooks.adapters import mcp_server
from beaver_hooks.adapters.mcp_server import MemoryServer, Wire, serve_http, serve_stdio
from beaver_hooks.adapters.mcp_server.http import HttpPlace, is_loopback, make_app
from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.adapters.mcp_server.standard_streams import LinesIn, TextOut, lent
from beaver_hooks.adapters.mcp_server.texts import clean_all
from beaver_hooks.adapters.mcp_server.token import Gate, find_token
from beaver_hooks.adapters.mcp_server.tools import UnusableSchemaError, _strict, input_schema
from beaver_hooks.tools.arguments import UnfitArgumentsError
from beaver_hostspecs import AuditUnavailable, CommandContext, ConfigurationError, HostMisused, Scope, Secret, Trust

SECONDS = 20
LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
KEYS = st.sampled_from(["type", "properties", "required", "$schema", "default", "anyOf"])
TRICKY = st.dictionaries(KEYS, PLAIN | st.sampled_from(["object", ["text"], {"text": {}}, {"text": True}]))

DEEP = []
for _ in range(100_000):
    DEEP = [DEEP]


def elsewhere(folder):
    """Return an environment whose record of written files is in a folder."""
    return {"XDG_STATE_HOME": str(folder / "xdg")}


@given(TRICKY | st.dictionaries(st.text(), PLAIN))
def test_whatever_is_listed_the_protocol_can_send(parameters):
    """Every schema that is let through can be sent in both eras of the protocol."""
    with contextlib.suppress(UnusableSchemaError):
        schema = input_schema(parameters)
        tool = types.Tool(name="t", description="", input_schema=schema)
        listed = types.ListToolsResult(tools=[tool], ttl_ms=0, cache_scope="private")
        data = listed.model_dump(by_alias=True, mode="json", exclude_none=True)
        for version in ("2025-06-18", "2025-11-25", "2026-07-28"):
            types.methods.serialize_server_result("tools/list", version, {"resultType": "complete", **data})
        json.dumps(schema, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"\ud800": ("a\0", 7, None)}, {"\ufffd": ["a\ufffd", 7, None]}),
        ({1: "x"}, {"1": "x"}),
    ],
)
def test_all_texts_of_plain_data_are_made_clean(value, expected):
    """All strings of plain data are cleaned, keys too."""
    assert expected == clean_all(value)


@pytest.mark.parametrize("arguments", [{"x": {1}}, {"x": DEEP}])
def test_arguments_that_are_no_json(arguments):
    """Arguments that are not a JSON object are refused with a sentence."""
    with pytest.raises(UnfitArgumentsError) as caught:
        _strict(arguments)

    assert "the arguments are not a JSON object" == str(caught.value)


def test_an_identity_is_checked():
    """An unknown trust, a user that is no text, and a blank user or session are refused."""
    for wrong in ({"trust": "total"}, {"user": 7}, {"user": ""}, {"session": " "}):
        with pytest.raises(ValueError):
            Identity(**wrong)


def test_an_identity_is_the_context_of_a_command():
    """The context of a command has the identity's user, trust and scope, and the call's session."""
    identity = Identity(user="u", trust="inner", scope=Scope(agent="a"))

    expected = CommandContext(session="s", user="u", trust=Trust.INNER, scope=Scope(agent="a"))
    assert expected == identity.context("s")


# --- The gate --------------------------------------------------------------------------------------------------------


class Door:
    """An application that notes who came in, and answers with these messages."""

    def __init__(self, *messages):
        self.came = []
        self.entered = 0
        self.sent = []
        self.messages = messages

    async def __call__(self, scope, receive, send):
        self.came.append(scope["type"])
        for each in self.messages:
            await send(each)

    async def knock(self, *authorization, kind="http"):
        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            self.sent.append(message)

        gate = Gate(app=self, token=Secret("the-token-of-this-test"), entering=self.enter)
        headers = [(b"authorization", each) for each in authorization]
        await gate({"type": kind, "headers": headers}, receive, send)
        return self.sent

    def enter(self):
        self.entered += 1


@pytest.mark.parametrize("given", [b"Bearer the-token-of-this-test", b"bearer  the-token-of-this-test "])
async def test_the_token_opens_the_gate(given):
    """The right token opens the gate, however the scheme is written."""
    door = Door()
    await door.knock(given)

    assert (["http"], 1) == (door.came, door.entered)


@pytest.mark.parametrize(
    "given",
    [
        (),
        (b"",),
        (b"Bearer",),
        (b"Bearer the-token",),
        (b"Basic the-token-of-this-test",),
        (b"Bearer \xff",),
        (b"Bearer the-token-of-this-test",) * 2,
    ],
)
async def test_nothing_else_does(given):
    """Any other authorization gets a 401, and the application does not see the request."""
    door = Door()
    sent = await door.knock(*given)

    assert ([], 0, 401) == (door.came, door.entered, sent[0]["status"])


async def test_a_websocket_is_not_let_in():
    """The gate refuses a WebSocket without an answer, and the application does not see it."""
    door = Door()

    assert ([], []) == (await door.knock(kind="websocket"), door.came)


async def test_the_life_of_the_application_passes():
    """Starting and stopping the application needs no token."""
    door = Door()
    await door.knock(kind="lifespan")

    assert (["lifespan"], 0) == (door.came, door.entered)


def start(kind):
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]}


def body(**more):
    return {"type": "http.response.body", "body": b"x", **more}


@pytest.mark.parametrize(
    ("messages", "count"),
    [
        ([start(b"text/event-stream"), body(more_body=True)], 3),
        ([start(b"text/event-stream")], 2),
        ([start(b"text/event-stream"), body(more_body=True), body()], 3),
        ([start(b"application/json"), body(more_body=True)], 2),
        ([start(b"application/json"), body()], 2),
    ],
)
async def test_a_stream_that_is_cut_short_is_ended(messages, count):
    """A stream that was cut short is ended, and any other answer stays as it is."""
    door = Door(*messages)

    assert count == len(await door.knock(b"Bearer the-token-of-this-test"))


# --- Sessions over HTTP ----------------------------------------------------------------------------------------------


async def test_a_session_that_its_client_has_left_ends(tmp_path):
    """A session that its client has left is removed after its idle time."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    token = Secret("the-token-of-this-test")
    headers = {"authorization": f"Bearer {token.reveal()}", "accept": "application/json, text/event-stream"}
    async with Host(state_folder=tmp_path) as host:
        memory = MemoryServer(host)
        app = make_app(memory, token, HttpPlace().allowed(8737), idle=0.01)
        manager = memory.server.session_manager
        transport = httpx2.ASGITransport(app)
        async with (
            asyncio.timeout(SECONDS),
            manager.run(),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8737", headers=headers) as http,
        ):
            answer = await http.post("/mcp", json=asked)
            while manager._server_instances:
                await asyncio.to_thread(int)  # lets the loop turn

    assert (200, True) == (answer.status_code, "mcp-session-id" in answer.headers)


# --- The token -------------------------------------------------------------------------------------------------------


def test_a_token_is_made_once(tmp_path):
    """The token is the same at the next start, in a private file that git ignores, and not in its `repr`."""
    first, second = (find_token(tmp_path / "state", elsewhere(tmp_path)) for _ in range(2))
    path = tmp_path / "state" / "mcp.token"

    assert (first, f"in {path}") == (second, first.source)
    assert (0o600, True) == (stat.S_IMODE(path.stat().st_mode), (tmp_path / "state" / ".gitignore").exists())
    assert first.secret.reveal() not in f"{first!r} {first}"


def test_a_token_that_others_can_read_is_tightened(tmp_path):
    """A token file that other users can read becomes private."""
    made = find_token(tmp_path, elsewhere(tmp_path))
    path = tmp_path / "mcp.token"
    path.chmod(0o644)

    assert (made, 0o600) == (find_token(tmp_path, elsewhere(tmp_path)), stat.S_IMODE(path.stat().st_mode))


@pytest.mark.parametrize("before", [False, True])
def test_a_token_that_a_repository_brings(tmp_path, before):
    """A token that was not written on this machine is refused without being shown, also where one was made before."""
    path, known = tmp_path / "mcp.token", "k" * 20
    if before:
        find_token(tmp_path, elsewhere(tmp_path))
    path.write_text(known)
    path.chmod(0o600)
    with pytest.raises(ConfigurationError) as caught:
        find_token(tmp_path, elsewhere(tmp_path))
    path.unlink()

    assert (
        "was not written on this machine, so other people may know it; remove it, and the next start writes a new one"
        == caught.value.problem
    )
    assert known != find_token(tmp_path, elsewhere(tmp_path)).secret.reveal()


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 20, b"two lines\nof them, and long", b"x" * 2000])
def test_a_file_without_a_token(tmp_path, content):
    """A file without a usable token is refused by its path, and stays unchanged."""
    path = tmp_path / "mcp.token"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        find_token(tmp_path, elsewhere(tmp_path))

    assert (True, content) == (str(path) in str(caught.value), path.read_bytes())
    assert "short" not in str(caught.value)


def test_a_link_is_no_token_file(tmp_path):
    """A symbolic link in the place of the token file is refused."""
    (tmp_path / "other").write_text("t" * 20)
    (tmp_path / "mcp.token").symlink_to(tmp_path / "other")
    with pytest.raises(ConfigurationError):
        find_token(tmp_path, elsewhere(tmp_path))


def test_a_folder_is_no_token_file(tmp_path):
    """A folder in the place of the token file is an error with the remedy."""
    (tmp_path / "mcp.token").mkdir()
    with pytest.raises(ConfigurationError) as caught:
        find_token(tmp_path, elsewhere(tmp_path))

    assert (
        "cannot be used (it is not a regular file); remove it, and the next start writes a new one"
        == caught.value.problem
    )


def test_a_state_folder_that_is_none(tmp_path):
    """A file in the place of the state folder raises `AuditUnavailable`."""
    (tmp_path / "state").write_text("")
    with pytest.raises(AuditUnavailable):
        find_token(tmp_path / "state", elsewhere(tmp_path))


# --- Where to listen -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)]
    + [
        (each, False) for each in ("0.0.0.1", "192.0.2.1", "::", "2001:db8::1", "here.example", "localhost.example", "")
    ],
)
def test_loopback(host, expected):
    """An address that other machines can reach is refused unless names are given."""
    assert expected == is_loopback(host)
    if not expected:
        with pytest.raises(HostMisused):
            HttpPlace(host=host)
        assert ("here",) == HttpPlace(host=host, names=("here",)).names


def test_who_is_let_through():
    """Allowed are this machine's names and the given ones, with the port or without one."""
    allowed = HttpPlace(names=("here",)).allowed(8000)

    names = [f"{each}{port}" for each in ("127.0.0.1", "localhost", "[::1]", "here") for port in ("", ":8000")]
    assert names == allowed.allowed_hosts
    assert {f"{scheme}://{each}" for scheme in ("http", "https") for each in names} == {*allowed.allowed_origins}
    assert allowed.enable_dns_rebinding_protection


def test_a_port_that_is_taken():
    """A port that is taken raises an error with one sentence."""
    with HttpPlace(port=0).bound() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostMisused) as caught:
            HttpPlace(port=port).bound()

    said = f"port {port} of `127.0.0.1` cannot be listened on (Address already in use); use another one"
    assert said == str(caught.value)


# --- The wire --------------------------------------------------------------------------------------------------------


@pytest.fixture
def pipe():
    """The two ends of a pipe, as unbuffered files, which a test may close."""
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as reading:
        with os.fdopen(write, "wb", buffering=0) as writing:
            yield reading, writing
        # A thread that has not begun to read yet would read the next test's pipe.
        for each in threading.enumerate():
            if each.name == "beaver-mcp-stdin":
                each.join(SECONDS)


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))), st.booleans())
def test_lines_arrive_as_they_were_written(lines, ended):
    """Lines arrive in order and unchanged, without blank ones, and the last one needs no line end."""
    data = "\n".join(lines).encode() + b"\n" * ended

    async def read():
        source, target = os.pipe()
        try:
            writer = threading.Thread(target=lambda: (_write(target, data), os.close(target)))
            writer.start()
            found = [line async for line in LinesIn(source)]
            writer.join(SECONDS)
        finally:
            os.close(source)
        return found

    assert [line for line in lines if line.encode().strip()] == asyncio.run(read())


def _write(target, data):
    while data:
        data = data[os.write(target, data) :]


async def test_more_lines_than_are_read_ahead(pipe):
    """All lines arrive, even if they are more than are read ahead."""
    read, write = pipe
    write.write(b"x\n" * 1000)
    write.close()

    assert ["x"] * 1000 == [line async for line in LinesIn(read.fileno())]


async def test_a_message_without_end(pipe, monkeypatch, caplog):
    """A line that is too long ends the lines and is logged."""
    monkeypatch.setattr("beaver_hooks.adapters.mcp_server.standard_streams.LONGEST_LINE", 10)
    read, write = pipe
    write.write(b"fine\n" + b"x" * 11)

    assert ["fine"] == [line async for line in LinesIn(read.fileno())]
    assert ["event=beaver_hooks.mcp_message_too_long limit=10"] == [each.getMessage() for each in caplog.records]


async def test_a_descriptor_that_cannot_be_read(pipe, caplog):
    """A descriptor that cannot be read ends the lines, and the log names the error."""
    _, write = pipe

    assert [] == [line async for line in LinesIn(write.fileno())]
    assert ["event=beaver_hooks.mcp_stdin_unreadable error=OSError"] == [each.getMessage() for each in caplog.records]


async def test_lines_can_be_ended_here(pipe):
    """`end` ends the lines for a caller that waits for the next one."""
    lines = LinesIn(pipe[0].fileno())
    waiting = asyncio.create_task(anext(lines, None))
    lines.end()

    assert None is await asyncio.wait_for(waiting, SECONDS)


async def test_what_is_written_is_there_once_it_is_flushed(pipe):
    """Flushed text is written in UTF-8 and in order, with a lone surrogate replaced."""
    read, write = pipe
    out = TextOut(write.fileno(), lambda: None)
    await out.write("é")
    await out.write("漢\ud800\n")
    await out.flush()

    assert "é漢?\n".encode() == read.read(100)


async def test_a_reader_that_is_gone_is_told_once_somebody_writes(pipe):
    """When the reader is gone, the next write reports it and later writes are dropped."""
    read, write = pipe
    read.close()
    gone = asyncio.Event()
    out = TextOut(write.fileno(), gone.set)
    for _ in range(2):
        await out.write("x")
        await asyncio.wait_for(out.flush(), SECONDS)

    assert gone.is_set()


async def test_whoever_stops_waiting_harms_nobody(pipe):
    """A flush that is cancelled does not stop the thread from writing all of the text."""
    read, write = pipe
    out = TextOut(write.fileno(), lambda: None)
    await out.write("x" * 1_000_000)
    flushing = asyncio.create_task(out.flush())
    await asyncio.sleep(0)
    flushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flushing

    seen = 0
    while seen < 1_000_000:  # all of it, or the thread would be at it still
        seen += len(read.read(1_000_000))
    assert 1_000_000 == seen


def test_standard_streams_are_lent_and_given_back(capfd):
    """While lent, stdin is empty and stdout goes to stderr; afterwards stdout is as before."""
    with lent() as (_, write):
        os.write(1, b"written\n")
        assert b"" == os.read(0, 1)
        os.write(write, b"protocol\n")
    os.write(1, b"afterwards\n")
    out, errors = capfd.readouterr()

    assert ("protocol\nafterwards\n", "written\n") == (out, errors)
    os.close(write)


# --- Both ways in ----------------------------------------------------------------------------------------------------

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}


@pytest.fixture
def make_host(tmp_path):
    return lambda: Host(state_folder=tmp_path / ".beaver", environment={})


async def test_a_wire_of_ones_own(make_host):
    """The server runs over any two descriptors, and ends when its input ends."""
    (read, to_server), (from_server, write) = os.pipe(), os.pipe()
    os.write(to_server, json.dumps(HELLO).encode() + b"\n")
    os.close(to_server)
    async with make_host() as host:
        lines = LinesIn(read)
        await asyncio.wait_for(serve_stdio(MemoryServer(host), Wire(lines, TextOut(write, lines.end))), SECONDS)
    answer = json.loads(os.read(from_server, 10_000))

    assert ("beaver", 1) == (answer["result"]["serverInfo"]["name"], answer["id"])
    for each in (read, write, from_server):
        os.close(each)


async def test_standard_input_that_is_at_its_end(make_host, capfd):
    """The connection ends at once, without output."""
    async with make_host() as host:
        await asyncio.wait_for(serve_stdio(MemoryServer(host)), SECONDS)

    assert ("", "") == tuple(capfd.readouterr())


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_a_server_that_is_cancelled(make_host, address):
    """A cancelled server stops serving and frees its port."""
    listening = asyncio.get_running_loop().create_future()
    secret = Secret("the-token-of-this-test")
    async with make_host() as host:
        place = HttpPlace(host=address, port=0)
        serving = asyncio.create_task(serve_http(MemoryServer(host), secret, place, listening.set_result))
        url = await asyncio.wait_for(listening, SECONDS)
        headers = {"authorization": f"Bearer {secret.reveal()}", "accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=headers) as http:
            answer = await http.post(url, json=HELLO)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        async with httpx2.AsyncClient() as http:
            with pytest.raises(httpx2.ConnectError):
                await http.post(url, json=HELLO)

    expected = f"http://[{address}]:" if ":" in address else f"http://{address}:"
    assert (200, True, True) == (answer.status_code, url.startswith(expected), url.endswith("/mcp"))


def test_the_package_says_what_it_has():
    """`dir` of the package lists its names before they are imported, and a wrong name is an AttributeError."""
    assert {*mcp_server.__all__} == {*mcp_server.__all__} & {*dir(mcp_server)}
    with pytest.raises(AttributeError, match="has no attribute 'Serve'"):
        mcp_server.Serve  # noqa: B018 - the access itself is under test
