"""The imagined pool, for any people."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement.pool_without import Came, PoolFacts, PoolWithout

# (seconds since the last look, sizes of who came, shares of those present who go)
LOOKS = st.lists(
    st.tuples(st.floats(0, 3000), st.lists(st.floats(0.1, 30), max_size=6), st.floats(0, 1)),
    max_size=20,
)


@given(
    looks=LOOKS,
    per_node=st.floats(1, 50),
    boot_seconds=st.floats(0, 600),
    pull_seconds=st.floats(0, 600),
    least_nodes=st.integers(0, 3),
    kept_seats=st.integers(0, 40),
)
def test_nobody_is_lost_nodes_hold_what_fits_and_nobody_waits_longer_than_a_boot_and_pull(
    *,
    looks: list[tuple[float, list[float], float]],
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
        came = [Came(f"user-{number + index}", now, size) for index, size in enumerate(sizes)]
        number += len(came)
        pool, waits = pool.after(now, came, gone, facts)
        for key in gone:
            del present[key]
        present |= {user.key: user.size for user in came}
        assert all(0 <= wait <= boot_seconds + pull_seconds + 1e-6 for wait in waits)
        assert pool.homes.keys() == present.keys()
        for place, node in pool.nodes.items():
            here = [size for home, size in pool.homes.values() if home == place]
            assert abs(sum(here) - node.used) < 1e-3
            assert (node.empty_since is None) == bool(here)
            assert node.used <= per_node + 1e-3 or len(here) == 1
        assert len(pool.nodes) >= least_nodes


@given(
    seed=st.integers(0, 2**32),
    per_node=st.sampled_from([1.0, 2.5, 4.0, 10.0]),
    boot_seconds=st.sampled_from([0.0, 30.0, 240.0]),
    people=st.integers(1, 120),
)
def test_everybody_goes_to_the_fullest_ready_node_with_room_or_the_fullest_that_boots(
    seed: int, per_node: float, boot_seconds: float, people: int
) -> None:
    chance = Random(seed)
    facts = PoolFacts(per_node, boot_seconds, 1e9, 0, 0)
    pool, now = PoolWithout(), 0.0
    for look in range(4):
        # Some sizes fill a node to the last bit, and some are larger than any node.
        came = [
            Came(
                f"user-{look}-{number}",
                now + chance.choice([0.0, 10.0, 60.0, chance.uniform(0, 300)]),
                chance.choice([0.1, 0.5, 1.0, 1.0, chance.uniform(0.1, 3), per_node, 11.0]),
            )
            for number in range(chance.randrange(people + 1))
        ]
        gone = chance.sample(sorted(pool.homes), len(pool.homes) // 3)
        expected = {key: home for key, home in pool.homes.items() if key not in gone}
        # Of each node: since when it is ready, how much is used, and by how many.
        before, _ = pool.after(now, [], gone, facts)
        nodes = {
            number: [node.ready_at, node.used, node.users] for number, node in before.nodes.items()
        }
        number = before.next_number
        for user in sorted(came, key=lambda user: user.at):
            with_room = [
                (ready_at <= user.at, used, -place)
                for place, (ready_at, used, users) in nodes.items()
                if not users or used + user.size <= per_node + 1e-6
            ]
            place = -max(with_room)[2] if with_room else number
            if not with_room:
                nodes[place] = [user.at + boot_seconds, 0.0, 0]
                number += 1
            nodes[place][1] += user.size
            nodes[place][2] += 1
            expected[user.key] = (place, user.size)
        pool, _ = pool.after(now, came, gone, facts)
        assert pool.homes == expected
        now += 300
