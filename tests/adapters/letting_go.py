"""Waits for what a framework lets go of without a word."""

import asyncio
import gc


async def collected(host, probe):
    """Wait until the interpreter has collected what a run left behind, and its turn is dropped."""
    for _ in range(100):  # a collection that another thread has begun makes ours do nothing
        gc.collect()
        await asyncio.sleep(0)
        await host.drain()
        if probe.reasons:
            break
