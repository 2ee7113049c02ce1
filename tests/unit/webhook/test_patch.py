"""Patches that apply whatever the pod lacks, and that leave what its author wrote."""

import pytest

from roost_core.placement.labels import HOME_TARGET_ANNOTATION, POLICY_REVISION_ANNOTATION
from tests.builders import (
    PREFERRED,
    REQUIRED,
    Desk,
    Object,
    build_pod,
    expression,
    homes_of,
    node_terms,
    place,
    pod_terms,
    required_terms,
    requires_nodes,
    settings,
    user_pod,
)
from tests.unit.webhook.small_hub import FIVE, HERE, KEEPS_OFF, PREFERS_HOLDER, PURPOSE, RING, pair
from webhook.patch import node_rule


@pytest.mark.parametrize(
    "affinity",
    [
        None,
        {},
        {"nodeAffinity": None, "podAffinity": None},
        {"nodeAffinity": {}, "podAffinity": {}},
        {"nodeAffinity": {PREFERRED: None, REQUIRED: None}, "podAffinity": {PREFERRED: None}},
        {"nodeAffinity": {PREFERRED: []}, "podAffinity": {PREFERRED: []}},
    ],
)
def test_a_patch_applies_whatever_parents_are_missing_null_or_empty(affinity: object) -> None:
    # The API server refuses a pod whose patch doesn't apply, even with failurePolicy Ignore.
    placed = place(user_pod(affinity=affinity), HERE)
    assert required_terms(placed) == [{"matchExpressions": [KEEPS_OFF]}]
    assert node_terms(placed) == [PREFERS_HOLDER, PURPOSE]
    assert pod_terms(placed, "podAffinity") == [pair({"component": "singleuser-server"}, 100)]


@pytest.mark.parametrize("annotations", [None, {}, {"own": "text"}])
def test_annotations_are_added_beside_what_is_there(annotations: dict[str, str] | None) -> None:
    body = user_pod()
    body["metadata"]["annotations"] = annotations
    expected = {**(annotations or {}), POLICY_REVISION_ANNOTATION: "revision0001"}
    assert place(body)["metadata"]["annotations"] == expected


def annotated(room_bytes: int, more: dict[str, str] | None = None) -> Object:
    """A build whose annotations leave so much room."""
    body = build_pod()
    more = {**body["metadata"]["annotations"], **(more or {})}
    # Of two bytes a letter.
    used_bytes = sum(len(key) + len(value) for key, value in more.items()) + len("notes1")
    left_bytes = 256 * 1024 - used_bytes - room_bytes
    body["metadata"]["annotations"] = {"notes": "é" * (left_bytes // 2) + "1" + "x" * (left_bytes % 2), **more}
    return body


def test_annotations_for_which_a_pod_has_no_room_are_left_out_with_a_warning() -> None:
    revision = settings().revision
    need = len(POLICY_REVISION_ANNOTATION) + len(revision)
    for room_bytes, fitting in ((0, set()), (need - 1, {HOME_TARGET_ANNOTATION}), (need, {POLICY_REVISION_ANNOTATION})):
        body, desk = annotated(room_bytes), Desk(known=FIVE)
        placed = desk.place(body)
        found = placed["metadata"]["annotations"]
        assert found.keys() - body["metadata"]["annotations"].keys() == fitting
        assert sum(len(f"{key}{value}".encode()) for key, value in found.items()) <= 256 * 1024
        assert homes_of(placed)[0][1] == RING[0]
        (warning,) = desk.answer(body)["warnings"]
        assert [key in warning for key in (POLICY_REVISION_ANNOTATION, HOME_TARGET_ANNOTATION)] == [
            key not in fitting for key in (POLICY_REVISION_ANNOTATION, HOME_TARGET_ANNOTATION)
        ]


def test_an_older_annotation_of_ours_makes_room_for_one_of_its_length_and_stays_where_it_is_a_byte_shorter() -> None:
    revision, home = settings().revision, RING[0]
    # A pod that is over the limit already may have an annotation replaced by one of the same length.
    for room, old, new in ((0, "x" * len(home), home), (-2, "x" * len(home), home), (0, "x" * (len(home) - 1), "")):
        body = annotated(room, {POLICY_REVISION_ANNOTATION: "x" * 12, HOME_TARGET_ANNOTATION: old})
        found = place(body, FIVE)["metadata"]["annotations"]
        assert found[HOME_TARGET_ANNOTATION] == (new or old)
        assert new == "" or found[POLICY_REVISION_ANNOTATION] == revision


def test_a_required_affinity_that_is_invalid_by_itself_stays_so() -> None:
    # It is the API server's to refuse; to mend it would place a pod where its author never said.
    assert required_terms(place(user_pod(affinity=requires_nodes()), HERE)) == []


def test_node_terms_are_the_same_rule_whatever_their_order() -> None:
    first, second = (expression("metadata.name", name, operator="NotIn") for name in ("n1", "n2"))
    assert node_rule({"matchFields": [first, second]}) == node_rule({"matchFields": [second, first]})
    assert node_rule({"matchFields": [first]}) != node_rule({"matchFields": [second]})
    one = {"matchExpressions": [expression("zone", "a", "b"), expression("pool", "x")]}
    other = {"matchExpressions": [expression("pool", "x"), expression("zone", "b", "a")], "matchFields": []}
    assert node_rule(one) == node_rule(other)
    assert node_rule(one) != node_rule({"matchFields": one["matchExpressions"]})
