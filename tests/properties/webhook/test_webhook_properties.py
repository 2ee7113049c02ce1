"""What must always hold of reviews: they never fail, their patches apply, and nothing of an
author's gets lost.
"""

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import node_admits
from roost_core.objects.selectors import is_empty_term, read_node_rules
from roost_core.placement.labels import KARPENTER_POOL_LABEL
from tests import builders
from tests.builders import Desk, node_terms, patch_of, pod_terms, required_terms
from tests.properties import strategies as draw_from
from webhook.admission import ReviewResult
from webhook.binderhub_terms import is_binderhub_spread_term, is_binderhub_sticky_term
from webhook.facts.facts import Facts

pods, facts, rule_changes = draw_from.pods, draw_from.facts, draw_from.rule_changes


def desk_of(rules: JSONObject, known: Facts) -> Desk:
    return Desk(builders.settings(**rules), known)


@given(pods, facts, rule_changes)
@settings(max_examples=300)
def test_patching_twice_is_once_also_after_another_mutator(
    body: JSONObject, known: Facts, rules: JSONObject
) -> None:
    desk = desk_of(rules, known)
    placed = desk.place(body)
    assert patch_of(desk.answer(placed)) == []
    assert not {ReviewResult.ERROR, ReviewResult.ODD} & {
        decision.result for decision in desk.decisions
    }
    # Another webhook adds a sidecar, an annotation and a term of its own in between.
    sidecar = {"name": "sidecar", "image": "mesh:1", "resources": {"requests": {"cpu": "1m"}}}
    placed["spec"]["containers"].append(sidecar)
    placed["metadata"]["annotations"] = {
        **(placed["metadata"].get("annotations") or {}),
        "mesh": "in",
    }
    before = copy.deepcopy(placed)
    again = desk_of(rules, known).place(placed)
    again["spec"].pop("affinity", None)
    before["spec"].pop("affinity", None)
    assert again == before


def kept(terms: list[JSONObject], drops: bool) -> list[JSONObject]:
    return [
        term
        for term in terms
        if not (drops and (is_binderhub_sticky_term(term) or is_binderhub_spread_term(term)))
    ]


