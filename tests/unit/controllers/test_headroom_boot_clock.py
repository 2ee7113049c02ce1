"""Which boots are measured, and when one is given up because nobody will say how long it took."""

import pytest

from roost.controllers.headroom.boot_clock import BootClock
from roost_core.objects.node import Node

NOW = 1_800_000_000.0


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
