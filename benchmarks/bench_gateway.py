"""Measures the cost of the gateway plugin beyond its requests, compared with bare httpx in the same run.

The floor posts the same bodies with a plain `httpx.AsyncClient` to the same loopback server, checks the status and
parses the JSON. It uses a new connection for each add, as a client must that never sends a turn twice. The other side
is the plugin's hooks, with breaker, reduction and report. Both sides alternate in one process; medians are compared.

Then the benchmark measures in a host: the 95th percentile of opening a turn while the gateway takes 200 ms, the overrun
of the timeout while a gateway hangs or sends slowly, and a thousand turns at once.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from beaver_hooks import Host
from beaver_hooks.config import Config, parse_config
from beaver_hooks_gateway import Gateway, GatewaySettings
from beaver_hooks_gateway.testing import FakeGateway, Fault
from beaver_hooks_gateway.wire import Body, add_body, encode, flush_body, search_body
from beaver_hostspecs import Setup
from beaver_hostspecs.testing import RecordingReport, make_answer, make_turn

ROUNDS, WARM = 400, 20
TARGET = 1.3
DELAY, P95_TARGET = 0.2, 0.3
TIMEOUT, OVERRUN_TARGET = 0.2, 0.1
TURNS = 1000
TURN, ANSWER = make_turn(trust="full"), make_answer()
RESULTS = [
    {"id": f"ep_{number}", "text": "We chose PostgreSQL because it was there. " * 5, "score": 0.5, "raw": {"n": number}}
    for number in range(8)
]


async def post(client: httpx.AsyncClient, url: str, body: Body) -> None:
    """Post a body with plain httpx."""
    response = await client.post(url, content=encode(body), headers={"Content-Type": "application/json"})
    response.raise_for_status()
    assert isinstance(response.json(), dict)


async def compare(gateway: FakeGateway, folder: Path) -> dict[str, float]:
    """Return the median seconds of each side."""
    settings = GatewaySettings(base_url=gateway.base_url, user_id=gateway.user_id, user_key=gateway.user_key)
    plugin = Gateway()
    plugin.configure(Setup(settings=settings, state_folder=folder, report=RecordingReport()))
    found = search_body(settings, session=TURN.session, query=TURN.prompt, top_k=8)
    added, flushed = add_body(settings, TURN, ANSWER), flush_body(settings, session=TURN.session)
    url = f"{gateway.base_url}/memories"
    async with (
        httpx.AsyncClient(trust_env=False) as kept,
        httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)) as fresh,
    ):

        async def persisted(adding: httpx.AsyncClient) -> None:
            await post(adding, f"{url}/add", added)
            await post(kept, f"{url}/flush", flushed)

        sides: dict[str, Callable[[], Awaitable[object]]] = {
            "recall, bare": lambda: post(kept, f"{url}/search", found),
            "recall, ours": lambda: plugin.before_prompt(TURN, RecordingReport()),
            "persist, bare": lambda: persisted(fresh),
            "persist, bare on one connection": lambda: persisted(kept),
            "persist, ours": lambda: plugin.after_prompt(TURN, ANSWER, RecordingReport()),
        }
        medians = await alternate(sides)
    await plugin.stop()
    # Each side must make its own searches and adds; otherwise its time means nothing.
    made = [gateway.operations.count(operation) for operation in ("search", "add", "flush")]
    assert made == [2 * (ROUNDS + WARM), 3 * (ROUNDS + WARM), 3 * (ROUNDS + WARM)]
    return medians


async def alternate(sides: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, float]:
    """Return the median seconds of each side; the sides alternate."""
    samples: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(ROUNDS + WARM):
        for name, run in sides.items():
            started = time.perf_counter()
            await run()
            if number >= WARM:
                samples[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in samples.items()}


def config_for(gateway: FakeGateway, seconds: float) -> Config:
    """Return a configuration with this gateway."""
    return parse_config(
        f'{{"memory": {{"gateway": {{"baseUrl": "{gateway.base_url}", "userId": "{gateway.user_id}",'
        f' "userKey": "{gateway.user_key.reveal()}", "timeoutSeconds": {seconds}, "breaker": {{"enabled": false}}}}}}}}'
    )


async def opening(gateway: FakeGateway, folder: Path, *, seconds: float, times: int) -> list[float]:
    """Return the seconds of opening a turn, sorted."""
    spent = []
    config = config_for(gateway, seconds)
    async with Host(entry_points=["gateway"], config=config, state_folder=folder) as host:
        for _ in range(times):
            started = time.perf_counter()
            turn = await host.open_turn("What did we choose?", session="bench", trust="full")
            spent.append(time.perf_counter() - started)
            await turn.drop()
    return sorted(spent)


async def overrun(gateway: FakeGateway, folder: Path) -> float:
    """Return the seconds by which the slowest turn exceeds the timeout while the gateway hangs or sends slowly."""
    worst = 0.0
    for fault in (Fault.READ_TIMEOUT, Fault.SLOW_DRIP):
        gateway.misbehave("search", fault)
        spent = await opening(gateway, folder, seconds=TIMEOUT, times=10)
        worst = max(worst, spent[-1] - TIMEOUT)
    gateway.behave()
    return worst


async def crowd(gateway: FakeGateway, folder: Path) -> float:
    """Return the seconds of many simultaneous turns, including their background work."""
    config = config_for(gateway, 60)
    async with Host(entry_points=["gateway"], config=config, state_folder=folder) as host:

        async def one(number: int) -> None:
            async with host.turn("What did we choose?", session=f"s{number}", trust="full") as turn:
                await turn.commit("PostgreSQL.")

        started = time.perf_counter()
        await asyncio.gather(*[one(number) for number in range(TURNS)])
        await host.drain()
        spent = time.perf_counter() - started
        assert host.health()["gateway"].state == "ok"
    return spent


async def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with FakeGateway(results=RESULTS) as gateway:
            medians = await compare(gateway, folder)
            worst = await overrun(gateway, folder / "overrun")
            seconds = await crowd(gateway, folder / "crowd")
            gateway.delay = DELAY
            spent = await opening(gateway, folder / "p95", seconds=10, times=40)
    for side, median in medians.items():
        print(f"{side:32} {median * 1e6:8.0f} us")
    ratios = {kind: medians[f"{kind}, ours"] / medians[f"{kind}, bare"] for kind in ("recall", "persist")}
    pooled = medians["persist, ours"] / medians["persist, bare on one connection"]
    p95 = spent[int(len(spent) * 0.95) - 1]
    print(f"ratios: recall {ratios['recall']:.2f}, persist {ratios['persist']:.2f} (target {TARGET});", end=" ")
    print(f"persist against one connection for both requests {pooled:.2f}")
    print(f"p95 of opening a turn with {DELAY:.1f} s in the gateway: {p95:.3f} s (target {P95_TARGET:.1f})")
    print(f"beyond a timeout of {TIMEOUT:.1f} s: {worst:.3f} s at most (target {OVERRUN_TARGET:.1f})")
    print(f"{TURNS} turns at once: {seconds:.1f} s, {gateway.most_open} connections at most, {gateway.open} left")
    return int(max(ratios.values()) > TARGET or p95 > P95_TARGET or worst > OVERRUN_TARGET or gateway.open > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
