"""The hub's culler ends all servers of a replay at its looks, by idle time and age; the lengths
that a trace tells stay, unless another idle time is asked for.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.tests.small_worlds import BEGIN, WatchedHub, WatchedWorld, attempt, play, small
from lab.tests.small_worlds import without_pullers as bare
from roost_lab.simulator.engine.entities import SimPod

pytestmark = pytest.mark.slow

EVERY = 600.0


def ends(
    seed: int, name: str = "z2jh", stays: float | None = None, every: float = EVERY, **assumed: Any
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
        small(room=40, cull_every_seconds=every, **assumed),
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


def test_another_idle_time_changes_each_drawn_length_by_the_difference() -> None:
    # Drawn lengths contain mybinder.org's 600 s.
    alone = ends(1, every=0.0)
    longer = ends(1, every=0.0, cull_timeout_seconds=3600.0)
    assert {round(longer[number] - alone[number], 3) for number in alone} == {3000.0}
    shorter = ends(1, every=0.0, cull_timeout_seconds=1800.0)
    assert {round(longer[number] - shorter[number], 3) for number in alone} == {1800.0}


@given(
    stays=st.floats(1.0, 20_000.0),
    contained=st.floats(1.0, 7200.0),
    timeout=st.floats(1.0, 7200.0),
    waited=st.floats(0.0, 1200.0),
)
@settings(max_examples=30)
def test_a_told_length_changes_by_the_difference_or_is_no_cullers(
    stays: float, contained: float, timeout: float, waited: float
) -> None:
    limits: dict[str, Any] = {
        "cull_timeout_seconds": timeout,
        "sessions_cull_timeout_seconds": contained,
        "sessions_cull_every_seconds": waited,
    }
    as_told = ends(1, stays=stays, every=0.0)
    found = ends(1, stays=stays, every=0.0, **limits)
    for number, end in found.items():
        change = end - as_told[number]
        if stays <= contained:
            assert change == 0
        else:
            # A server ran for the idle time at least, and what was waited for the culler is drawn.
            least = max(timeout - stays, timeout - contained - waited)
            assert least - 0.01 <= change <= timeout - contained + 0.01


def test_who_stops_their_server_waits_for_no_culler() -> None:
    alone = ends(1, every=0.0)
    stopped = ends(1, cull_timeout_seconds=3600.0, stopped_share=1.0)
    assert {round(alone[number] - stopped[number], 3) for number in alone} == {600.0}
    some = ends(1, every=0.0, cull_timeout_seconds=3600.0, stopped_share=0.5)
    assert len({round(some[number] - alone[number], 3) for number in alone}) == 2
    # Of a trace nobody knows who did: their lengths stay.
    told = ends(1, stays=5000.0, every=0.0)
    assert told == ends(1, stays=5000.0, cull_timeout_seconds=60.0, stopped_share=1.0)


@pytest.mark.parametrize("stays", [None, 9000.0])
def test_no_server_becomes_older_than_the_greatest_age_and_a_look(stays: float | None) -> None:
    oldest = 1000.0
    as_long = ends(1, stays=stays, every=0.0)
    found = ends(1, stays=stays, cull_max_age_seconds=oldest)
    begun = {number: BEGIN + 61.0 * number for number in found}
    assert all(found[number] - begun[number] >= oldest for number in found)
    # Waiting for the server comes on top.
    assert all(found[number] - begun[number] < oldest + EVERY + 300 for number in found)
    assert any(found[number] < as_long[number] for number in found)
