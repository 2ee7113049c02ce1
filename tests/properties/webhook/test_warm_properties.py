"""What must always hold of warm sets, of the facts that they are made of, and of builds that were
sent lately.
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement.warm_sets import MAX_NODES, Spare, with_weights
from tests.warm_rule import WarmNode, choose_warm, size_of_set
from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts

NAMES = [f"n{number}" for number in range(5)]
names, few, moments = st.sampled_from(NAMES), st.integers(0, 6), st.sampled_from([0.0, 1.0, 2.0])
warm_nodes = st.lists(
    st.builds(WarmNode, names, few, few, st.booleans(), moments), unique_by=lambda node: node.name
)
spares = st.integers(-12, 12)
percents = st.integers(-250, 250)
limits = st.integers(1, MAX_NODES)


@given(nodes=warm_nodes, more=st.integers(0, 9), spare=spares, limit=limits)
def test_nodes_with_room_are_named_by_weight(
    nodes: list[WarmNode], more: int, spare: int, limit: int
) -> None:
    running = sum(node.pods for node in nodes) + more
    found = choose_warm(nodes, running=running, spare=spare, limit=limit)
    by_name = {node.name: node for node in nodes}
    named = [by_name[name] for name, _ in found]
    assert len(found) <= limit
    assert len({node.name for node in named}) == len(named)
    assert all(node.pods < node.slots for node in named)
    weights = [weight for _, weight in found]
    assert all(1 <= weight <= 100 for weight in weights)
    assert all(first > second for first, second in pairwise(weights))


@given(
    count=st.integers(1, 9),
    slots=st.integers(1, 200),
    percent=percents,
    pods=st.integers(1, 900),
    more=st.integers(0, 99),
)
def test_a_share_of_equal_nodes_is_a_number_of_pods(
    count: int, slots: int, percent: int, pods: int, more: int
) -> None:
    assert size_of_set([slots] * count, pods, Spare(percent=100)) == size_of_set(
        [slots] * count, pods, Spare(slots)
    )
    share = Spare(percent=percent)
    # Half a slot is no slot: what is wanted is rounded up.
    assert size_of_set([slots] * count, pods, share) == size_of_set(
        [slots] * count, pods, Spare(-(-percent * slots // 100))
    )
    assert size_of_set([slots] * count, pods, share) <= size_of_set(
        [slots] * count, pods + more, share
    )


@given(nodes=warm_nodes, spare=spares)
def test_as_few_of_the_oldest_nodes_as_carry_the_load_come_first(
    nodes: list[WarmNode], spare: int
) -> None:
    wanted = sum(node.pods for node in nodes) + 1 + spare
    order = sorted(nodes, key=lambda node: (node.created, node.name))
    enough = (
        count
        for count in range(1, len(order))
        if sum(node.slots for node in order[:count]) >= wanted
    )
    size = next(enough, len(order))
    places = {node.name: place for place, node in enumerate(order)}
    named = [
        places[name]
        for name, _ in choose_warm(nodes, running=wanted - 1 - spare, spare=spare, limit=MAX_NODES)
    ]
    members = [place for place in named if place < size]
    assert named == [*members, *sorted(named[len(members) :])]
    assert len(named) == sum(node.pods < node.slots for node in nodes)


@given(count=st.integers(1, MAX_NODES), others=st.integers(0, 200))
def test_beside_other_terms_of_200_each_place_still_has_a_score_of_its_own(
    count: int, others: int
) -> None:
    sums = [weight + others for _, weight in with_weights([str(place) for place in range(count)])]
    scores = [100 * one // sums[0] for one in sums]
    assert len(set(scores)) == count
    assert 100 * others // sums[0] <= scores[-1]


# --- the finder ---

IMAGES = ("x", "y")
# Others that come to nodes.
MORE_IMAGES = ("p", "q", "r", "s")
pods = st.builds(
    PlacedPod,
    st.just("user"),
    st.sampled_from(["", *NAMES]),
    st.lists(st.sampled_from([*IMAGES, *IMAGES, *MORE_IMAGES]), unique=True).map(tuple),
    st.booleans(),
    # Otherwise texts are drawn, and an image that fails is by chance one that the pod shows.
    st.just(()),
)


changes = st.dictionaries(
    st.sampled_from([f"jhub/p{number}" for number in range(9)]), st.none() | pods, max_size=9
)


@given(history=st.lists(changes, max_size=6))
def test_facts_changed_step_by_step_are_those_of_the_pods_there_are(
    history: list[dict[str, PlacedPod | None]],
) -> None:
    facts, in_place, there = WarmFacts(), WarmFacts(), dict[str, PlacedPod]()
    ran: set[tuple[str, str]] = set()
    before = []
    for pod_changes in history:
        before.append((facts, _read(facts)))
        facts = facts.updated(pod_changes)
        in_place.take_in(pod_changes)
        assert _read(in_place) == _read(facts)
        for key, pod in pod_changes.items():
            there.pop(key, None)
            if pod is not None:
                there[key] = pod
                ran |= {
                    (pod.node, image) for image in pod.images if pod.node and not pod.is_starting
                }
    whole = WarmFacts(there)
    assert facts.pods == whole.pods
    assert all(facts.pods_on(node) == whole.pods_on(node) for node in ("", *NAMES))
    held = {
        (node, image)
        for node in NAMES
        for image in [*IMAGES, *MORE_IMAGES]
        if facts.holds(node, image)
    }
    # What a pod that never started brought goes with it.
    assert (
        ran <= held <= ran | {(pod.node, image) for pod in there.values() for image in pod.images}
    )
    # Whoever still reads older facts reads what they were.
    assert all(_read(older) == then for older, then in before)


def _read(facts: WarmFacts) -> list[object]:
    """All that can be read of these facts."""
    images = [*IMAGES, *MORE_IMAGES]
    return [
        dict(facts.pods),
        [facts.pods_on(node) for node in ("", *NAMES)],
        [facts.holders(image) for image in images],
        [facts.images_since(node, image) for node in NAMES for image in images],
        set(facts.nodes_with_images),
    ]
