"""Measures the cost of importing the host and the contract, compared with importing their dependencies alone.

Every import runs in a new interpreter. The sides alternate. The fastest of many runs counts, because every disturbance
makes a run slower. The target applies to the ratio of whole processes. The output also has a stricter ratio, which
subtracts the start of the bare interpreter on both sides.
"""

import subprocess
import sys
import time

import attrs

ROUNDS = 25
BARE = "pass"


@attrs.frozen(kw_only=True)
class Comparison:
    """Two imports, and the allowed ratio of the first to the second."""

    ours: str
    floor: str
    target: float


COMPARISONS = (
    Comparison(ours="from beaver_hooks import Host", floor="import pluggy, attrs, structlog", target=1.7),
    Comparison(ours="import beaver_hostspecs", floor="import pluggy, attrs", target=1.3),
)


def seconds(code: str) -> float:
    """Return the seconds that a new interpreter takes for `code`."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def fastest() -> dict[str, float]:
    """Return the fastest run of each side."""
    sides = [BARE, *[code for each in COMPARISONS for code in (each.ours, each.floor)]]
    for code in sides:  # compile, and warm the file cache
        seconds(code)
    runs = [{code: seconds(code) for code in sides} for _ in range(ROUNDS)]
    return {code: min(run[code] for run in runs) for code in sides}


def judged(comparison: Comparison, best: dict[str, float]) -> bool:
    """Print one comparison; return whether the target is met."""
    ours, floor, bare = best[comparison.ours], best[comparison.floor], best[BARE]
    ratio, strict = ours / floor, (ours - bare) / (floor - bare)
    met = ratio <= comparison.target
    print(f"  {comparison.ours:29} {ratio:5.2f} x `{comparison.floor}`; without the bare start {strict:5.2f} x")
    alone = "met" if strict <= comparison.target else "MISSED"
    print(f"    target: at most {comparison.target} x: {'met' if met else 'MISSED'}; of the imports alone: {alone}")
    return met


def main() -> int:
    """Measure, print, and return the exit code."""
    best = fastest()
    print(f"best of {ROUNDS} interleaved runs in fresh interpreters, Python {sys.version.split()[0]}:")
    for code, spent in best.items():
        print(f"  {spent * 1000:8.1f} ms   {code}")
    met = [judged(comparison, best) for comparison in COMPARISONS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
