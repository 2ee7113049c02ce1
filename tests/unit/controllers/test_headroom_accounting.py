"""What learning saves and costs, look by look, and what is seen of a set's nodes for it."""

from typing import Any

import pytest

from roost.controllers.headroom.accounting import (
    Accounting,
    Minute,
    Seats,
    after_minute,
    count_since_last_look,
    pulls_seen,
)
from roost.controllers.headroom.pool_view import PoolUser, PoolView, asked_by_placeholder
from roost_core.objects.node import Node
from roost_core.objects.selectors import NodeRules
from roost_core.placement.headroom_account import Account, Why
from roost_core.placement.headroom_history import History
from roost_core.release.placeholder_sets import PlaceholderSet

NO_SEATS = Seats(0, 0, 0)

NOW = 1_800_000_000.0
MINUTE = int(NOW // 60)
ONE_NODE = History(per_node=10)


def user(
    created: float, *, node: str = "", waits: bool = False, runs: bool = False, size: float = 1.0
) -> PoolUser:
    return PoolUser(created, size, node, created if waits else None, runs)


def node(name: str, *, ready: bool = True, since: float = NOW) -> Node:
    return Node(name, {}, uid=name, ready=ready, ready_since=since if ready else None)


def view(*nodes: Node, **more: Any) -> PoolView:
    given: dict[str, Any] = {
        "users": {},
        "level": 0.0,
        "room": 0,
        "spare": 0,
        "per_node": 10,
        "waiting_since": None,
        "empty": frozenset(),
        "kept_by_learning": frozenset(),
        "of_others": frozenset(),
        "roomiest": (0, 0),
    }
    return PoolView(nodes={one.name: one for one in nodes}, **{**given, **more})


def look(before: Accounting, seen: PoolView, now: float, kept_seats: int = 0) -> Accounting:
    return count_since_last_look(before, seen, ONE_NODE, kept_seats, now)


def test_who_waits_for_a_node_has_waited_since_the_last_look_at_most() -> None:
    begun = look(Accounting(), view(), NOW)
    for waited, counted in (
        (20, 20),
        (30, 30),
        (31, 31),
        (60, 60),
        (900, 60),
        (3600, 60),
        (3601, 0),
        (-30, 0),
    ):
        waiting = {"a": user(NOW + 60 - waited, waits=True)}
        after = look(begun, view(users=waiting), NOW + 60)
        assert after.pending.waited_hours == pytest.approx(counted / 3600)
        assert after.pending.people == 1
        assert after.pending.late == (30 < waited <= 3600)
    # Whoever was late already isn't late once more.
    waiting = {"a": user(NOW - 40, waits=True)}
    first = look(look(begun, view(users=waiting), NOW + 60), view(users=waiting), NOW + 120)
    assert first.pending.late == 1
    assert first.pending.people == 1
    # Thirty seconds are no long time.
    at_first = look(Accounting(), view(users={"a": user(NOW - 30), "b": user(NOW - 31)}), NOW)
    assert at_first.late == {"b"}


def test_who_has_no_server_on_a_new_node_waits_for_its_pulls() -> None:
    for ready_for, runs, waited, counted in (
        (100, False, 80, 60),
        (100, False, 40, 40),
        (100, True, 80, 0),
        (900, False, 80, 60),
        (901, False, 80, 0),
        (100, False, 3600, 60),
        (100, False, 3601, 0),
    ):
        now = NOW + 60
        users = {"a": user(now - waited, node="n", runs=runs)}
        nodes = [node("n", since=now - ready_for)]
        after = look(look(Accounting(), view(*nodes), NOW), view(*nodes, users=users), now)
        assert after.pending.waited_hours == pytest.approx(counted / 3600)
        assert after.pending.late == 0


def test_pulls_are_told_by_who_came_before_the_node_was_ready() -> None:
    for created, ready_for, expected in (
        (NOW - 300, 200, [200]),
        (NOW - 200, 200, [200]),
        (NOW - 199, 200, []),
        (NOW - 2000, 900, [900]),
        (NOW - 2000, 901, []),
        # It has just got ready, or the API server's clock is ahead.
        (NOW - 2000, 0, [0]),
        (NOW - 2000, -1, []),
    ):
        nodes = [node("n", since=NOW - ready_for)]
        before = view(*nodes, users={"a": user(created, node="n")})
        after = view(*nodes, users={"a": user(created, node="n", runs=True)})
        assert pulls_seen(before, after, NOW) == expected
        # Who had one before, or wasn't there, says nothing.
        assert pulls_seen(after, after, NOW) == []
        assert pulls_seen(view(), after, NOW) == []
        assert pulls_seen(before, before, NOW) == []


def test_nodes_count_while_they_are_ready_and_the_sets_own() -> None:
    nodes = [node("a"), node("b", ready=False), node("c")]
    begun = look(Accounting(), view(*nodes), NOW)
    after = look(begun, view(*nodes, of_others=frozenset({"c"})), NOW + 120)
    assert after.pending.node_hours == pytest.approx(120 / 3600)
    # What the same people would have had: nothing is needed, and both look alike at first.
    empty = frozenset({"a", "c"})
    begun = look(Accounting(), view(*nodes, empty=empty), NOW)
    after = look(begun, view(*nodes, empty=empty), NOW + 120)
    assert after.pending.node_hours_without == pytest.approx(2 * 120 / 3600)


def of_both_hubs(
    *nodes: Node,
    ours: dict[str, PoolUser],
    theirs: dict[str, PoolUser],
    our_seats: int = 0,
    their_seats: int = 0,
) -> tuple[PoolView, PoolView]:
    """The same nodes as the releases of two hubs see them."""

    def seen_by(
        users: dict[str, PoolUser], seats: int, neighbours: dict[str, PoolUser], their_seats: int
    ) -> PoolView:
        return view(
            *nodes,
            users=users,
            level=sum(each.size for each in users.values()),
            placeholders=seats,
            neighbours=neighbours,
            placeholders_of_neighbours=float(their_seats),
        )

    return seen_by(ours, our_seats, theirs, their_seats), seen_by(
        theirs, their_seats, ours, our_seats
    )


def test_a_node_with_users_of_two_hubs_is_told_once_by_both_together() -> None:
    nodes = [node("n"), node("m")]
    ours = {"a": user(NOW, node="n"), "b": user(NOW, node="n"), "c": user(NOW, node="m")}
    theirs = {"d": user(NOW, node="n", size=2.0)}
    # A node of one hub's placeholders alone: half of all that is taken is theirs.
    both = of_both_hubs(*nodes, node("p"), ours=ours, theirs=theirs, their_seats=1)
    begun = of_both_hubs(*nodes, ours=ours, theirs=theirs)
    afters = [
        look(look(Accounting(), before, NOW), after, NOW + 60)
        for before, after in zip(begun, both, strict=True)
    ]
    assert [after.pending.node_hours for after in afters] == pytest.approx([1.5 / 60, 1.5 / 60])
    # Without learning there would be two nodes. Each hub counts its own people.
    assert [after.pending.node_hours_without for after in afters] == pytest.approx([1 / 60] * 2)
    assert [after.pending.people for after in afters] == [0, 0]


def test_a_node_that_another_hubs_users_keep_would_be_there_without_learning() -> None:
    theirs = {"d": user(NOW, node="n")}
    ours = {"a": user(NOW, node="n")}
    now = NOW
    accounting = look(Accounting(), of_both_hubs(node("n"), ours=ours, theirs=theirs)[0], now)
    left, _ = of_both_hubs(node("n"), ours={}, theirs=theirs, our_seats=1)
    for _ in range(20):
        now += 60
        accounting = look(accounting, left, now)
    assert accounting.pending.node_hours == pytest.approx(10 / 60)
    assert accounting.pending.net_node_hours == pytest.approx(0)
    # Then nobody is there, and it is told by whom it was last.
    gone, _ = of_both_hubs(node("n"), ours={}, theirs={})
    accounting = look(accounting, gone, now + 60)
    assert accounting.pending.node_hours == pytest.approx(10.5 / 60)


def test_who_comes_to_another_hub_takes_room_and_neither_counts_nor_waits_here() -> None:
    begun = look(Accounting(), view(), NOW)
    seen = view(neighbours={f"d{number}": user(NOW, waits=True) for number in range(10)})
    after = look(begun, seen, NOW + 40)
    assert (after.pending.people, after.pending.late, after.late) == (0, 0, frozenset())
    assert (after.pending.waited_hours, after.pending.waited_without) == (0, 0)
    ready = view(node("n"), neighbours={f"d{number}": user(NOW) for number in range(10)})
    after = look(after, ready, NOW + 300)
    assert after.pending.waited_without == 0
    assert after.without is not None
    assert len(after.without.homes) == 10


def test_the_fewest_placeholders_that_another_hub_has_would_be_there_without_learning() -> None:
    two = [node("n"), node("m")]
    nobody: dict[str, PoolUser] = {}
    first, _ = of_both_hubs(*two, ours=nobody, theirs=nobody, their_seats=14)
    fewer, _ = of_both_hubs(*two, ours=nobody, theirs=nobody, their_seats=11)
    accounting = look(look(Accounting(), first, NOW), fewer, NOW + 60)
    more = look(accounting, first, NOW + 120)
    assert more.least_of_neighbours == 11
    now = NOW + 120
    for _ in range(30):
        now += 60
        more = look(more, first, now)
    assert more.without is not None
    assert more.without.count(now) == 2
    # A week begins: it is found anew.
    monday = MINUTE - MINUTE % (7 * 1440) + 4 * 1440
    past = Accounting(least_of_neighbours=3.0, minutes=(Minute(monday - 2, 0, 0, NO_SEATS),))
    after, _ = after_minute(past, Account(), monday, NO_SEATS, "UTC")
    assert after.least_of_neighbours is None


def test_after_a_pause_or_a_clock_set_back_counting_begins_anew() -> None:
    begun = look(Accounting(), view(node("a")), NOW)
    for passed, hours in ((0, 0), (300, 300 / 3600), (301, 0), (-1, 0)):
        after = look(begun, view(node("a")), NOW + passed)
        assert after.pending.node_hours == pytest.approx(hours)
        assert after.looked_at == NOW + passed
    unknown = count_since_last_look(begun, view(node("a")), History(), 0, NOW + 60)
    assert (unknown.without, unknown.looked_at) == (None, NOW + 60)


def test_an_empty_nodes_time_is_the_middle_of_the_last_ten_that_were_seen_to_go() -> None:
    accounting = look(Accounting(), view(), NOW)
    now = NOW
    for seconds in (60.0, 60.0, 120.0):
        assert accounting.idle_seconds == 600
        accounting = look(accounting, view(node("n"), empty=frozenset({"n"})), now)
        now += seconds
        accounting = look(accounting, view(), now)
    assert accounting.idle_seconds == 60
    for _ in range(8):
        accounting = look(accounting, view(node("n"), empty=frozenset({"n"})), now)
        now += 240
        accounting = look(accounting, view(), now)
    assert accounting.idle == (60.0, 120.0, *[240.0] * 8)
    # Who had users since didn't stand empty.
    accounting = look(accounting, view(node("n"), empty=frozenset({"n"})), now)
    accounting = look(accounting, view(node("n")), now + 60)
    assert len(look(accounting, view(), now + 120).idle) == 10
    # Of a node that stood for hours, one counts.
    days = Accounting(without=accounting.without, looked_at=now, empty_since={"n": now - 9000})
    assert look(days, view(), now).idle == (3600.0,)


def test_the_pools_least_is_what_was_there_without_nodes_for_placeholders_alone() -> None:
    three = [node("a"), node("b"), node("c")]
    begun = look(Accounting(), view(*three), NOW)
    assert begun.least_nodes == 3
    fewer = look(begun, view(*three[:2], of_others=frozenset({"b"})), NOW + 60)
    assert fewer.least_nodes == 1
    assert look(fewer, view(*three), NOW + 120).least_nodes == 1
    kept = look(begun, view(node("a"), kept_by_learning=frozenset({"a"})), NOW + 60)
    assert kept.least_nodes == 3
    # A week begins: it is found anew.
    monday = MINUTE - MINUTE % (7 * 1440) + 4 * 1440
    for minute, least in ((monday - 1, 3), (monday, None)):
        past = Accounting(least_nodes=3, minutes=(Minute(monday - 2, 0, 0, NO_SEATS),))
        after, _ = after_minute(past, Account(), minute, NO_SEATS, "UTC")
        assert after.least_nodes == least


def classes(*told: tuple[int, int, int, Seats]) -> list[tuple[int, int, int, Why]]:
    """told: minutes from 0 on with people, late ones and seats."""
    accounting, account = Accounting(), Account()
    by_minute = {minute: (people, late, seats) for minute, people, late, seats in told}
    for minute in range(70):
        people, late, seats = by_minute.get(minute, (0, 0, NO_SEATS))
        pending = accounting.pending._replace(people=people, late=late)
        accounting = Accounting(
            pending=pending, minutes=accounting.minutes, late_since=accounting.late_since
        )
        accounting, account = after_minute(accounting, account, 10_000 + minute, seats, "UTC")
    return [
        (late_class.minute - 10_000, late_class.people, late_class.late, late_class.why)
        for late_class in account.late_classes
    ]


@pytest.mark.parametrize(
    ("seats", "why"),
    [
        (Seats(0, 0, 0), Why.NOT_KNOWN),
        (Seats(9, 9, 9), Why.NOT_KNOWN),
        (Seats(10, 10, 10), Why.MORE_CAME),
        (Seats(29, 29, 29), Why.MORE_CAME),
        (Seats(30, 30, 30), Why.NODE_LATE),
        (Seats(10, 29, 29), Why.MORE_CAME),
        (Seats(10, 30, 30), Why.CEILING),
        (Seats(0, 30, 30), Why.CEILING),
        (Seats(0, 30, 60), Why.CEILING),
        (Seats(10, 10, 29), Why.MORE_CAME),
        (Seats(10, 10, 30), Why.MOST),
        (Seats(0, 29, 30), Why.MOST),
        (Seats(30, 30, 60), Why.NODE_LATE),
    ],
)
def test_a_class_is_told_with_who_came_around_it_and_what_was_forecast_before(
    seats: Seats, why: Why
) -> None:
    many = Seats(99, 99, 99)
    told = classes(
        (9, 50, 0, many), (10, 7, 0, seats), (20, 9, 4, many), (35, 24, 1, many), (36, 70, 0, many)
    )
    assert told == [(20, 40, 5, why)]


def test_fewer_than_five_late_people_are_no_class_and_the_next_class_begins_later() -> None:
    assert classes((20, 9, 4, NO_SEATS)) == []
    two_classes = classes((5, 9, 5, NO_SEATS), (40, 8, 8, NO_SEATS))
    assert [(minute, people) for minute, people, _, _ in two_classes] == [(5, 9), (40, 8)]


def test_what_a_placeholder_takes_is_counted_as_pods_have_it() -> None:
    requests = {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": 1, "odd": "x"}
    placeholder_set = PlaceholderSet(
        name="a", stateful_set="a", label="a", rules=NodeRules(), replicas=0, requests=requests
    )
    assert asked_by_placeholder(placeholder_set) == {
        "pods": 1,
        "cpu": 1500,
        "memory": 2**30,
        "nvidia.com/gpu": 1,
        "odd": 0,
    }
