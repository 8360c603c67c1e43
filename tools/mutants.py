"""Mutation testing by sample: changes the source in some places, one at a time, and asks `make test` to notice.

`python tools/mutants.py` chooses 100 mutants over all parts, by a seed, and runs for each the tests that execute the
changed lines, then the rest of the quick tests. It prints the survivors and exits with 1 when fewer than 95 % were
killed. The changes are made in copies of the tree. Outcomes are kept in `build/mutants` until a source or a test
changes, so a run that was interrupted goes on where it stopped.
"""

import argparse
import difflib
import fnmatch
import json
import queue
import random
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from mutant_tests import STORED, Baseline, baseline, fingerprint, killers
from mutations import Mutation, mutations
from tree_copies import ROOT, copy_tree, end_all, listed, write_source

FOLDERS = {
    "contract": "hostspecs/beaver_hostspecs",
    "toolkit": "toolkit/beaver_toolkit",
    "memory": "memory/beaver_memory",
    "curated": "plugins/curated/src",
    "gateway": "plugins/gateway/src",
    "local": "plugins/local/src",
}
"""The parts; the host is one part for each of its packages."""

EXCLUDED = {
    "*/beaver_memory/store/conformance.py": "tests for authors of stores",
    "*/beaver_memory/testing/store_cases/*": "tests for authors of stores",
    "*/beaver_hostspecs/conformance/hosts/*": "tests for authors of hosts, tested by a campaign of their own mutants",
    "*/beaver_hostspecs/conformance/plugins/*": "tests for authors of plugins, tested by such a campaign too",
}
"""Modules without mutants, each with its reason; those that `make test-adapters` measures are left out too."""

SHARE = 0.95


class Mutant(NamedTuple):
    """One mutation of one module."""

    part: str
    path: str
    mutation: Mutation

    def __str__(self) -> str:
        """Return where it is and what it changes."""
        return f"{self.path}:{self.mutation.lines[0]}: {self.mutation.what}"

    def diff(self) -> str:
        """Return the change as a unified diff."""
        text = (ROOT / self.path).read_text("utf-8")
        new = self.mutation.apply(text)
        lines = difflib.unified_diff(text.splitlines(), new.splitlines(), self.path, self.path, lineterm="", n=2)
        return "\n".join(lines)


class Outcome(NamedTuple):
    """What killed a mutant, or `None`, and after how many seconds."""

    killer: str | None
    seconds: float


def parts() -> dict[str, list[str]]:
    """Return the modules of each part."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    omitted = (*EXCLUDED, *settings["tool"]["coverage"]["run"]["omit"])
    found: dict[str, list[str]] = {}
    for path in listed("*.py"):
        part = next((name for name, folder in FOLDERS.items() if path.startswith(f"{folder}/")), None)
        if path.startswith("beaver_hooks/"):
            part = "/".join(("host", *path.split("/")[1:-1][:1]))
        if part and not any(fnmatch.fnmatch(f"/{path}", pattern) for pattern in omitted):
            found.setdefault(part, []).append(path)
    return found


def shares(sizes: dict[str, int], count: int) -> dict[str, int]:
    """Split a number by sizes: whole shares first, then one more for the largest remainders."""
    exact = {name: count * size / sum(sizes.values()) for name, size in sizes.items()}
    whole = {name: int(share) for name, share in exact.items()}
    left = sorted(exact, key=lambda name: whole[name] - exact[name])[: count - sum(whole.values())]
    return {name: whole[name] + (name in left) for name in sizes}


def chosen(modules: dict[str, list[str]], count: int, seed: int) -> Iterator[Mutant]:
    """Choose mutants in each part by its lines: places first, as one line may have many mutants."""
    texts = {path: (ROOT / path).read_text("utf-8") for paths in modules.values() for path in paths}
    sizes = {part: sum(texts[path].count("\n") for path in paths) for part, paths in modules.items()}
    for part, share in shares(sizes, count).items():
        choice = random.Random(f"{seed} {part}")  # noqa: S311 - a sample, no secret
        places: dict[tuple[str, int], list[Mutant]] = {}
        for path in modules[part]:
            for mutation in mutations(texts[path]):
                places.setdefault((path, mutation.lines[0]), []).append(Mutant(part, path, mutation))
        for place in choice.sample(sorted(places), min(share, len(places))):
            yield choice.choice(places[place])


def at(place: str) -> Iterator[Mutant]:
    """Return every mutant of a file, or of one line of it."""
    path, _, line = place.partition(":")
    for mutation in mutations((ROOT / path).read_text("utf-8")):
        if line in ("", str(mutation.lines[0])):
            yield Mutant("chosen", path, mutation)


def judged(mutant: Mutant, known: Baseline, tree: Path, *, whole: bool) -> Outcome:
    """Run the tests on a mutant, in a copy of the tree, until one fails."""
    first, last = mutant.mutation.lines
    # What runs at import has effects wherever the module is used.
    near = known.tests(mutant.path, () if mutant.mutation.at_import else range(first, last + 1))
    begin, text = time.monotonic(), (tree / mutant.path).read_text("utf-8")
    write_source(tree / mutant.path, mutant.mutation.apply(text))
    try:
        killer = next(filter(None, killers(near, known, tree, whole=whole)), None)
    finally:
        write_source(tree / mutant.path, text)
    return Outcome(killer, round(time.monotonic() - begin))


def run(mutants: list[Mutant], known: Baseline, workers: int, *, whole: bool) -> Iterator[tuple[Mutant, Outcome]]:
    """Yield the outcome of each mutant; those that an earlier run stored come first."""
    state, stored = fingerprint(known.quick), STORED / "outcomes.json"
    outcomes = json.loads(stored.read_text("utf-8")) if stored.is_file() else {}
    outcomes = outcomes.get("outcomes", {}) if outcomes.get("fingerprint") == state else {}
    keys = {mutant: json.dumps(mutant[1:]) for mutant in mutants}
    yield from ((mutant, Outcome(*outcomes[key])) for mutant, key in keys.items() if key in outcomes)
    left = [mutant for mutant, key in keys.items() if key not in outcomes]
    for mutant, outcome in run_copies(left, known, workers, whole=whole):
        if whole or outcome.killer:
            outcomes[keys[mutant]] = outcome
            stored.write_text(json.dumps({"fingerprint": state, "outcomes": outcomes}), "utf-8")
        yield mutant, outcome


def run_copies(
    mutants: list[Mutant], known: Baseline, workers: int, *, whole: bool
) -> Iterator[tuple[Mutant, Outcome]]:
    """Yield the outcome of each mutant, from copies of the tree side by side."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(workers) as pool:
        trees: queue.Queue[Path] = queue.Queue()
        for number in range(workers):
            trees.put(copy_tree(Path(folder) / str(number)))

        def judge(mutant: Mutant) -> tuple[Mutant, Outcome]:
            tree = trees.get()
            try:
                return mutant, judged(mutant, known, tree, whole=whole)
            finally:
                trees.put(tree)

        try:
            yield from (done.result() for done in as_completed([pool.submit(judge, mutant) for mutant in mutants]))
        finally:  # an interrupt leaves no test running
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()


