"""Measures the share of the evidence that is found, and prints tables of it.

*any@k*: the share of questions with at least one piece of evidence among the first k. *frac@k*: the mean share of the
evidence among the first k.
"""

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

import attrs
import numpy as np

Ranking = tuple[tuple[str, ...], tuple[str, ...]]
"""The evidence of a question, and the found keys, best first."""


def any_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return any@k."""
    return _mean(bool(set(evidence) & set(found[:k])) for evidence, found in rankings)


def frac_at(rankings: Sequence[Ranking], k: int) -> float:
    """Return frac@k."""
    return _mean(len(set(evidence) & set(found[:k])) / len(evidence) for evidence, found in rankings)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return float(np.mean(found)) if found else float("nan")


def flat(rankings: Sequence[Sequence[Ranking]]) -> list[Ranking]:
    """Return the rankings of several stores as one list."""
    return [each for store in rankings for each in store]


def noise(rankings: Sequence[Ranking], k: int = 10) -> float:
    """Return half the width of the 95 % interval of frac@k, assuming that the questions are a random sample."""
    each = [len(set(evidence) & set(found[:k])) / len(evidence) for evidence, found in rankings]
    return float(1.96 * np.std(each) / max(1, len(each)) ** 0.5)


def interval(values: Sequence[object], figure: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
    """Return the 95 % interval of a figure of some values, by 2,000 samples of them; `figure` takes many samples."""
    known = np.array(values, float)
    drawn = np.random.default_rng(7).integers(0, len(known), (2_000, len(known)))
    found = figure(np.moveaxis(known[drawn], 1, -1)) if known.ndim == 1 else figure(known[drawn])
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


@attrs.define
class Targets:
    """Records the missed targets."""

    missed: list[str] = attrs.field(factory=list)

    def most(self, what: str, value: float, most: float) -> None:
        """Print whether a value stays within its target."""
        met = value <= most
        print(f"  {what:<66} {value:8.3f}  {'met' if met else 'MISSED'} (target <= {most:g})", flush=True)
        if not met:
            self.missed.append(what)

    def least(self, what: str, value: float, least: float) -> None:
        """Print whether a value reaches its target."""
        met = value >= least
        print(f"  {what:<66} {value:8.3f}  {'met' if met else 'MISSED'} (target >= {least:g})", flush=True)
        if not met:
            self.missed.append(what)


def heading(title: str, columns: Sequence[str], width: int = 46) -> None:
    """Print the head of a table."""
    print(f"\n{title}\n{'':<{width}}" + "".join(f"{each:>10}" for each in columns), flush=True)


def row(name: str, values: Iterable[float | str], width: int = 46) -> None:
    """Print a line of a table."""
    cells = (f"{each:>10}" if isinstance(each, str) else f"{each:>10.3f}" for each in values)
    print(f"{name:<{width}}" + "".join(cells), flush=True)


def machine(*packages: str) -> str:
    """Return a description of the machine, Python and the packages."""
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{where}, Python {platform.python_version()}; {versions}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "from the checkout"
