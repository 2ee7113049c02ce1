"""What seats are worth: from which price on a node is had, and what nodes cost, by sums by hand."""

import pytest

from roost_core.placement.headroom_account import Account, Week
from roost_core.placement.headroom_worth import (
    Ceiling,
    Worth,
    cost_between,
    least_ceiling,
    seats_worth,
    worth_of,
)


def cost_by_hand(share: float, per_node: int, ahead_minutes: int, idle_minutes: float) -> float:
    """Node-hours that a node is expected to cost. share: how likely anybody comes there."""
    alone = share * 4 / 60 + (1 - share) * (ahead_minutes + idle_minutes) / 60
    # Others keep a node eight times as long, and up to thirty where nodes are asked for earlier.
    shared = 8 + 22 * (min(max(ahead_minutes, 4), 15) - 4) / 11
    return alone * (1 + (shared - 1) * (per_node - 1) / per_node)


@pytest.mark.parametrize("per_node", [1, 2, 18])
@pytest.mark.parametrize("ahead_minutes", [3, 4, 5, 9, 12, 15, 16, 40])
@pytest.mark.parametrize(("people", "percent"), [(1, 100), (1, 20), (18, 60), (50, 100)])
def test_a_node_is_had_as_soon_as_the_waiting_that_it_saves_is_worth_its_cost(
    people: int, percent: int, ahead_minutes: int, per_node: int
) -> None:
    share = percent / 100
    hours_saved = share * min(people, per_node) * ahead_minutes / 60
    price = cost_by_hand(share, per_node, ahead_minutes, 10) / hours_saved
    needs = [(float(people), percent), (0.0, 100 - percent)]
    assert seats_worth(needs, worth_of(0.999 * price, per_node, ahead_minutes)) == 0
    had = seats_worth(needs, worth_of(1.001 * price, per_node, ahead_minutes))
    # Of people who come together, all nodes are had but the last one, if fewer use it.
    assert had == people - people % per_node or had == people <= per_node
    # Beside users there is room for some.
    assert seats_worth(needs, worth_of(1.001 * price, per_node, ahead_minutes), people) == 0
    needs = [(float(people + 7), percent), (0.0, 100 - percent)]
    assert seats_worth(needs, worth_of(1.001 * price, per_node, ahead_minutes), 7) == had + 7


def test_for_how_long_an_empty_node_stays_is_a_part_of_its_cost() -> None:
    # Six minutes until it is there, and an hour until it is removed.
    assert worth_of(1, 1, 6, 3600).unused_hours == pytest.approx(1.1)
    needs = [(1.0, 1.0), (0.0, 3.0)]
    for idle_minutes in (1, 10, 30):
        price = cost_by_hand(0.25, 1, 6, idle_minutes) / (0.25 * 0.1)
        for factor, seats in ((0.999, 0), (1.001, 1)):
            assert seats_worth(needs, worth_of(factor * price, 1, 6, 60.0 * idle_minutes)) == seats
    # What is kept all the time is neither removed nor asked for again.
    price = cost_by_hand(0.25, 1, 6, 0) / (0.25 * 0.1)
    for factor, seats in ((0.999, 0), (1.001, 1)):
        assert seats_worth(needs, worth_of(factor * price, 1, 6).going_on()) == seats


def test_a_node_that_saves_as_much_as_it_costs_is_had() -> None:
    worth = Worth(node_hours=1, per_node=1, wait_hours=1, unused_hours=3, used_hours=1)
    assert seats_worth([(1.0, 1.0)], worth) == 1
    assert seats_worth([(1.0, 3.0), (0.0, 1.0)], worth) == 0


def test_seats_that_are_needed_more_seldom_than_once_in_a_hundred_times_add_none_to_a_node() -> (
    None
):
    worth = worth_of(1000, 20, 6)
    for often, seats in ((1, 12), (0.9, 5)):
        needs = [(12.0, often), (5.0, 60.0), (0.0, 40.0 - often)]
        assert seats_worth(needs, worth) == seats
    # A node that is had for some has a seat, however rare each number of people is.
    assert seats_worth([(float(people), 1.0) for people in range(200)], worth) > 180
    assert seats_worth([(0.6, 0.9), (0.0, 99.1)], worth_of(10**6, 20, 6)) == 1
    assert seats_worth([(0.4, 100.0)], worth_of(10**6, 20, 6)) == 1


def test_where_nobody_comes_or_nothing_is_worth_a_wait_no_seat_is_had() -> None:
    worth = worth_of(10, 20, 6)
    for needs in ([], [(5.0, 0.0)], [(0.0, 1.0)]):
        assert seats_worth(needs, worth) == 0
    assert seats_worth([(5.0, 1.0)], worth_of(0, 20, 6)) == 0
    # Without a node that was seen, one placeholder is taken to fill it.
    assert worth_of(10, 0, 6).per_node == 1


def test_nodes_cost_by_how_likely_each_is_used() -> None:
    worth = Worth(node_hours=1, per_node=10, wait_hours=1, unused_hours=3, used_hours=1)
    needs = [(25.0, 1.0), (10.0, 1.0), (5.0, 2.0)]
    # Of nodes for the seats from 0, 10 and 20 on: used always, and in a quarter of all cases.
    assert cost_between(needs, worth, 0, 10) == 1
    assert cost_between(needs, worth, 0, 11) == 1 + 2.5
    assert cost_between(needs, worth, 0, 30) == 1 + 2.5 + 2.5
    assert cost_between(needs, worth, 5, 15) == 0.5 * 1 + 0.5 * 3
    assert cost_between(needs, worth, 30, 30) == 0


def ceiling_of(account: Account, monthly_ceiling: float | None = None) -> Ceiling:
    return Ceiling.of(
        account, waiting_hour_price=4, node_hour_price=0.5, monthly_ceiling=monthly_ceiling
    )


def test_without_a_ceiling_it_grows_with_the_busiest_of_five_weeks() -> None:
    # 50 hours of waiting.
    assert ceiling_of(Account()).most == 200
    small = Week(0, node_hours=500, node_hours_without=490)
    assert ceiling_of(Account((small,))).most == 200
    # 700 node-hours a week are 3,000 in thirty days. At 0.5 they cost 1,500, and 15 % are 225.
    busy = Week(0, node_hours=740, node_hours_without=700)
    assert ceiling_of(Account((busy, small, small, small, small))).most == pytest.approx(225)
    assert ceiling_of(Account((busy, small, small, small, small, small))).most == 200
    # One price in other money doesn't raise it.
    assert (least_ceiling(4, 60), least_ceiling(600, 0.4)) == (200, 200)
    assert least_ceiling(600, 60) == 30_000
    # Who sets a ceiling has no other.
    assert ceiling_of(Account((busy,)), monthly_ceiling=20).most == 20
    assert ceiling_of(Account((busy,)), monthly_ceiling=0).most == 0


def test_the_ceiling_counts_the_money_of_thirty_days() -> None:
    ceiling = ceiling_of(Account(month_node_hours=300), monthly_ceiling=200)
    assert ceiling == (150, 200)
    worth = worth_of(8, 20, 6)
    assert ceiling.cut(worth).node_hours == 8 * 0.25
    assert Ceiling(-1, 0.5).left == 1
    assert Ceiling(0, -1).left == 0
