"""The trust table as seen at every entrance: `make trust-matrix` prints it, `test_trust_matrix.py` checks it.

The expected cells are written by hand from the design's table "Trust and identity". Each part of memory is found by
its word in the requests to the model, in the answers of tools and commands, and in the files.
"""

import asyncio
import logging
import sys
from collections import Counter

from adapters.trust_entrances import ENTRANCES
from adapters.trust_world import OWNER, SECOND, World, found

from beaver_hostspecs import Trust

USERS = (OWNER, SECOND)
CURATED, GATEWAY, LOCAL = (
    ("notes", "profile", "second's profile"),
    ("gateway",),
    ("private", "shared", "social", "second's"),
)

EXPECTED = {
    # what                   full                      inner             familiar   public
    "curated block":        ("notes profile",         "notes profile",  "-",       "-"),
    "curated command":      ("notes profile",         "notes profile",  "-",       "-"),
    "curated tool write":   ("written",               "-",              "-",       "-"),
    "gateway recall":       ("gateway",               "gateway",        "-",       "-"),
    "gateway write":        ("written",               "written",        "-",       "-"),
    "local recall":         ("private shared social", "shared social",  "social",  "-"),
    "local command":        ("private shared social", "shared social",  "social",  "-"),
    "local tool read":      ("private shared social", "shared social",  "social",  "-"),
    "local tool write":     ("written",               "written",        "written", "-"),
    "tools offered":        ("memory memory_search memory_write", "memory_search memory_write",
                             "memory_search memory_write", "-"),
}  # fmt: skip
"""What the owner gets, by trust."""

OF_THE_SECOND = {
    "local recall":    ("second's", "-", "-", "-"),
    "local command":   ("second's", "-", "-", "-"),
    "local tool read": ("second's", "-", "-", "-"),
}  # fmt: skip
"""Where the second user gets something else: of local memories trust selects the stores, and the owner the rows."""


def expected(what, user, trust):
    """Return the cell that the design wants."""
    row = OF_THE_SECOND.get(what) if user == SECOND else None
    return (row or EXPECTED[what])[list(Trust).index(trust)]


def cells(seen, written):
    """Return what an entrance showed, by cell; without the cells that it has no way for."""
    found_there = {}
    if seen.shown is not None:
        found_there |= {
            "curated block": found(seen.shown, CURATED),
            "gateway recall": found(seen.shown, GATEWAY),
            "local recall": found(seen.shown, LOCAL),
            "gateway write": _written(written["gateway"]),
        }
    if seen.offered is not None:
        found_there["tools offered"] = (
            " ".join(sorted(seen.offered & {"memory", "memory_search", "memory_write"})) or "-"
        )
        found_there["curated tool write"] = _written(written["memory"])
        found_there["local tool write"] = _written(written["memory_write"])
    if seen.returned is not None:
        found_there["local tool read"] = found(seen.returned.get("memory_search", ""), LOCAL)
    if seen.commands is not None:
        found_there["curated command"] = found(seen.commands["curated"], CURATED)
        found_there["local command"] = found(seen.commands["local"], LOCAL)
    return found_there


def _written(yes):
    return "written" if yes else "-"


async def look(entrance, user, trust, *, per_user=False, off=False):
    """Drive one entrance over a fresh memory; return its cells. No file may change but the one that was written to.

    Args:
        entrance: its name.
        user: who uses it.
        trust: how far the user is trusted.
        per_user: whether each user has a profile.
        off: whether the user has switched memory off before.
    """
    async with World(per_user=per_user) as world:
        if off:
            async with world.host() as host:
                await host.switch_memory(on=False, user=user)
        before = world.curated_files()
        seen = await ENTRANCES[entrance](world, user, trust)
        found_there = cells(seen, world.written())
        changed = {path for path, content in world.curated_files().items() if before.get(path) != content}
    written = found_there.get("curated tool write") == "written"
    assert len(changed) == written
    assert all(path.startswith(f"users/{user}-" if per_user else "USER.md") for path in changed)
    return found_there


async def rows(entrances=tuple(ENTRANCES)):
    """Yield each cell: entrance, user, trust, what, seen, expected."""
    for entrance in entrances:
        for user in USERS:
            for trust in Trust:
                for what, value in (await look(entrance, user, trust)).items():
                    yield entrance, user, trust, what, value, expected(what, user, trust)


async def main():
    """Write the matrix to stdout, and how many of its cells are as designed."""
    logging.getLogger("beaver_hooks").setLevel(logging.CRITICAL)
    counts, wrong = Counter(), []
    shown = None
    async for entrance, user, trust, what, value, wanted in rows():
        if (entrance, user, trust) != shown:
            shown = (entrance, user, trust)
            sys.stdout.write(f"\n{entrance}, user {user}, trust {trust}\n")
        counts[value == wanted] += 1
        wrong += [] if value == wanted else [shown]
        remark = "" if value == wanted else f"   WRONG, wanted: {wanted}"
        sys.stdout.write(f"  {what:20} {value}{remark}\n")
    sys.stdout.write(f"\n{counts[True]} of {counts.total()} cells as designed, at {len(ENTRANCES)} entrances\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
