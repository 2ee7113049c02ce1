"""Since when nodes are asked for: for any people who wait, or stop waiting."""

from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.headroom.node_requests import GIVEN_UP_SECONDS, Waiter, requests_after

LOOK_SECONDS = 10.0


@given(
    per_node=st.integers(1, 5),
    looks=st.lists(
        # How many begin to wait, how many stop without a node, and how many nodes come.
        st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 2)),
        max_size=int(GIVEN_UP_SECONDS / LOOK_SECONDS) - 1,
    ),
)
def test_each_node_that_comes_was_asked_for_when_the_autoscaler_asked(
    *, per_node: int, looks: list[tuple[int, int, int]]
) -> None:
    asked: list[float] = []
    requests: tuple[float, ...] = ()
    waited: dict[str, Waiter] = {}
    waiting: dict[str, Waiter] = {}
    vacant = 0
    for number, (begin, stop, come) in enumerate(looks):
        now = number * LOOK_SECONDS
        for _ in range(min(come, len(asked))):
            assert requests[0] == asked.pop(0)
            requests = requests[1:]
            vacant += per_node
            while waiting and vacant:
                del waiting[next(iter(waiting))]
                vacant -= 1
        for key in list(waiting)[:stop]:
            del waiting[key]
        seated = min(vacant, begin)
        vacant -= seated
        for place in range(begin - seated):
            waiting[f"{number}-{place}"] = Waiter(now, 1.0)
        while len(asked) * per_node < len(waiting):
            asked.append(now)
        requests = requests_after(
            requests, waited, waiting, vacant=vacant, per_node=per_node, now=now
        )
        assert list(requests) == asked
        waited = dict(waiting)


@given(
    sizes=st.lists(st.floats(0, 100), max_size=30),
    vacant=st.integers(0, 200),
    per_node=st.integers(0, 50),
)
def test_what_nobody_waits_for_is_given_up_and_what_is_waited_for_stays(
    *, sizes: list[float], vacant: int, per_node: int
) -> None:
    waiting = {str(place): Waiter(0.0, size) for place, size in enumerate(sizes)}
    asked = requests_after((), {}, waiting, vacant=vacant, per_node=per_node, now=0.0)
    later = GIVEN_UP_SECONDS + 1
    again = requests_after(asked, waiting, waiting, vacant=vacant, per_node=per_node, now=later)
    assert again == asked
    assert requests_after(asked, waiting, {}, vacant=vacant, per_node=per_node, now=later) == ()
