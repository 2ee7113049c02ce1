"""What is kept of nodes from one change to the next is what the plain computation finds anew."""

from collections.abc import Mapping, Sequence
from typing import cast
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st

from roost_core.objects.node import Node, node_admits
from roost_core.objects.selectors import (
    NodeRules,
    NodeTerm,
    Requirement,
    Taint,
    Toleration,
    node_term_matches,
)
from roost_core.placement.nodes import Nodes
from roost_core.placement.warm_sets import (
    MAX_HOLDERS,
    NEW_NODE_IMAGES,
    Spare,
    doubt,
    slots_of,
    with_weights,
)
from roost_core.release.pod_classes import Warm
from tests.warm_rule import KnownNodes, WarmNode, set_size, size_of_set
from webhook.facts import warm_candidates as candidates_module
from webhook.facts.holders import Holders, ImageHolders
from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.facts.warm_candidates import CandidateQuestion, Candidates
from webhook.rules import warm as warm_rule
from webhook.rules.home import RingQuestion
from webhook.rules.require_images import HolderQuestion
from webhook.rules.warm import WarmChoice, order_warm_nodes

NAMES = [f"n{number}" for number in range(8)]
IMAGES = ["x", "y"]
LABEL = "images-pulled.hub.jhub.hub.jupyter.org/x"
TAINT = Taint("gpu", "present", "NoSchedule")
POOLED = NodeTerm((Requirement("pool", "In", frozenset({"a"})),), ())

nodes = st.builds(
    Node,
    name=st.sampled_from(NAMES),
    ready=st.integers(0, 5).map(bool),
    unschedulable=st.integers(0, 5).map(lambda drawn: drawn == 0),
    created=st.sampled_from([0.0, 0.0, 1.0, 2.0]),
    labels=st.fixed_dictionaries(
        {}, optional={"pool": st.sampled_from("ab"), LABEL: st.just("true")}
    ),
    taints=st.sampled_from([(), (), (TAINT,)]),
    allocatable=st.sampled_from([{}, {"cpu": 1000, "pods": 9}, {"cpu": 3000, "pods": 9}]),
)
rules = st.builds(
    NodeRules,
    node_selector=st.sampled_from([(), (), (("pool", "b"),)]),
    required_node_terms=st.sampled_from([None, None, (POOLED,)]),
    tolerations=st.sampled_from([(), (Toleration("gpu", "Exists", "", ""),)]),
)
requests = st.sampled_from([(), (("cpu", 500),), (("cpu", 2000),)])
warm_questions = st.builds(
    CandidateQuestion,
    rules,
    requests,
    st.sampled_from([0, 0, 2]),
    st.sampled_from([(), ((5, POOLED),), ((5, POOLED), (-3, POOLED))]),
)
# As most pods ask: some of the nodes may take them.
usual_rules = st.sampled_from(
    [
        NodeRules(),
        NodeRules(required_node_terms=(POOLED,)),
        NodeRules(node_selector=(("pool", "b"),)),
    ]
)
questions = st.one_of(
    warm_questions,
    st.builds(RingQuestion, st.none() | st.frozensets(st.sampled_from(NAMES)), st.none() | rules),
    st.builds(HolderQuestion, st.sampled_from([(LABEL,), ()]), requests, rules),
)
usable_nodes = st.builds(
    Node,
    name=st.just(""),
    ready=st.just(True),
    created=st.sampled_from([0.0, 1.0, 2.0]),
    labels=st.sampled_from([{"pool": "a"}, {"pool": "a"}, {"pool": "b"}]),
    allocatable=st.sampled_from([{"cpu": 1000, "pods": 3}, {"cpu": 3000, "pods": 9}]),
)
node_changes = st.dictionaries(st.sampled_from(NAMES), st.none() | nodes, max_size=4)
pods = st.builds(
    PlacedPod,
    st.just("user"),
    st.sampled_from(["", *NAMES]),
    st.lists(st.sampled_from(IMAGES), unique=True).map(tuple),
    st.booleans(),
)
pod_changes = st.dictionaries(
    st.sampled_from([f"jhub/p{number}" for number in range(20)]), st.none() | pods, max_size=9
)

# All nodes are there first, and most stay: a set has several nodes, of which some are full.
histories = st.tuples(
    st.tuples(st.fixed_dictionaries(dict.fromkeys(NAMES, usable_nodes)), pod_changes),
    st.lists(st.tuples(st.just({}) | node_changes, pod_changes), max_size=5),
).map(lambda drawn: [drawn[0], *drawn[1]])


