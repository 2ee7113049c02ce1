"""Draw random numbers that depend on what they are for, not on the order of the draws.

A draw is a hash of the seed, of its purpose, and of its owner: whose number it is. So two replays
of one trace under different policies have the same length of each session, the same size of each
image and the same boot time of the n-th node. A difference between them is then the policies'.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import count
from math import exp
from statistics import NormalDist
from struct import Struct
from typing import Final

_NORMAL: Final = NormalDist()
_SPAN: Final = float(1 << 64)
_EIGHT: Final = Struct("<8Q")


class Chance:
    """All draws of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._key = seed.to_bytes(16, "little", signed=True)

    def uniform(self, purpose: str, whose: object) -> float:
        """A number between 0 and 1, both excluded: the same for equal seed, purpose and owner.

        whose: the owner; its text counts.
        """
        digest = blake2b(f"{purpose}\0{whose}".encode(), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "little") + 0.5) / _SPAN

    def below(self, purpose: str, whose: object, number: int) -> int:
        """A whole number in 0..number-1."""
        return min(number - 1, int(self.uniform(purpose, whose) * number))

    def uniforms(self, purpose: str) -> Iterator[float]:
        """Endless numbers between 0 and 1, both excluded, for draws without an owner.

        They depend on the order of the draws: the n-th number is always the same.
        """
        for block in count():
            digest = blake2b(f"{purpose}\0{block}".encode(), digest_size=64, key=self._key).digest()
            for number in _EIGHT.unpack(digest):
                yield (number + 0.5) / _SPAN

    def log_normal(self, purpose: str, whose: object, median: float, sigma: float) -> float:
        """A log-normal number. sigma: the standard deviation of its natural logarithm."""
        return median * exp(sigma * _NORMAL.inv_cdf(self.uniform(purpose, whose)))
