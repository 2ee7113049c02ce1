"""What the clock of boots measures, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.headroom.boot_clock import LEAST_REST_SECONDS, BootClock
from roost_core.objects.node import Node
from roost_core.placement.headroom_history import MOST_BOOT_SECONDS

LOOK_SECONDS = 10
# Of the tables, which try one look each.
NOW = 1_800_000_000.0


@dataclass
class Watch:
    """A clock that looks every ten seconds."""

    now: float = 0.0
    clock: BootClock = field(default_factory=lambda: BootClock.begun(0.0))
    nodes: dict[str, Node] = field(default_factory=dict)
    # Since when each pod has waited.
    waiting: dict[str, float] = field(default_factory=dict)
    boots: list[int] = field(default_factory=list)
    # What is known of boots.
    boot_seconds: float = 240.0

    def look(self, before: Mapping[str, Node]) -> None:
        self.clock, boot = self.clock.after_look(
            before.keys(), self.nodes, list(self.waiting.values()), self.boot_seconds, self.now
        )
        if boot is not None:
            self.boots.append(boot)

    def pass_seconds(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += LOOK_SECONDS
            self.look(self.nodes)

    def add(self, name: str, *seated: str, ready: bool = True) -> None:
        """A node comes, and these pods go there; seen at once."""
        before = dict(self.nodes)
        self.nodes[name] = Node(name, ready_since=self.now if ready else None)
        self.seat(*seated)
        self.look(before)

    def wait(self, pod: str) -> None:
        self.waiting[pod] = self.now

    def seat(self, *pods: str) -> None:
        for pod in pods:
            del self.waiting[pod]


def rested(boot_seconds: float = 240.0) -> Watch:
    watch = Watch(boot_seconds=boot_seconds)
    watch.pass_seconds(max(LEAST_REST_SECONDS, boot_seconds))
    return watch


def test_a_boot_is_from_the_first_who_waits_until_the_first_node_is_ready() -> None:
    watch = rested()
    watch.wait("first")
    watch.pass_seconds(60)
    watch.wait("second")
    watch.pass_seconds(100)
    watch.add("a", ready=False)
    watch.pass_seconds(40)
    # The scheduler hasn't looked yet.
    watch.add("a")
    assert watch.boots == []
    watch.pass_seconds(10)
    watch.add("b", "first")
    assert watch.boots == [200]


def test_a_node_of_a_rush_is_not_measured_again_before_a_rest() -> None:
    watch = rested()
    watch.wait("first")
    watch.pass_seconds(200)
    watch.add("a", "first")
    watch.pass_seconds(LEAST_REST_SECONDS - 60)
    # Its node may have been asked for by a pod that is gone.
    watch.wait("second")
    watch.pass_seconds(30)
    watch.add("b", "second")
    watch.pass_seconds(LEAST_REST_SECONDS)
    watch.wait("third")
    watch.pass_seconds(300)
    watch.add("c", "third")
    assert watch.boots == [200, 300]


def test_a_rest_is_as_long_as_nodes_are_known_to_boot() -> None:
    watch = rested(boot_seconds=600.0)
    watch.wait("first")
    watch.pass_seconds(590)
    watch.add("a", "first")
    watch.pass_seconds(560)
    watch.wait("second")
    watch.pass_seconds(500)
    watch.add("b", "second")
    watch.pass_seconds(610)
    watch.wait("third")
    watch.pass_seconds(580)
    watch.add("c", "third")
    assert watch.boots == [590, 580]


def test_a_placeholder_that_is_replaced_while_it_waits_starts_no_new_clock() -> None:
    watch = rested()
    watch.wait("placeholder")
    watch.pass_seconds(150)
    watch.seat("placeholder")
    watch.pass_seconds(20)
    watch.wait("successor")
    watch.pass_seconds(100)
    watch.add("a", "successor")
    assert watch.boots == [270]


def test_boots_longer_than_any_rest_are_measured_while_the_first_waits() -> None:
    watch = rested()
    for number in range(3):
        watch.wait(f"first-{number}")
        watch.pass_seconds(1800)
        watch.add(f"node-{number}", f"first-{number}")
        watch.pass_seconds(1800)
    assert watch.boots == [1800, 1800, 1800]


def test_a_node_that_never_gets_ready_is_left_out_and_another_counts() -> None:
    watch = rested()
    watch.wait("first")
    watch.pass_seconds(120)
    watch.add("broken", ready=False)
    watch.pass_seconds(300)
    watch.add("a", "first")
    watch.pass_seconds(2 * LEAST_REST_SECONDS)
    # The broken one still stands there.
    watch.wait("second")
    watch.pass_seconds(180)
    watch.add("b", "second")
    assert watch.boots == [420, 180]


def test_a_node_that_never_gets_ready_is_not_waited_for_once_nobody_waits() -> None:
    watch = rested()
    watch.wait("first")
    watch.add("broken", ready=False)
    watch.pass_seconds(60)
    watch.seat("first")
    watch.pass_seconds(LEAST_REST_SECONDS)
    watch.wait("second")
    watch.pass_seconds(180)
    watch.add("a", "second")
    assert watch.boots == [180]


def test_a_node_that_was_ready_before_anybody_waited_teaches_nothing() -> None:
    watch = rested()
    ready_since = watch.now - 30
    watch.wait("first")
    watch.pass_seconds(10)
    watch.seat("first")
    watch.nodes["early"] = Node("early", ready_since=ready_since)
    watch.look({})
    assert watch.boots == []


def test_a_node_that_returns_under_its_name_is_new() -> None:
    watch = rested()
    watch.add("a")
    watch.pass_seconds(LEAST_REST_SECONDS)
    watch.wait("first")
    watch.pass_seconds(20)
    del watch.nodes["a"]
    watch.pass_seconds(100)
    watch.add("a", "first")
    assert watch.boots == [120]


def test_a_pod_that_waits_for_ever_teaches_nothing_and_stops_learning_for_an_hour_at_most() -> None:
    watch = rested()
    watch.wait("for a node that no pool has")
    watch.pass_seconds(MOST_BOOT_SECONDS + 20)
    watch.pass_seconds(LEAST_REST_SECONDS)
    watch.wait("user")
    watch.pass_seconds(200)
    watch.add("a", "user")
    assert watch.boots == [200]


def test_a_node_that_the_first_who_waits_does_not_get_was_not_asked_for_by_him() -> None:
    watch = rested()
    watch.wait("for a node that no pool has")
    watch.pass_seconds(600)
    watch.wait("user")
    watch.pass_seconds(240)
    watch.add("a", "user")
    watch.pass_seconds(120)
    watch.seat("for a node that no pool has")
    watch.pass_seconds(60)
    assert watch.boots == []


def test_a_node_that_comes_while_nobody_waits_is_no_rest() -> None:
    watch = rested()
    watch.add("a")
    watch.pass_seconds(100)
    watch.wait("first")
    watch.pass_seconds(150)
    watch.add("b", "first")
    assert watch.boots == []


def test_of_two_who_are_seen_at_once_the_first_counts() -> None:
    watch = rested()
    start = watch.now
    watch.waiting = {"first": start + 2, "second": start + 8}
    watch.pass_seconds(100)
    watch.add("a", "first", "second")
    assert watch.boots == [98]


def test_pods_that_wait_for_moments_ask_for_no_node() -> None:
    watch = rested()
    # Somebody left, and there was room; so each two minutes.
    for number in range(5):
        watch.wait(f"moment-{number}")
        watch.pass_seconds(20)
        watch.seat(f"moment-{number}")
        watch.pass_seconds(100)
    watch.wait("first")
    watch.pass_seconds(150)
    watch.add("a", "first")
    # It came without a rest.
    assert watch.boots == []
    watch.pass_seconds(LEAST_REST_SECONDS)
    watch.wait("second")
    watch.pass_seconds(160)
    watch.add("b", "second")
    assert watch.boots == [160]


@given(
    boot=st.integers(30, 1200),
    rush=st.lists(st.integers(0, int(LEAST_REST_SECONDS) - 50), max_size=6),
    times=st.integers(1, 4),
)
def test_no_rush_makes_a_boot_longer_or_shorter(boot: int, rush: list[int], times: int) -> None:
    """Each who waits has a node, asked for when the pod came: all take the same time."""
    watch = rested(boot)
    start = watch.now
    moments = sorted({0, *rush})
    cycle = moments[-1] + boot + max(int(LEAST_REST_SECONDS), boot) + 2 * LOOK_SECONDS
    came = [cycle * number + moment for number in range(times) for moment in moments]
    for end in range(0, cycle * times, LOOK_SECONDS):
        before = dict(watch.nodes)
        for moment in came:
            name = f"pod-{moment}"
            if end - LOOK_SECONDS < moment <= end:
                watch.waiting[name] = start + moment
            if end - LOOK_SECONDS < moment + boot <= end:
                watch.nodes[f"node-{moment}"] = Node(name, ready_since=start + moment + boot)
                watch.seat(name)
        watch.now = start + end
        watch.look(before)
    assert all(abs(measured - boot) <= LOOK_SECONDS for measured in watch.boots)
    assert len(watch.boots) == times


@pytest.mark.parametrize(
    ("asked_ago", "busy_ago", "goes_on"),
    [
        # Whoever has waited for more than an hour waits for something else than a boot.
        (3600.0, 0.0, True),
        (3601.0, 0.0, False),
        # A pod that waits is replaced within 45 s, or nobody waits any more.
        (100.0, 45.0, True),
        (100.0, 46.0, False),
    ],
)
def test_a_boot_is_measured_while_somebody_waits_for_it_and_for_an_hour_at_most(
    asked_ago: float, busy_ago: float, *, goes_on: bool
) -> None:
    clock = BootClock(NOW, busy_at=NOW - busy_ago, asked_at=NOW - asked_ago)
    after, seconds = clock.measured({}, [], NOW)
    assert (after.asked_at is not None, seconds) == (goes_on, None)
    # The rest that follows counts from when somebody waited last.
    assert after.busy_at == NOW - busy_ago


@pytest.mark.parametrize(
    ("boot_seconds", "rest"), [(100.0, 300.0), (301.0, 301.0), (899.0, 899.0), (2000.0, 900.0)]
)
def test_a_boot_is_measured_after_a_rest_as_long_as_nodes_boot_within_limits(
    boot_seconds: float, rest: float
) -> None:
    for rested, begins in ((rest - 0.5, False), (rest, True)):
        clock = BootClock(NOW - 10, busy_at=NOW - rested)
        after, _ = clock.after_look(set(), {}, [NOW - 5, NOW - 2], boot_seconds, NOW)
        assert (after.asked_at, after.busy_at) == (NOW - 5 if begins else None, NOW)


@pytest.mark.parametrize(("waited", "counts"), [(899.5, True), (900.0, False)])
def test_who_has_waited_for_a_quarter_of_an_hour_asked_for_no_node(
    waited: float, *, counts: bool
) -> None:
    clock = BootClock(NOW - 10, busy_at=NOW - 2000)
    after, _ = clock.after_look(set(), {}, [NOW - waited], 100.0, NOW)
    assert (after.asked_at is not None) == counts


@pytest.mark.parametrize(
    ("waiting", "is_rest"), [([NOW - 1000], False), ([NOW - 2000], True), ([], True)]
)
def test_only_who_asked_for_the_node_ends_a_rest_after_a_quarter_of_an_hour(
    waiting: list[float], *, is_rest: bool
) -> None:
    clock = BootClock(NOW - 10, busy_at=NOW - 20, asked_at=NOW - 1000)
    after, _ = clock.after_look(set(), {}, waiting, 100.0, NOW)
    assert after.busy_at == (NOW - 20 if is_rest else NOW)


@pytest.mark.parametrize(
    ("passed", "goes_on"), [(0.0, True), (300.0, True), (300.5, False), (-0.5, False)]
)
def test_after_a_pause_or_a_clock_set_back_nothing_is_measured(
    passed: float, *, goes_on: bool
) -> None:
    clock = BootClock(NOW - passed, busy_at=NOW - 10, asked_at=NOW - 100)
    after, _ = clock.after_look(set(), {}, [NOW - 100], 100.0, NOW)
    assert (after.asked_at is not None) == goes_on


@pytest.mark.parametrize(
    ("seconds", "boot"), [(0.0, None), (1.0, 1), (3600.0, 3600), (3601.0, None)]
)
def test_a_boot_lasts_from_who_waited_first_until_the_node_is_ready(
    seconds: float, boot: int | None
) -> None:
    clock = BootClock(NOW, busy_at=NOW, asked_at=NOW - seconds, known=frozenset({"old"}))
    nodes = {
        "old": Node("old", ready_since=NOW - seconds - 500),
        "boots": Node("boots"),
        "new": Node("new", ready_since=NOW),
    }
    after, measured = clock.measured(nodes, [], NOW)
    assert (after.asked_at, measured) == (None, boot)


@pytest.mark.parametrize(("ready_ago", "goes_on"), [(59.5, True), (60.0, False)])
def test_who_still_waits_a_minute_after_a_node_got_ready_did_not_ask_for_it(
    ready_ago: float, *, goes_on: bool
) -> None:
    clock = BootClock(NOW, busy_at=NOW, asked_at=NOW - 200)
    nodes = {"new": Node("new", ready_since=NOW - ready_ago)}
    after, measured = clock.measured(nodes, [NOW - 200], NOW)
    assert (after.asked_at is not None, measured) == (goes_on, None)