def renamed(changes: Mapping[str, Node | None]) -> dict[str, Node | None]:
    return {name: None if node is None else _named(node, name) for name, node in changes.items()}


def _named(node: Node, name: str) -> Node:
    return Node(
        name=name,
        ready=node.ready,
        unschedulable=node.unschedulable,
        created=node.created,
        labels=node.labels,
        taints=node.taints,
        allocatable=node.allocatable,
    )


@given(asked=st.lists(questions, min_size=1, max_size=30), history=st.lists(node_changes))
def test_answers_of_nodes_that_changed_step_by_step_are_those_of_the_nodes_there_are(
    asked: list[CandidateQuestion | RingQuestion | HolderQuestion],
    history: list[dict[str, Node | None]],
) -> None:
    kept = Nodes()
    for changes in history:
        for question in asked:
            found = kept.answers(question).by_name
            answers = {name: question.answer(node) for name, node in kept.items()}
            assert found == {name: said for name, said in answers.items() if said is not None}
        before, kept = kept, kept.updated(renamed(changes))
        for question in asked:
            assert (
                before.answers(question).by_name == Nodes(before.values()).answers(question).by_name
            )


@given(
    question=warm_questions
    | st.builds(
        CandidateQuestion, usual_rules, requests, st.just(0), st.sampled_from([(), ((5, POOLED),)])
    ),
    warm=st.builds(
        Warm,
        pods_per_node=st.just(0),
        spare=st.builds(Spare, st.integers(-3, 6), st.integers(-60, 150)),
        nodes=st.integers(1, 5),
    ),
    left_out=st.frozensets(st.sampled_from(NAMES), max_size=2),
    labels=st.fixed_dictionaries(
        dict.fromkeys(IMAGES, st.just(frozenset[str]()) | st.frozensets(st.sampled_from(NAMES)))
    ),
    images=st.lists(st.sampled_from(IMAGES), unique=True),
    most_holders=st.sampled_from([1, 3, MAX_HOLDERS]),
    new_node_images=st.sampled_from([1, 1, NEW_NODE_IMAGES]),
    history=histories,
)
def test_a_warm_set_is_that_of_the_plain_rule(
    *,
    question: CandidateQuestion,
    warm: Warm,
    left_out: frozenset[str],
    labels: dict[str, frozenset[str]],
    images: list[str],
    most_holders: int,
    new_node_images: int,
    history: list[tuple[dict[str, Node | None], dict[str, PlacedPod | None]]],
) -> None:
    kept, facts = Nodes(), WarmFacts()
    labelled = {image: labels[image] for image in images}
    for changes, changed_pods in history:
        kept, facts = kept.updated(renamed(changes)), facts.updated(changed_pods)
        slots = plain_slots(question, kept)
        candidates = kept.answers(question).derive(Candidates.of)
        with (
            mock.patch.object(warm_rule, "MAX_HOLDERS", most_holders),
            mock.patch.object(candidates_module, "NEW_NODE_IMAGES", new_node_images),
        ):
            expected = plain_order(
                warm, slots, facts, labelled, most_holders, new_node_images=new_node_images
            )
            # Asked again, it says the same.
            for _ in range(2):
                assert order_warm_nodes(warm, candidates, facts, labelled) == expected
            for name in left_out:
                slots.pop(name, None)
            expected = plain_order(
                warm, slots, facts, labelled, most_holders, new_node_images=new_node_images
            )
            assert order_warm_nodes(warm, candidates.without(left_out), facts, labelled) == expected


@given(
    slots=st.lists(st.integers(0, 12), max_size=8),
    pods=st.integers(1, 60),
    spare=st.builds(Spare, st.integers(-12, 12), st.integers(-250, 250)),
)
# The first node alone is enough, and with the second the set would be too small again.
@example(slots=[1, 12], pods=1, spare=Spare(-12, 250))
def test_a_sets_size_is_that_of_the_plain_rule(slots: list[int], pods: int, spare: Spare) -> None:
    assert size_of_set(slots, pods, spare) == set_size(slots, pods, spare)


class UsedNodes(KnownNodes):
    """Nodes that hold images of which some were used long ago."""

    def __init__(self, used: Sequence[tuple[int, Mapping[str, int]]]) -> None:
        """used: of each node its pods, and how many images came after each that it has."""
        nodes = [
            WarmNode(name, pods, 9, True) for name, (pods, _) in zip(NAMES, used, strict=False)
        ]
        super().__init__(nodes, sum(pods for pods, _ in used))
        self._since = {name: since for name, (_, since) in zip(NAMES, used, strict=False)}

    def holders(self, reference: str) -> frozenset[str]:
        return frozenset(name for name, since in self._since.items() if reference in since)

    def images_since(self, node: str, reference: str) -> int:
        return self._since[node].get(reference, 0)


