from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.runtime.budget import MinuteBudget


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


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
