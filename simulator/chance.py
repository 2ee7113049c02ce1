"""Draw numbers that belong to what they are for, not to the order of draws.

Two replays of one trace under different policies then share every session's length, every image's size and every boot
time of the n-th node, so that a difference between them is the policy's. A draw is a hash of (seed, what for, whose).
"""

from __future__ import annotations

from hashlib import blake2b
from math import exp
from statistics import NormalDist
from typing import Final

_NORMAL: Final = NormalDist()
_SPAN: Final = float(1 << 64)


class Chance:
    """All draws of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._key = seed.to_bytes(16, "little", signed=True)

    def uniform(self, purpose: str, whose: object) -> float:
        """A number in (0, 1), always the same for this seed, purpose and owner."""
        digest = blake2b(f"{purpose}\0{whose}".encode(), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "little") + 0.5) / _SPAN

    def below(self, purpose: str, whose: object, number: int) -> int:
        """A whole number in 0..number-1."""
        return min(number - 1, int(self.uniform(purpose, whose) * number))

    def log_normal(self, purpose: str, whose: object, median: float, sigma: float) -> float:
        """A log-normal draw."""
        return median * exp(sigma * _NORMAL.inv_cdf(self.uniform(purpose, whose)))
