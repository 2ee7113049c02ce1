"""Since when nodes are there and Ready: by the program's own clock, whatever the cluster's clocks say."""

import math
from dataclasses import replace

import pytest

from roost.controllers.contract.snapshot import Moment, Sight, Snapshot, see
from roost_core.objects.node import Node

WALL = 1_800_000_000.0


def node(skew: float, *, ready: bool = True) -> Node:
    """A node that came and got ready just now, by clocks that are ahead of ours by `skew`."""
    return Node(name="a", uid="a", created=WALL + skew, ready_since=WALL + skew if ready else None)


@pytest.mark.parametrize("skew", [-3600.0, -60.0, 0.0, 60.0, 3600.0])
def test_what_a_program_sees_come_is_as_old_as_its_own_clock_says(skew: float) -> None:
    joined = see(node(skew, ready=False), None, Moment(WALL, 100.0), 0.0)
    assert (joined.created, joined.ready_since) == (100.0, None)
    # Meanwhile our clock jumped, too.
    ready = see(node(skew), joined, Moment(WALL + 7200, 130.0), 0.0)
    later = see(node(skew), ready, Moment(WALL - 7200, 160.0), 0.0)
    assert ready == later == Sight("a", 100.0, 130.0, WALL + skew)


def test_what_was_there_at_the_start_is_as_old_as_its_timestamps_say_but_not_of_the_future() -> None:
    now = Moment(WALL, 100.0)
    assert see(node(-60.0), None, now, math.inf) == Sight("a", 40.0, 40.0, WALL - 60)
    assert see(node(60.0), None, now, math.inf) == Sight("a", 100.0, 100.0, WALL + 60)
    assert Snapshot("hub", "hub").sight_of(node(-60.0), now).created == 40.0


def test_a_node_that_gets_ready_again_or_is_another_machine_counts_anew() -> None:
    first = see(node(0.0), None, Moment(WALL, 100.0), 0.0)
    again = see(replace(node(0.0), ready_since=WALL + 50), first, Moment(WALL + 51, 151.0), 0.0)
    assert (again.created, again.ready_since) == (100.0, 151.0)
    assert see(node(0.0, ready=False), again, Moment(WALL + 60, 160.0), 0.0).ready_since is None
    assert see(replace(node(0.0), uid="b"), again, Moment(WALL + 60, 160.0), 0.0).created == 160.0
