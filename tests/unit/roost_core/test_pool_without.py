"""The nodes that the same people would have had without learning, and the account of what it saved
and cost.
"""

from roost.controllers.headroom.accounting import week_begin
from roost_core.placement.headroom_account import (
    KEPT_CLASSES,
    KEPT_WEEKS,
    Account,
    LateClass,
    Week,
    Why,
    read_account,
)
from roost_core.placement.headroom_windows import parse_moment
from roost_core.placement.pool_without import Person, PoolFacts, PoolWithout

FACTS = PoolFacts(per_node=10, boot_seconds=240, idle_seconds=600, least_nodes=0, kept_seats=0)


def people(number: int, at: float, size: float = 1.0) -> list[Person]:
    return [Person(f"{at}-{index}", at, size) for index in range(number)]


def test_who_finds_no_room_waits_for_a_boot_and_others_fill_what_boots() -> None:
    pool, waits = PoolWithout().after(1000, people(12, 1000), [], FACTS)
    assert (waits, len(pool.waiting)) == ([], 12)
    assert (len(pool.nodes), pool.count(1100), pool.count(1240)) == (2, 0, 2)
    # Half a minute later there is room on a node that boots; once it is ready, nobody waits.
    pool, waits = pool.after(1030, people(1, 1030), [], FACTS)
    assert (waits, len(pool.nodes)) == ([], 2)
    pool, waits = pool.after(1300, people(1, 1300), [], FACTS)
    assert waits == [240] * 12 + [210, 0]
    assert (len(pool.nodes), len(pool.waiting)) == (2, 0)


def test_people_of_another_hub_take_room_and_keep_nodes_but_their_waits_do_not_count() -> None:
    neighbours = [person._replace(counts=False) for person in people(10, 1000)]
    pool, _ = PoolWithout().after(1000, neighbours, [], FACTS)
    pool, waits = pool.after(1300, people(1, 1300), [], FACTS)
    # Their node is full, so the own hub's person waits for another.
    assert (waits, len(pool.waiting), len(pool.nodes)) == ([], 1, 2)
    pool, waits = pool.after(1600, [], [], FACTS)
    assert waits == [240]
    pool, waits = pool.after(9000, [], ["1300-0"], FACTS)
    pool, waits = pool.after(9900, [], [], FACTS)
    assert (waits, len(pool.nodes)) == ([], 1)


def test_who_needs_a_new_node_also_waits_for_its_pulls() -> None:
    slow = FACTS._replace(pull_seconds=90)
    pool, _ = PoolWithout().after(1000, people(3, 1000), [], slow)
    # The node is ready, and still pulls; then it doesn't.
    pool, waits = pool.after(1300, people(1, 1300), [], slow)
    assert waits == [330, 330, 330, 30]
    _, waits = pool.after(1400, people(1, 1400), [], slow)
    assert waits == [0]


def test_who_waits_takes_a_seat_that_gets_free_and_the_node_that_booted_for_him_goes() -> None:
    pool, _ = PoolWithout().after(0, people(10, 0), [], FACTS)
    pool, _ = pool.after(300, [], [], FACTS)
    pool, _ = pool.after(310, people(3, 310), [], FACTS)
    assert len(pool.nodes) == 2
    # A class ends while the next one waits.
    pool, waits = pool.after(330, [], [f"0-{index}" for index in range(4)], FACTS)
    assert (waits, len(pool.waiting)) == ([0, 0, 0], 0)
    pool, _ = pool.after(600, [], [], FACTS)
    assert [node.used for node in pool.nodes.values()] == [9, 0]
    pool, _ = pool.after(310 + 240 + 600, [], [], FACTS)
    assert [node.used for node in pool.nodes.values()] == [9]


def test_who_waited_longest_gets_the_first_seat_and_who_goes_unseated_has_waited() -> None:
    pool, _ = PoolWithout().after(0, people(12, 0), [], FACTS)
    pool, _ = pool.after(80, [], [], FACTS)
    # Somebody left between the looks.
    pool, waits = pool.after(100, people(1, 100), ["0-0"], FACTS)
    assert waits == [80]
    pool, waits = pool.after(240, [], [], FACTS)
    assert waits == [240] * 11 + [140]
    first = sorted(key for key, (number, _) in pool.homes.items() if number == 0)
    assert first == [f"0-{index}" for index in (1, 10, *range(2, 10))]


def test_as_many_nodes_boot_as_those_who_wait_fill() -> None:
    pool, _ = PoolWithout().after(0, people(8, 0), [], FACTS)
    large = [Person("large", 10, 5.0), Person("small", 11, 2.0), Person("second large", 12, 5.0)]
    pool, _ = pool.after(20, large, [], FACTS)
    # 8 and 2, then 5 and 5.
    assert [node.ready_at for node in pool.nodes.values()] == [240, 250]
    pool, _ = pool.after(300, [], [], FACTS)
    assert [node.used for node in pool.nodes.values()] == [10, 10]


def test_people_wait_in_order_of_coming_and_each_node_counts_who_asked_for_it() -> None:
    pool, _ = PoolWithout().after(20, [Person("late", 10, 1), Person("early", 5, 1)], [], FACTS)
    assert [node.ready_at for node in pool.nodes.values()] == [245]
    assert list(pool.waiting) == ["early", "late"]
    pool, _ = PoolWithout().after(0, people(8, 0), [], FACTS)
    pool, _ = pool.after(20, [Person("a", 10, 6.0), Person("b", 12, 6.0)], [], FACTS)
    assert [node.ready_at for node in pool.nodes.values()] == [240, 250, 252]


