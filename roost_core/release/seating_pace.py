"""How fast people's servers are started before a class, and so how long before it that begins.

Controllers keep room from then on, `roost book` says when it is, `roost seating` starts servers at
this pace (`roost/seating/plan.py`), and a rehearsal plays it.
"""

from __future__ import annotations

from typing import Final

# What a start takes, until seating has seen some.
SEATING_START_SECONDS: Final = 30.0
# Servers that seating starts first, before any of them answers. A hub ends itself when five starts
# fail in a row (z2jh's consecutiveFailureLimit), so fewer are begun before the next look.
FIRST_SEATS: Final = 3
# The most that are begun in one second, for the same reason.
SEATS_A_SECOND: Final = 4
# Without a `concurrentSpawnLimit` of the hub: z2jh's default.
_USUAL_SPAWN_LIMIT: Final = 64
# The last server answers so long before the class.
_SEATED_BEFORE_SECONDS: Final = 120.0


def seating_seconds(people: int, concurrent_spawn_limit: int, start_seconds: float) -> float:
    """How long before a class its people's servers are started, so that the last answers in time.

    concurrent_spawn_limit: the hub's; 0: it has none. start_seconds: of one start, in the nine in
    ten that are fastest.
    """
    at_once = most_seating(concurrent_spawn_limit)
    rounds = -(-people // at_once)
    # The number that starts at once doubles in each of the first rounds.
    window = FIRST_SEATS
    while window < min(people, at_once):
        window *= 2
        rounds += 1
    at_pace = people / SEATS_A_SECOND
    return _SEATED_BEFORE_SECONDS + start_seconds + max(at_pace, rounds * start_seconds)


def most_seating(concurrent_spawn_limit: int) -> int:
    """How many people's servers may be starting: half of what the hub starts at once."""
    return max(1, (concurrent_spawn_limit or _USUAL_SPAWN_LIMIT) // 2)
