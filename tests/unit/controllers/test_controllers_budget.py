from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.runtime.budget import WINDOW_SECONDS, MinuteBudget


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(
    st.integers(min_value=0, max_value=6),
    st.lists(st.one_of(st.just(0.0), st.floats(min_value=0.0, max_value=90.0)), max_size=200),
    st.booleans(),
)
def test_no_minute_ever_holds_more_than_the_budget(per_minute: int, gaps: list[float], starts_spent: bool) -> None:
    clock = Clock()
    budget = MinuteBudget(per_minute, clock)
    if starts_spent:
        budget.spend_all()
    taken = []
    for gap in gaps:
        clock.now += gap
        if budget.take():
            taken.append(clock.now)
    for index, at in enumerate(taken):
        within = [one for one in taken[index:] if one - at <= WINDOW_SECONDS]
        assert len(within) <= per_minute


def test_a_new_leader_waits_out_the_minute_before_it() -> None:
    clock = Clock()
    budget = MinuteBudget(3, clock)
    budget.spend_all()
    assert not budget.take()
    wait_seconds = budget.seconds_until_next()
    assert WINDOW_SECONDS <= wait_seconds <= WINDOW_SECONDS + 0.01
    clock.now += wait_seconds
    assert [budget.take() for _ in range(4)] == [True, True, True, False]


def test_a_budget_of_nothing_is_never_worth_waiting_for() -> None:
    budget = MinuteBudget(0, Clock())
    budget.spend_all()
    assert not budget.take()
    assert budget.seconds_until_next() == float("inf")


@given(st.integers(min_value=1, max_value=5))
def test_waiting_as_long_as_it_says_is_enough(per_minute: int) -> None:
    clock = Clock()
    budget = MinuteBudget(per_minute, clock)
    while budget.take():
        clock.now += 1.0
    clock.now += budget.seconds_until_next()
    assert budget.take()
