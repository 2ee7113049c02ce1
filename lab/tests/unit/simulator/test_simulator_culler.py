"""The hub's culler ends all servers of a replay at its looks; the lengths that a trace tells
stay.
"""

import pytest

from lab.tests.small_worlds import BEGIN, WatchedHub, WatchedWorld, attempt, play, small
from lab.tests.small_worlds import without_pullers as bare
from roost_lab.simulator.engine.entities import SimPod

pytestmark = pytest.mark.slow

EVERY = 600.0


def ends(
    seed: int, name: str = "z2jh", stays: float | None = None, every: float = EVERY
) -> dict[int, float]:
    said = [
        attempt(number, 61.0 * number, image=f"i{number % 3}", session_seconds=stays)
        for number in range(40)
    ]
    found: dict[int, float] = {}

    class EndingHub(WatchedHub):
        def _end(self, pod: SimPod) -> None:
            assert pod.launch is not None
            found[pod.launch.attempt.number] = self._cluster.now
            super()._end(pod)

    class Ending(WatchedWorld):
        hub_type = EndingHub

    # Somebody comes when all others have gone.
    play(
        [*said, attempt(40, 200_000.0)],
        bare(name),
        small(room=40, cull_every_seconds=every),
        seed,
        make=Ending,
    )
    return found


def test_all_servers_of_a_replay_end_at_the_looks_of_one_culler() -> None:
    found = ends(1)
    assert len(found) == 40
    phases = {round(moment % EVERY, 3) for moment in found.values()}
    assert len(phases) == 1
    assert {round(moment % EVERY, 3) for moment in ends(2).values()} != phases
    assert {round(moment % EVERY, 3) for moment in ends(1, "kube-default").values()} == phases


def test_a_session_is_no_shorter_than_drawn_and_by_less_than_a_round_longer() -> None:
    with_culler, alone = ends(1), ends(1, every=0.0)
    assert all(0 <= with_culler[number] - alone[number] < EVERY for number in alone)
    assert len(set(with_culler.values())) < len(set(alone.values())) == 40


def test_lengths_that_a_trace_tells_stay_as_they_are() -> None:
    assert ends(1, stays=1234.0) == ends(1, stays=1234.0, every=0.0)
    assert min(ends(1, stays=1234.0).values()) > BEGIN + 1234