images_since = st.sampled_from([0, 15, 16, 20, 31, 40, 90])


@given(
    used=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.fixed_dictionaries({"x": images_since}, optional={"y": images_since}),
        ),
        min_size=3,
        max_size=len(NAMES),
    ),
    labels=st.fixed_dictionaries(
        dict.fromkeys(IMAGES, st.frozensets(st.sampled_from(NAMES), max_size=2))
    ),
    images=st.sampled_from([["x"], ["x", "y"]]),
    most_holders=st.sampled_from([1, 3, MAX_HOLDERS]),
    count=st.integers(1, 4),
)
def test_holders_come_by_the_doubt_that_they_hold_the_images_still(
    used: list[tuple[int, dict[str, int]]],
    labels: dict[str, frozenset[str]],
    images: list[str],
    most_holders: int,
    count: int,
) -> None:
    facts = cast("WarmFacts", UsedNodes(used))
    warm = Warm(pods_per_node=0, spare=Spare(1000, 0), nodes=count)
    slots = dict.fromkeys(NAMES[: len(used)], 9)
    labelled = {image: labels[image] for image in images}
    with mock.patch.object(warm_rule, "MAX_HOLDERS", most_holders):
        expected = plain_order(warm, slots, facts, labelled, most_holders)
        assert order_warm_nodes(warm, Candidates(slots), facts, labelled) == expected


def plain_slots(question: CandidateQuestion, known: Nodes) -> dict[str, int]:
    """The rule as it reads: every node, for every pod."""
    liked = {
        node.name: sum(
            weight
            for weight, term in question.preferred
            if node_term_matches(term, node.name, node.labels)
        )
        for node in known.values()
        if node.is_usable and node_admits(question.rules, node)
    }
    most = max(liked.values(), default=0)
    names = [name for name, weight in liked.items() if weight == most]
    names.sort(key=lambda name: (known[name].created, name))
    return {
        name: question.pods_per_node or slots_of(known[name].allocatable, question.requests)
        for name in names
    }


def plain_order(
    warm: Warm,
    slots: Mapping[str, int],
    facts: WarmFacts,
    images: Mapping[str, frozenset[str]],
    most_holders: int,
    *,
    new_node_images: int = NEW_NODE_IMAGES,
) -> WarmChoice:
    loads = {name: facts.pods_on(name) for name in slots}
    running = facts.pods_on("") + sum(loads.values())
    size = set_size(slots.values(), running + 1, warm.spare)
    order = list(slots)
    free = sorted(
        (name for name in order[:size] if loads[name] < slots[name]), key=loads.__getitem__
    )
    beyond = [name for name in order[size:] if loads[name] < slots[name]]
    holders_of = [facts.holders(image) | labelled for image, labelled in images.items()]
    held = frozenset.intersection(*(holders_of or [frozenset[str]()]))

    def since(name: str) -> int:
        counts = [
            facts.images_since(name, image)
            for image, labelled in images.items()
            if name not in labelled
        ]
        return max(counts, default=0)

    holders = sorted(
        [name for name in free if name in held][:most_holders], key=lambda name: doubt(since(name))
    )
    pulling = [name for name in free if name not in held]
    images_on = dict(zip(slots, facts.image_counts(slots), strict=True))
    pulling.sort(key=lambda name: (facts.pulls.get(name, 0), images_on[name] < new_node_images))
    names = [*holders, *pulling, *beyond][: warm.nodes]
    return WarmChoice(with_weights(names), sum(name in held for name in names), size)


image_holders = st.builds(
    ImageHolders,
    st.frozensets(st.sampled_from(NAMES)),
    st.just(frozenset[str]()) | st.frozensets(st.sampled_from(NAMES)),
)


@given(st.lists(image_holders, max_size=3), st.permutations(NAMES))
def test_the_holders_of_some_images_hold_each_of_them(
    images: list[ImageHolders], names: list[str]
) -> None:
    each = [frozenset(image.known | image.labelled) for image in images]
    all_of_them = frozenset.intersection(*each) if each else frozenset[str]()
    held = Holders(images)
    assert list(held.among(names)) == [name for name in names if name in all_of_them]
    assert held.all() == all_of_them
    assert {name for name in NAMES if name in held} == all_of_them
    assert held.most >= len(all_of_them)
