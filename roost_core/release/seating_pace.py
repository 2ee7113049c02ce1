"""How fast people's servers are started before a class, and so how long before the class it begins.

Controllers keep room from this time on, and `roost book` says when it is. `roost seating` starts
servers at this pace (`roost/seating/plan.py`), and a rehearsal plays it.
"""

from __future__ import annotations

from math import ceil
from typing import Final

# What a start takes, until seating has seen some.
SEATING_START_SECONDS: Final = 30.0
# Servers that seating starts first, before any of them answers. A hub ends itself when five starts
# fail in a row (z2jh's consecutiveFailureLimit), so fewer are begun before the next look.
FIRST_SEATS: Final = 3
# The most starts that begin in a second, for the same reason.
SEATS_A_SECOND: Final = 4
# `concurrentSpawnLimit` if the hub's values have none: z2jh's default.
_USUAL_SPAWN_LIMIT: Final = 64
# How long before the class the last server answers.
_SEATED_BEFORE_SECONDS: Final = 120.0


def seating_seconds(people: int, concurrent_spawn_limit: int, start_seconds: float) -> float:
    """How many seconds before a class starts begin, so that the last server answers in time.

    people: of the class. concurrent_spawn_limit: the hub's; 0: it has none. start_seconds: the
    longest time of a start, if the slowest tenth of the starts is left out.
    """
    at_once = most_seating(concurrent_spawn_limit)
    rounds = ceil(people / at_once)
    # The number that starts at once doubles in each of the first rounds.
    window = FIRST_SEATS
    while window < min(people, at_once):
        window *= 2
        rounds += 1
    at_pace = people / SEATS_A_SECOND
    return _SEATED_BEFORE_SECONDS + start_seconds + max(at_pace, rounds * start_seconds)


def most_seating(concurrent_spawn_limit: int) -> int:
    """The most servers that may be starting for seating: half of what the hub starts at once."""
    return max(1, (concurrent_spawn_limit or _USUAL_SPAWN_LIMIT) // 2)