@given(pods, facts, rule_changes)
@settings(max_examples=300)
def test_nothing_of_the_authors_goes_but_binderhubs_exact_terms(
    body: JSONObject, known: Facts, rules: JSONObject
) -> None:
    # Null and absent are the same to the API server; what is compared below is what isn't null.
    before = json.loads(json.dumps(body))
    placed = desk_of(rules, known).place(body)
    assert body == before, "the review edited its input"
    is_build = body["metadata"]["labels"]["component"] == "binderhub-build"
    spec, new = body["spec"], placed["spec"]
    for key in spec.keys() - {"schedulerName", "affinity", "containers"}:
        assert new[key] == spec[key]
    if spec.get("schedulerName") not in (None, "default-scheduler", "replace-me"):
        assert new["schedulerName"] == spec["schedulerName"]
    for old_container, new_container in zip(spec["containers"], new["containers"], strict=True):
        asked = (old_container.get("resources") or {}).get("requests")
        limits = (old_container.get("resources") or {}).get("limits")
        now = (new_container.get("resources") or {}).get("requests")
        assert now == asked if asked else set(now or {}).isdisjoint(limits or {})
        assert (new_container.get("resources") or {}).get("limits") == limits
    flat, flat_new = _without_nulls(body), _without_nulls(placed)
    flat["spec"].setdefault("affinity", {})
    flat_new["spec"].setdefault("affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        old_terms = pod_terms(flat, kind)
        assert pod_terms(flat_new, kind)[: len(kept(old_terms, is_build))] == kept(
            old_terms, is_build
        ) or (pod_terms(flat_new, kind)[: len(old_terms)] == old_terms)
    old_nodes = node_terms(flat)
    assert node_terms(flat_new)[: len(old_nodes)] == old_nodes or (
        is_build
        and node_terms(flat_new)[: len(kept(old_nodes, drops=True))] == kept(old_nodes, drops=True)
    )


def _without_nulls(value: JSONObject) -> JSONObject:
    def clean(found: object) -> object:
        if isinstance(found, dict):
            return {key: clean(one) for key, one in found.items() if one is not None}
        return [clean(one) for one in found] if isinstance(found, list) else found

    result = clean(value)
    assert isinstance(result, dict)
    return result


@given(pods, facts, rule_changes)
@settings(max_examples=300)
def test_no_pod_goes_where_its_author_forbids_or_is_stranded(
    body: JSONObject, known: Facts, rules: JSONObject
) -> None:
    placed = desk_of(rules, known).place(body)
    old, new = required_terms(_without_nulls(body) | {}), required_terms(_without_nulls(placed))
    if old is not None:
        assert new is not None
        assert [is_empty_term(one) for one in new] == [is_empty_term(one) for one in old]

    def places(terms: list[JSONObject] | None, pod: JSONObject) -> set[str]:
        demands = read_node_rules(
            pod["spec"].get("nodeSelector") or {}, terms, pod["spec"].get("tolerations") or ()
        )
        return {name for name, fact in (known.nodes or {}).items() if node_admits(demands, fact)}

    before, after = places(old, body), places(new, placed)
    assert after <= before
    assert not before or after or placed == body


@given(pods, facts, rule_changes)
def test_weights_stay_valid_and_each_term_is_said_once(
    body: JSONObject, known: Facts, rules: JSONObject
) -> None:
    placed = _without_nulls(desk_of(rules, known).place(body))
    old = _without_nulls(body)
    placed["spec"].setdefault("affinity", {})
    old["spec"].setdefault("affinity", {})
    for find in (
        node_terms,
        lambda pod: pod_terms(pod, "podAffinity"),
        lambda pod: pod_terms(pod, "podAntiAffinity"),
    ):
        added = [term for term in find(placed) if term not in find(old)]
        assert all(1 <= term["weight"] <= 100 for term in added)
        assert all(added.count(term) == 1 for term in added)
    breaks_ties = [term for term in pod_terms(placed, "podAntiAffinity") if term["weight"] == 1]
    if known.nodes is None or any(
        KARPENTER_POOL_LABEL in node.labels for node in known.nodes.values()
    ):
        assert all(term in pod_terms(old, "podAntiAffinity") for term in breaks_ties)


@given(
    st.binary()
    | st.text().map(str.encode)
    | draw_from.json_values.map(lambda value: json.dumps(value).encode()),
    pods,
    st.data(),
)
def test_garbage_gets_4xx_and_a_damaged_review_never_fails(
    garbage: bytes, body: JSONObject, data: st.DataObject
) -> None:
    assert Desk().reviewer.review(garbage).status in {400, 413}
    whole, byte, desk = builders.review(body), data.draw(st.integers(0, 255)), Desk()
    at = data.draw(st.integers(0, len(whole) - 1))
    for broken in (whole[:at], whole[:at] + bytes([byte]) + whole[at + 1 :]):
        assert desk.reviewer.review(broken).status in {200, 400}
    assert ReviewResult.ERROR not in {decision.result for decision in desk.decisions}


@given(draw_from.json_values, facts)
def test_any_object_at_all_is_admitted(body: object, known: Facts) -> None:
    desk = Desk(known=known)
    assert patch_of(desk.answer(body)) == []
    assert desk.decisions[0].result in {ReviewResult.ODD, ReviewResult.UNMATCHED}


@st.composite
def damaged_pods(draw: st.DrawFn) -> JSONObject:
    """A pod with something else in the place of one of its parts."""
    body = copy.deepcopy(draw(pods))
    part: Any = body
    for _ in range(draw(st.integers(0, 7))):
        if isinstance(part, dict) and part:
            step: Any = draw(st.sampled_from(sorted(part)))
        elif isinstance(part, list) and part:
            step = draw(st.integers(0, len(part) - 1))
        else:
            break
        inner = part[step]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 5)) == 0:
            part[step] = draw(draw_from.json_values)
            break
        part = inner
    return body


@given(damaged_pods(), facts, rule_changes)
@settings(max_examples=500)
def test_a_damaged_pod_is_admitted_and_its_patch_applies(
    body: JSONObject, known: Facts, rules: JSONObject
) -> None:
    desk = desk_of(rules, known)
    desk.place(body)
    assert desk.decisions[0].result is not ReviewResult.ERROR
