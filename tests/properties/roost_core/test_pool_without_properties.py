"""The imagined pool, for any people."""

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
