"""The imagined pool, for any people."""

from collections.abc import Iterable
from random import Random
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement import pool_without
from roost_core.placement.pool_without import Person, PoolFacts, PoolWithout

_SIZES = st.lists(st.floats(0.1, 30), max_size=6)
# (seconds since the last look, sizes of who came, shares of those present who go)
LOOKS = st.lists(st.tuples(st.floats(0, 3000), _SIZES, st.floats(0, 1)), max_size=20)


@given(
    looks=LOOKS,
    one_size=st.none() | st.floats(0.1, 30),
    per_node=st.floats(1, 50),
    boot_seconds=st.floats(0, 600),
    pull_seconds=st.floats(0, 600),
    least_nodes=st.integers(0, 3),
    kept_seats=st.integers(0, 40),
)
def test_nobody_is_lost_nodes_hold_what_fits_and_who_waits_has_a_node_that_boots(
    *,
    looks: list[tuple[float, list[float], float]],
    one_size: float | None,
    per_node: float,
    boot_seconds: float,
    pull_seconds: float,
    least_nodes: int,
    kept_seats: int,
) -> None:
    facts = PoolFacts(per_node, boot_seconds, 600.0, least_nodes, kept_seats, pull_seconds)
    pool, now, number = PoolWithout(), 0.0, 0
    present: dict[str, float] = {}
    for seconds, sizes, share in looks:
        now += seconds
        gone = list(present)[: round(share * len(present))]
        came = [
            Person(f"user-{number + index}", now, one_size or size)
            for index, size in enumerate(sizes)
        ]
        number += len(came)
        unseated = len(pool.waiting)
        pool, waits = pool.after(now, came, gone, facts)
        for key in gone:
            del present[key]
        present |= {user.key: min(per_node, user.size) for user in came}
        assert sorted(pool.people()) == sorted(present)
        # Each waits once.
        assert len(waits) == unseated + len(came) - len(pool.waiting)
        assert all(wait >= 0 for wait in waits)
        if one_size:
            assert all(wait <= boot_seconds + pull_seconds + 1e-6 for wait in waits)
        for place, node in pool.nodes.items():
            here = [size for home, size in pool.homes.values() if home == place]
            assert abs(sum(here) - node.used) < 1e-3
            assert (node.empty_since is None) == bool(here)
            assert node.used <= per_node + 1e-3
        booting = [node for node in pool.nodes.values() if node.ready_at >= now]
        assert sum(user.size for user in pool.waiting.values()) <= len(booting) * per_node + 1e-3
        assert len(pool.nodes) >= least_nodes


class PlainRooms:
    """`_NodesByUse` with a look at each node."""

    def __init__(self, per_node: float, nodes: Iterable[tuple[float, int]]) -> None:
        self.per_node = per_node
        self.used = {number: used for used, number in nodes}

    def add(self, number: int, used: float) -> None:
        self.used[number] = used

    def change(self, number: int, before: float, used: float) -> None:
        assert self.used[number] == before
        self.used[number] = used

    def has_room(self, size: float) -> bool:
        return any(used + size <= self.per_node + 1e-6 for used in self.used.values())

    def take(self, size: float) -> int | None:
        with_room = [
            (used, -number)
            for number, used in self.used.items()
            if used + size <= self.per_node + 1e-6
        ]
        if not with_room:
            return None
        number = -max(with_room)[1]
        self.used[number] += size
        return number


@given(
    seed=st.integers(0, 2**32),
    per_node=st.sampled_from([1.0, 2.5, 4.0, 10.0]),
    boot_seconds=st.sampled_from([0.0, 30.0, 240.0]),
    people=st.integers(1, 120),
)
def test_rooms_finds_the_node_that_a_look_at_each_finds(
    seed: int, per_node: float, boot_seconds: float, people: int
) -> None:
    chance = Random(seed)
    facts = PoolFacts(per_node, boot_seconds, 1e9, 0, 0)
    pool, now = PoolWithout(), 0.0
    for look in range(4):
        # Some sizes fill a node to the last bit, and some are larger than any node.
        came = [
            Person(
                f"user-{look}-{number}",
                now - chance.choice([0.0, 10.0, 60.0, chance.uniform(0, 300)]),
                chance.choice([0.1, 0.5, 1.0, 1.0, chance.uniform(0.1, 3), per_node, 11.0]),
            )
            for number in range(chance.randrange(people + 1))
        ]
        gone = chance.sample(sorted(pool.people()), len(pool.people()) // 3)
        with mock.patch.object(pool_without, "_NodesByUse", PlainRooms):
            expected = pool.after(now, came, gone, facts)
        assert pool.after(now, came, gone, facts) == expected
        pool, _ = expected
        now += 300