def report(outcomes: list[tuple[Mutant, Outcome]]) -> int:
    """Print the survivors and a table by part, and return the exit code."""
    survivors = [mutant for mutant, outcome in outcomes if outcome.killer is None]
    for mutant in survivors:
        print(f"\nsurvived: {mutant}\n{mutant.diff()}")
    total = Counter(mutant.part for mutant, _ in outcomes)
    alive = Counter(mutant.part for mutant in survivors)
    print(f"\n{'part':20} mutants killed")
    for part in sorted(total):
        print(f"{part:20} {total[part]:7} {total[part] - alive[part]:6}")
    killed = len(outcomes) - len(survivors)
    print(f"{'all':20} {len(outcomes):7} {killed:6}  {killed / max(1, len(outcomes)):.1%}, at least {SHARE:.0%} wanted")
    return int(killed < SHARE * len(outcomes))


def options() -> argparse.Namespace:
    """Return the options of the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="another number chooses other mutants")
    parser.add_argument("--part", action="append", choices=parts(), help="may be given more than once")
    parser.add_argument("--only", metavar="FILE[:LINE]", help="every mutant of a file or a line, in place of a sample")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--workers", type=int, default=2, help="how many mutants side by side")
    parser.add_argument(
        "--tests", default="", help="options of pytest that choose tests, in place of `make test`'s choice"
    )
    parser.add_argument(
        "--stale", action="store_true", help="use the stored run of the tests though files have changed"
    )
    parser.add_argument("--near", action="store_true", help="run no tests but those that execute the lines")
    return parser.parse_args()


def main() -> int:
    """Choose mutants, run the tests on each and print what survives."""
    given, modules = options(), parts()
    modules = {part: modules[part] for part in given.part or modules}
    mutants = list(at(given.only) if given.only else chosen(modules, given.count, given.seed))
    if given.list:
        print(*mutants, sep="\n")
        return 0
    known = baseline(given.tests, stale=given.stale)
    for test in known.failed:
        print(f"left out, as it fails without a mutant: {test}")
    outcomes = []
    for number, (mutant, outcome) in enumerate(run(mutants, known, given.workers, whole=not given.near), 1):
        outcomes.append((mutant, outcome))
        verdict = f"killed by {outcome.killer}" if outcome.killer else "SURVIVED"
        print(f"{number}/{len(mutants)} {mutant}: {verdict} ({outcome.seconds} s)", flush=True)
    return report(outcomes)


if __name__ == "__main__":
    # A shell ignores it for what runs in the background, and tests of Ctrl-C would fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; the next run goes on from here")
