"""A passing cordon, pressure, flap or autoscaler's second thought moves no placeholder away and back."""

from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from roost_core.objects.selectors import Taint
from tests.mover_world import MoverWorld

# keepMarkSeconds + flapSeconds of the values: what takes longer is worth a move.
PATIENCE_SECONDS: Final = 600
FLAP_SECONDS: Final = 300
_AUTOSCALER: Final = Taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule")
_PRESSURE: Final = Taint("node.kubernetes.io/memory-pressure", "", "NoSchedule")
_DEDICATED: Final = Taint("somebody.else/dedicated", "", "NoSchedule")
# What befalls a node, what ends it, and how long it may last at most.
TROUBLES: Final[dict[str, tuple[dict[str, Any], dict[str, Any], int]]] = {
    "cordon": ({"cordoned": True}, {"cordoned": False}, PATIENCE_SECONDS - 30),
    "pressure": ({"taints": (_PRESSURE,)}, {"taints": ()}, PATIENCE_SECONDS - 30),
    "candidate": ({"taints": (_AUTOSCALER,)}, {"taints": ()}, PATIENCE_SECONDS - 30),
    "dedicated": ({"taints": (_DEDICATED,)}, {"taints": ()}, PATIENCE_SECONDS - 30),
    # It counts as flapping for a while after.
    "not ready": ({"ready": False}, {"ready": True}, PATIENCE_SECONDS - FLAP_SECONDS - 30),
}
TROUBLE = st.sampled_from(sorted(TROUBLES)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.integers(1, TROUBLES[kind][2]))
)
STEP = st.tuples(st.sampled_from(["marked", "old", "join"]), TROUBLE, st.integers(FLAP_SECONDS + 30, 2400))


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(STEP, min_size=1, max_size=8))
def test_no_placeholder_goes_back_to_where_it_came_from_for_what_passes_within_minutes(
    steps: list[tuple[str, tuple[str, int], int]],
) -> None:
    world = MoverWorld(placeholders=5)
    world.add_node("old")
    world.fill_placeholders()
    world.run(3600)
    world.add_node("new")
    world.run(3600)
    assert world.count_placeholders("new") == 5
    joined = 0
    for where, (kind, seconds), quiet_seconds in steps:
        befalls, passes, _ = TROUBLES[kind]
        if where == "join":
            joined += 1
            name = f"joined-{joined}"
            world.add_node(name)
        else:
            (name,) = ["old"] if where == "old" else world.marked()
        world.change_node(name, **befalls)
        world.run(seconds)
        world.change_node(name, **passes)
        world.run(quiet_seconds)
    assert returns(world) == 0
    # Only nodes that join give a reason to move.
    assert len(world.evictions) <= 5 * (1 + joined)


def returns(world: MoverWorld) -> int:
    """How often a placeholder, by its ordinal, was evicted to another node and then evicted back."""
    before: dict[str, str] = {}
    found = 0
    for eviction in world.evictions:
        found += eviction.landed != "" and before.get(eviction.pod) == eviction.landed
        before[eviction.pod] = eviction.source
    return found