def test_who_waits_for_a_whole_node_gets_one_when_nodes_have_room_for_less() -> None:
    pool, _ = PoolWithout().after(0, people(1, 0, 8.0), [], FACTS._replace(per_node=8))
    less = FACTS._replace(per_node=7)
    for now in range(10, 600, 10):
        pool, _ = pool.after(now, [], [], less)
    assert (len(pool.nodes), len(pool.waiting)) == (1, 0)


def test_a_clock_that_is_ahead_lets_nobody_come_after_now() -> None:
    pool, _ = PoolWithout().after(0, people(1, 50), [], FACTS)
    assert [node.ready_at for node in pool.nodes.values()] == [240]
    _, waits = pool.after(240, [], [], FACTS)
    assert waits == [240]


def test_users_go_to_the_fullest_node_and_a_node_goes_once_it_stood_empty() -> None:
    pool, _ = PoolWithout().after(0, people(12, 0), [], FACTS)
    pool, _ = pool.after(300, [], [], FACTS)
    pool, _ = pool.after(310, [Person("late", 310, 1)], [f"0-{index}" for index in range(5)], FACTS)
    # Five left on the first node, and two on the second: the first is the fullest.
    assert sorted(node.used for node in pool.nodes.values()) == [2, 6]
    everybody = list(pool.homes)
    pool, _ = pool.after(400, [], everybody, FACTS)
    pool, _ = pool.after(999, [], [], FACTS)
    assert pool.count(999) == 2
    pool, _ = pool.after(1000, [], [], FACTS)
    assert pool.count(1000) == 0


def test_who_asks_for_nothing_still_keeps_a_node() -> None:
    pool, _ = PoolWithout().after(0, [Person("a", 0, 0.0), Person("b", 0, 0.0)], [], FACTS)
    pool, _ = pool.after(300, [], [], FACTS)
    pool, _ = pool.after(310, [], ["a"], FACTS)
    pool, _ = pool.after(5000, [], [], FACTS)
    pool, _ = pool.after(5010, [], ["b"], FACTS)
    assert [node.users for node in pool.nodes.values()] == [0]


def test_the_pools_least_and_the_values_placeholders_stay_without_learning() -> None:
    kept = FACTS._replace(least_nodes=1, kept_seats=3)
    pool, _ = PoolWithout().after(0, [], [], kept)
    assert len(pool.nodes) == 1
    # Eight come: two seats are left, so another node is asked for, and nobody waited for it.
    pool, waits = pool.after(300, people(8, 300), [], kept)
    assert (waits, len(pool.nodes)) == ([0] * 8, 2)
    pool, _ = pool.after(400, [], list(pool.homes), kept)
    pool, _ = pool.after(5000, [], [], kept)
    assert len(pool.nodes) == 1


def test_it_begins_like_the_real_pool_and_larger_users_take_more() -> None:
    seats = {"a": people(3, 0), "b": [Person("large", 0, 9.0)]}
    pool = PoolWithout.like_real(seats, 1, 100)
    assert (pool.count(100), len(pool.homes)) == (3, 4)
    pool, waits = pool.after(
        110, [Person("next", 110, 1.0), Person("large too", 110, 8.0)], [], FACTS
    )
    assert waits == [0, 0]
    assert sorted(node.used for node in pool.nodes.values()) == [3, 8, 10]


def test_an_account_adds_minutes_up_to_weeks_keeps_the_last_ones_and_is_read_back() -> None:
    account = Account()
    for week in range(KEPT_WEEKS + 3):
        for _ in range(2):
            minute = Week(10_080 * week, 3, 1, 0.1, 0.5, 2.0, 1.5)
            account = account.with_minute(minute, 10_080 * week + 1)
    assert len(account.weeks) == KEPT_WEEKS
    last = account.weeks[-1]
    assert (last.people, last.late, round(last.saved_hours, 6), last.net_node_hours) == (
        6,
        2,
        0.8,
        1.0,
    )
    # Four weeks ago counts two fifths.
    assert 3.5 < account.month_node_hours < 5
    after_the_break = account.with_minute(Week(10_080 * 30), 10_080 * 30)
    assert after_the_break.month_node_hours < 0.1
    for number in range(KEPT_CLASSES + 5):
        account = account.with_late_class(LateClass(number, 40, 12, Why.MORE_CAME))
    assert len(account.late_classes) == KEPT_CLASSES
    found = read_account(account.as_json(), 10**6)
    assert found.late_classes == account.late_classes
    assert [week.people for week in found.weeks] == [week.people for week in account.weeks]


def test_a_week_begins_on_monday_at_midnight_in_the_sets_zone() -> None:
    for zone, now, monday in (
        ("UTC", "2026-10-25T12:00", "2026-10-19T00:00"),
        ("Europe/Berlin", "2026-10-28T09:00", "2026-10-26T00:00"),
        ("Europe/Berlin", "2026-10-25T12:00", "2026-10-19T00:00"),
        ("Europe/Berlin", "2026-03-29T12:00", "2026-03-23T00:00"),
        ("Asia/Kolkata", "2026-10-26T00:00", "2026-10-26T00:00"),
        ("Asia/Kolkata", "2026-10-25T23:59", "2026-10-19T00:00"),
        # No clock showed this Monday's 0:00: the week begins when clocks were set.
        ("Asia/Tehran", "2021-03-24T12:00", "2021-03-22T01:00"),
        ("Asia/Tehran", "2021-03-22T01:00", "2021-03-22T01:00"),
    ):
        minute = int(parse_moment(now, zone)) // 60
        assert week_begin(minute, zone) == int(parse_moment(monday, zone)) // 60
