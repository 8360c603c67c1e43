"""The share of each signal in the scores, computed on first access. Pure."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np


class Shares(Mapping[str, np.ndarray]):
    """Shares by signal, each times a factor.

    Args:
        shares: the share of each signal, before the factor.
        factor: the factor for all shares.
    """

    def __init__(self, shares: Mapping[str, np.ndarray], factor: float) -> None:
        self._shares = shares
        self._factor = factor

    def times(self, factor: float) -> "Shares":
        """Return the same shares, multiplied by another factor as well."""
        return Shares(self._shares, self._factor * factor)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    @cached_property
    def _made(self) -> Mapping[str, np.ndarray]:
        # Importance and confidence have fewer digits than the scores that they are a share of.
        return {name: np.multiply(share, self._factor, dtype="f8") for name, share in self._shares.items()}
