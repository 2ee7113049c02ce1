"""Skip nodes of a repository's ring that already have more than their share of builds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

# Below this, a difference is rounding: 1.1 x 50 / 5 must not count as more than 11.
_ROUNDING = 1e-9


# A node with fewer builds is never skipped. Without it, any busy node would count as overloaded
# while few builds run, and a repository would leave its home.
MIN_LOAD: Final = 4


def load_bound(running: int, nodes: int, max_load: float) -> int:
    """Return how many builds a node may have before the next build skips it.

    max(MIN_LOAD, ceil(max_load x (running + 1) / nodes)). running: builds on all nodes, including
    those not bound yet. nodes: those of the ring that the build's own rules admit; others take no
    share of the builds. Source: Mirrokni, Thorup and Zadimoghaddam, "Consistent hashing with
    bounded loads", 2016; the minimum is ours.
    """
    return max(MIN_LOAD, math.ceil(max_load * (running + 1) / nodes - _ROUNDING))


def choose_homes(
    candidates: Sequence[str],
    loads: Mapping[str, int],
    *,
    running: int,
    nodes: int,
    max_load: float,
) -> list[str]:
    """Return the candidates (best first) that aren't overloaded; if all are, all of them, the least
    loaded first.

    nodes: as in `load_bound`. max_load 0: no node is ever overloaded.
    """
    if max_load == 0 or not candidates:
        return list(candidates)
    bound = load_bound(running, nodes, max_load)
    free = [node for node in candidates if loads.get(node, 0) < bound]
    return free or sorted(candidates, key=lambda node: loads.get(node, 0))
