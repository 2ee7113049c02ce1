"""No review may ask for more than its bounds: beyond one the pod is admitted as it was sent, and
that is counted.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Set
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_core.objects.fields import MAX_NAME, JSONObject
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.objects.selectors import Taint
from roost_core.placement.warm_sets import Spare
from roost_core.release.pod_classes import Warm
from tests.builders import (
    IMAGE,
    Desk,
    allowed,
    build_pod,
    builder_nodes,
    expression,
    facts,
    node,
    patch_of,
    prefers_nodes,
    requires_nodes,
    review,
    settings,
    user_pod,
)
from webhook import bounds
from webhook.admission import ReviewResult
from webhook.bounds import Bound
from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.facts.warm_candidates import Candidates
from webhook.rules.warm import order_warm_nodes

ANY = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
KNOWN = facts(node("n1", IMAGE, labels={"pool": "user"}))


def with_metadata(**metadata: object) -> JSONObject:
    body = user_pod()
    return {**body, "metadata": {**body["metadata"], **metadata}}


def many(count: int, **more: str) -> dict[str, str]:
    return {f"key-{index}": "x" for index in range(count - len(more))} | more


def with_resources(count: int) -> JSONObject:
    body = user_pod()
    body["spec"]["containers"][0]["resources"] = {
        "requests": {f"example.org/{index}": "1" for index in range(count)}
    }
    return body


def with_expressions(*expressions: JSONObject) -> JSONObject:
    return user_pod(affinity=requires_nodes({"matchExpressions": list(expressions)}))


def with_pod_terms(count: int) -> JSONObject:
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
    return user_pod(
        affinity={"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}] * count}}
    )


AT_BOUND: list[tuple[Bound, Callable[[int], JSONObject], int]] = [
    (Bound.NAMES, lambda count: with_metadata(name="n" * count), MAX_NAME),
    (Bound.NAMES, lambda count: with_metadata(generateName="n" * count, name=""), MAX_NAME),
    (Bound.CONTAINERS, lambda count: user_pod(*[IMAGE] * count), bounds.MAX_CONTAINERS),
    (
        Bound.CONTAINERS,
        lambda count: user_pod(initContainers=[{"image": "i"}] * (count - 1)),
        bounds.MAX_CONTAINERS,
    ),
    (Bound.RESOURCES, with_resources, bounds.MAX_RESOURCES),
    (
        Bound.LABELS,
        lambda n: with_metadata(labels=many(n, component="singleuser-server")),
        bounds.MAX_LABELS,
    ),
    (
        Bound.ANNOTATIONS,
        lambda count: with_metadata(annotations=many(count)),
        bounds.MAX_ANNOTATIONS,
    ),
    (
        Bound.TOLERATIONS,
        lambda count: user_pod(tolerations=[{"operator": "Exists"}] * count),
        bounds.MAX_TOLERATIONS,
    ),
    (
        Bound.NODE_SELECTOR,
        lambda count: user_pod(nodeSelector=many(count)),
        bounds.MAX_NODE_SELECTOR,
    ),
    (
        Bound.TERMS,
        lambda count: user_pod(affinity=requires_nodes(*[ANY] * count)),
        bounds.MAX_TERMS,
    ),
    (Bound.TERMS, lambda count: user_pod(affinity=requires_nodes(*[{}] * count)), bounds.MAX_TERMS),
    (
        Bound.TERMS,
        lambda n: user_pod(affinity=prefers_nodes(*[{"weight": 1, "preference": ANY}] * n)),
        bounds.MAX_TERMS,
    ),
    (Bound.TERMS, with_pod_terms, bounds.MAX_TERMS),
    (
        Bound.EXPRESSIONS,
        lambda n: with_expressions(*[expression("pool", "user")] * n),
        bounds.MAX_EXPRESSIONS,
    ),
    (
        Bound.VALUES,
        lambda n: with_expressions(expression("pool", "user", *["x"] * (n - 1))),
        bounds.MAX_VALUES,
    ),
]


@pytest.mark.parametrize(
    ("bound", "make", "most"), AT_BOUND, ids=[f"{one[0]}-{i}" for i, one in enumerate(AT_BOUND)]
)
def test_a_pod_beyond_a_bound_is_admitted_as_sent(
    bound: Bound, make: Callable[[int], JSONObject], most: int
) -> None:
    desk = Desk(known=KNOWN)
    assert patch_of(desk.answer(make(most)))
    response = desk.answer(make(most + 1))
    assert patch_of(response) == []
    assert response["warnings"] == [
        f"Roost: pod admitted unchanged: more than {bounds.MOST[bound]}"
    ]
    assert response["auditAnnotations"] == {"beyond-bounds": bound}
    assert [decision.result for decision in desk.decisions] == [
        ReviewResult.PATCHED,
        ReviewResult.BEYOND_BOUNDS,
    ]
    assert desk.decisions[1].reason == bound
    assert desk.decisions[1].pod_class == "user"


def test_terms_times_images_make_no_answer_of_thousands_of_operations() -> None:
    images = [f"example.org/image:{index}" for index in range(40)]
    profiles = [{"kubespawner_override": {"image": image}} for image in images]
    rules = settings(singleuser={"profileList": profiles})
    known = facts(node("n1", *images, labels={"pool": "user"}))
    body = user_pod(*images, affinity=requires_nodes(*[ANY] * 20))
    desk = Desk(rules, known)
    response = desk.answer(body)
    assert patch_of(response) == []
    assert desk.decisions[0].reason == Bound.OPERATIONS


def test_the_bytes_of_an_answer_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(known=KNOWN)
    monkeypatch.setattr(
        "webhook.review.MAX_ANSWER_BYTES", len(desk.reviewer.review(review(user_pod())).body) - 1
    )
    assert patch_of(desk.answer(user_pod())) == []
    assert (desk.decisions[-1].pod_class, desk.decisions[-1].reason) == ("user", Bound.ANSWER)


def test_rules_are_bounded_by_how_many_nodes_there_are_to_hold_them_against() -> None:
    body = user_pod(affinity=requires_nodes(*[ANY] * 60))
    assert patch_of(Desk(known=facts(*builder_nodes(300))).answer(body))
    desk = Desk(known=facts(*builder_nodes(3000)))
    assert patch_of(desk.answer(body)) == []
    assert desk.decisions[0].reason == Bound.STEPS


SLOW = {
    "matchExpressions": [*[expression("pool", "user")] * 8, expression("pool", *["other"] * 60)]
}


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, Python's own included: the same on a loaded machine as on a
    quiet one.
    """
    count = 0

    def on_event(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("make", [user_pod, build_pod])
@pytest.mark.slow
def test_the_dearest_review_within_bounds_calls_3_functions_a_step_on_5000_nodes(
    make: Callable[..., JSONObject],
) -> None:
    taint = Taint("hub.jupyter.org/dedicated", "user", "NoSchedule")
    nodes = [
        node(f"node-{index}", IMAGE, labels={"pool": "user"}, taints=(taint,))
        for index in range(5000)
    ]
    known = facts(*nodes, builders=" ".join(one.name for one in nodes))
    body = make(
        affinity=requires_nodes(*[SLOW] * 2),
        tolerations=[{"key": str(index)} for index in range(10)],
    )
    desk = Desk(known=known)
    # 2.8 and 1.0 with Python 3.11.
    assert calls_of(lambda: desk.answer(body)) < 3 * bounds.MAX_STEPS
    # None of them was saved by a bound.
    assert [decision.result for decision in desk.decisions] == [ReviewResult.PATCHED]


class NeverCopied(Set[str]):
    """Names that can be looked up, but not gone through."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all holders of an image were gone through")


def test_a_pod_whose_images_all_nodes_hold_asks_few_of_them() -> None:
    names = [f"node-{number}" for number in range(5000)]
    everywhere = cast("frozenset[str]", NeverCopied(names))
    pods = {name: PlacedPod("user", name, ("x",)) for name in names}
    known = WarmFacts(pods)
    candidates = Candidates(dict.fromkeys(names, 8))
    warm = Warm(pods_per_node=0, spare=Spare(1, 0), nodes=10)
    images = {"x": everywhere, "y": everywhere}
    order_warm_nodes(warm, candidates, known, images)
    assert calls_of(lambda: order_warm_nodes(warm, candidates, known, images)) < 500


def head(uid: str = "705ab4f5-6393-11e8-b7cc-42010a800002") -> bytes:
    """A review's beginning as Go writes it."""
    kind = '"kind":{"group":"","version":"v1","kind":"Pod"}'
    start = '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{'
    return f'{start}"uid":"{uid}",{kind},'.encode()


def as_go_writes(body: object) -> bytes:
    """The review of a pod, in the order and without the spaces of kube-apiserver's."""
    document = orjson.loads(review(body))
    return orjson.dumps({key: document[key] for key in ("kind", "apiVersion", "request")})


OVERSIZED = {
    "bytes": b'"object":"' + b"x" * bounds.MAX_BODY_BYTES + b'"}}',
    "parts": b'"object":[' + b"{}," * bounds.MAX_JSON_PARTS + b"{}]}}",
    "texts": b'"object":[' + b'"",' * bounds.MAX_JSON_TEXTS + b'""]}}',
    "cut": b"[" * (bounds.MAX_JSON_PARTS + 1),
}


@pytest.mark.parametrize("rest", OVERSIZED.values(), ids=OVERSIZED)
def test_what_is_too_much_to_be_parsed_is_admitted_by_its_first_bytes(rest: bytes) -> None:
    desk = Desk()
    response = allowed(desk.reviewer.review(head() + rest))
    assert response["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002"
    assert patch_of(response) == []
    assert response["warnings"] == [
        f"Roost: pod admitted unchanged: more than {bounds.MOST[Bound.BODY]}"
    ]
    assert (desk.decisions[0].result, desk.decisions[0].reason) == (
        ReviewResult.BEYOND_BOUNDS,
        Bound.BODY,
    )


@pytest.mark.parametrize(
    "beginning", [b"", head()[:60], head("x" * 200), head("a\\u0000"), head('","uid":"')]
)
def test_what_is_too_much_and_begins_otherwise_gets_413(beginning: bytes) -> None:
    desk = Desk()
    assert desk.reviewer.review(beginning + OVERSIZED["bytes"]).status == 413
    assert desk.decisions[0].result is ReviewResult.MALFORMED


SIZES = st.sampled_from([0, 1, 3, 100, 600, 3000])
TERM: st.SearchStrategy[JSONObject | None] = st.sampled_from(
    [{}, None, ANY, {"matchExpressions": [{}] * 600}, {"matchFields": [expression("pool", "u")]}]
)
TERMS = st.builds(lambda term, count: [term] * count, TERM, SIZES)


@st.composite
def hostile_pods(draw: st.DrawFn) -> JSONObject:
    """Pods that have far too much of some things."""
    containers, environment = draw(SIZES), draw(SIZES)
    if containers * environment > 10_000:
        containers = 3
    affinity = {REQUIRED: {"nodeSelectorTerms": draw(TERMS)}, PREFERRED: draw(TERMS)}
    body = user_pod(
        affinity={"nodeAffinity": affinity},
        tolerations=[{"key": "a"}] * draw(SIZES),
        containers=[{"image": IMAGE, "env": [{"name": "a", "value": "b"}] * environment}]
        * containers,
    )
    body["metadata"]["annotations"] = {f"a-{index}": "b" for index in range(draw(SIZES))}
    return body


@given(hostile_pods())
@pytest.mark.slow
def test_whatever_is_sent_is_admitted_and_its_answer_is_short(body: JSONObject) -> None:
    desk = Desk(known=KNOWN)
    answer = desk.reviewer.review(as_go_writes(body))
    allowed(answer)
    assert len(answer.body) < 256 * 1024
    assert desk.decisions[0].result is not ReviewResult.ERROR
