"""One total over hubs: never exceeded, shared evenly among those who want more, and open at once to those who don't."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.runtime.budget import WINDOW_SECONDS, MinuteBudget
from roost.controllers.runtime.fair_shares import KEPT_PART, FairShares

if TYPE_CHECKING:
    from roost.controllers.runtime.fair_shares import Share

# Few enough turns for many examples.
CYCLE_SECONDS = 6.0


class Hubs:
    """Hubs whose turns come one after the other, another one first in each cycle."""

    def __init__(self, total: int, limits: list[int]) -> None:
        self.now = 1000.0
        self.total = FairShares(total, lambda: self.now)
        self.shares = [self.total.share(limit) for limit in limits]
        # What each still wants to do.
        self.wants = [0.0] * len(limits)
        # When each has acted.
        self.acted: list[list[float]] = [[] for _ in limits]
        self._cycles = 0

    def cycle(self, seconds: float = CYCLE_SECONDS) -> None:
        count = len(self.shares)
        self.total.divide(self.shares, count)
        for index in range(count):
            self._turn((index + self._cycles) % count)
        self._cycles += 1
        self.now += seconds

    def _turn(self, hub: int) -> None:
        share = self.shares[hub]
        share.begin_turn()
        # Who wants more than all may do lists little more than that.
        for _ in range(int(min(self.wants[hub], self.total.per_minute + 2))):
            if share.take():
                self.wants[hub] -= 1
                self.acted[hub].append(self.now)
            else:
                assert share.hold_back() > 0.0


@given(st.data())
def test_no_minute_holds_more_than_the_total_or_than_a_hubs_own_limit(data: st.DataObject) -> None:
    total = data.draw(st.integers(0, 12), label="total")
    limits = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=5), label="limits")
    hubs = Hubs(total, limits)
    for _ in range(data.draw(st.integers(1, 25), label="cycles")):
        hubs.wants = [float(data.draw(st.integers(0, 6))) for _ in limits]
        hubs.cycle(data.draw(st.sampled_from([0.0, 0.2, 7.0, 31.0, 61.0])))
    for acted, limit in (
        (sorted(at for each in hubs.acted for at in each), total),
        *zip(hubs.acted, limits, strict=True),
    ):
        for index, at in enumerate(acted):
            assert sum(other - at <= WINDOW_SECONDS for other in acted[index:]) <= limit


@given(st.integers(1, 6), st.lists(st.floats(0.0, 70.0), max_size=60))
def test_a_hub_that_is_alone_has_what_a_budget_of_its_own_would_give(limit: int, gaps: list[float]) -> None:
    hubs = Hubs(limit, [limit])
    (share,) = hubs.shares
    own = MinuteBudget(limit, lambda: hubs.now)
    hubs.total.divide([share], 1)
    for gap in gaps:
        hubs.now += gap
        share.begin_turn()
        assert share.left == own.left
        assert share.take() == own.take()


@given(st.integers(1, 6), st.integers(0, 30), st.integers(8, 40))
def test_what_idle_hubs_leave_goes_to_who_wants_it_but_for_a_part(idle: int, cycles: int, total: int) -> None:
    hubs = Hubs(total, [10_000] * (1 + idle))
    hubs.wants[0] = math.inf
    for _ in range(cycles + 2):
        hubs.cycle()
    minutes = int((cycles + 1) * CYCLE_SECONDS // (WINDOW_SECONDS + CYCLE_SECONDS)) + 1
    assert len(hubs.acted[0]) >= (total - total // KEPT_PART) * minutes


# As many hubs as the kept part has room for.
@given(st.integers(1, 16 // KEPT_PART - 1), st.integers(0, 30), st.integers(16, 40))
def test_a_hub_that_begins_to_act_in_anothers_storm_acts_in_its_first_turn(noisy: int, cycles: int, total: int) -> None:
    hubs = Hubs(total, [10_000] * (noisy + 1))
    hubs.wants[:noisy] = [math.inf] * noisy
    for _ in range(cycles):
        hubs.cycle()
    hubs.wants[noisy] = 1.0
    hubs.cycle()
    assert hubs.wants[noisy] == 0.0


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 25), st.integers(4, 40))
def test_nobody_waits_longer_than_a_minute_for_an_equal_share(noisy: int, quiet: int, cycles: int, total: int) -> None:
    hubs = Hubs(total, [10_000] * (noisy + quiet))
    hubs.wants[:noisy] = [math.inf] * noisy
    for _ in range(cycles):
        hubs.cycle()
    share = total // (noisy + quiet)
    hubs.wants[noisy:] = [float(share)] * quiet
    for _ in range(int(WINDOW_SECONDS / CYCLE_SECONDS) + 3):
        hubs.cycle()
    assert hubs.wants[noisy:] == [0.0] * quiet


@given(st.integers(2, 15), st.integers(1, 6))
def test_more_hubs_than_actions_take_turns(count: int, total: int) -> None:
    hubs = Hubs(total, [10_000] * count)
    hubs.wants = [math.inf] * count
    minutes = math.ceil(count / total) + 2
    for _ in range(int(minutes * (WINDOW_SECONDS + 2) / CYCLE_SECONDS)):
        hubs.cycle()
    assert min(map(len, hubs.acted)) >= 1


@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(8, 40))
def test_shares_are_even_where_all_want_more(limits: list[int], total: int) -> None:
    hubs = Hubs(total, limits)
    hubs.wants = [math.inf] * len(limits)
    for _ in range(int(6 * WINDOW_SECONDS / CYCLE_SECONDS)):
        hubs.cycle()
    done = [len(acted) / 6 for acted in hubs.acted]
    level = water_level(limits, total)
    for each, limit in zip(done, limits, strict=True):
        assert each >= 0.6 * min(limit, level) - 1


def test_replicas_divide_the_total_by_the_hubs_that_they_act_for() -> None:
    totals = [FairShares(20, lambda: 0.0) for _ in range(2)]
    shares: list[Share] = [total.share(20) for total in totals for _ in range(2)]
    totals[0].divide(shares[:1], 4)
    totals[1].divide(shares[1:], 4)
    assert [total.per_minute for total in totals] == [5, 15]


def water_level(limits: list[int], total: int) -> float:
    """The largest level to which all limits can be filled with `total`."""
    left, level = float(total), 0.0
    for index, limit in enumerate(sorted(limits)):
        step = min(limit - level, left / (len(limits) - index))
        level += step
        left -= step * (len(limits) - index)
    return level
