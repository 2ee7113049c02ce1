from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.recorder.recording.pod_lines import PodLines
from roost.recorder.recording.reading import read_pod
from roost_core.placement.settings import KeySource

Object = dict[str, Any]
SOURCES = (KeySource("env", "REPO"), KeySource("annotation", "repo"))
MOMENT = "2026-11-21T10:00:00Z"
# What the lines are cut by, where it isn't what it looks like.
ODD = ['},"spec":{', '"managedFields":[', '},"status":{"phase":"Failed"}', '],"', '"nodeName":"other",', "\\", "é"]

texts = st.one_of(st.sampled_from(ODD), st.text(max_size=3))
claim: Object = {"metadata": {"labels": {"a": "b"}}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
volumes = st.sampled_from(
    [
        {"name": "v", "persistentVolumeClaim": {"claimName": "home"}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": claim}},
        {"name": "c", "csi": {"driver": "d", "volumeAttributes": {"nodeName": "n2", "spec": "s", "status": "t"}}},
        {"name": "p", "projected": {"sources": []}},
    ]
)
containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "side"]), "image": st.sampled_from(["me/image:1", "me/image:2"])},
    optional={
        "env": st.lists(st.builds(lambda text: {"name": "REPO", "value": text}, texts), max_size=1),
        "args": st.lists(texts, max_size=2),
        "resources": st.sampled_from([{"requests": {"cpu": "1"}}, {"requests": {"cpu": "250m", "memory": "1Gi"}}]),
    },
)
specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, min_size=1, max_size=2)},
    optional={
        "volumes": st.lists(volumes, max_size=3),
        "schedulerName": st.sampled_from(["hub-user", "default-scheduler"]),
        "priority": st.integers(-10, 10),
        "nodeSelector": st.dictionaries(texts, texts, max_size=2),
        "schedulingGates": st.just([{"name": "g"}]),
        "overhead": st.just({"cpu": "1"}),
        "securityContext": st.just({}),
    },
)
resources = st.one_of(st.none(), st.sampled_from([{"requests": {"cpu": "2"}}, {"requests": {"cpu": "3"}}]))
statuses = st.fixed_dictionaries(
    {"phase": st.sampled_from(["Pending", "Running"])},
    optional={
        "containerStatuses": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["main", "side"]), "imageID": st.just(""), "resources": resources},
                optional={"allocatedResources": st.just({"cpu": "4"}), "image": st.just("full/me/image")},
            ),
            max_size=2,
        ),
        "conditions": st.lists(
            st.sampled_from(
                [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": MOMENT},
                    {"type": "PodResizePending", "status": "True", "reason": "Infeasible"},
                ]
            ),
            max_size=2,
        ),
    },
)
metadata = st.fixed_dictionaries(
    {"name": st.just("p"), "namespace": st.just("hub"), "uid": st.sampled_from(["u", "u", "w"])},
    optional={
        "labels": st.dictionaries(texts, texts, max_size=2),
        "annotations": st.dictionaries(st.sampled_from(["repo", "other"]), texts, max_size=2),
        "managedFields": st.lists(st.builds(lambda text: {"manager": text, "fieldsV1": {f"v:{text}": {}}}, texts)),
        # After `managedFields`, where an API server has nothing.
        "ownerReferences": st.just([{"kind": "ReplicaSet", "name": "o", "uid": "o", "controller": True}]),
        "deletionTimestamp": st.just(MOMENT),
    },
)
nodes = st.sampled_from(["", "", "n", "n", "n2"])


def placed(spec: Object, node: str, *, first: bool) -> Object:
    if not node:
        return spec
    return {"nodeName": node, **spec} if first else {**spec, "nodeName": node}


def line(pod: Object, kind: str = "MODIFIED") -> bytes:
    return orjson.dumps({"type": kind, "object": pod})


@given(
    st.lists(specs, min_size=1, max_size=2),
    st.lists(st.tuples(st.integers(0, 1), nodes, st.booleans(), metadata, statuses, st.booleans()), max_size=6),
)
@settings(max_examples=400, deadline=None)
def test_lines_are_read_as_whole_ones_are(some: list[Object], told: list[Any]) -> None:
    lines = PodLines(SOURCES)
    # Told of each pod first: whose repository that is, is not asked again.
    kept: dict[str, tuple[Object, Object]] = {}
    for which, node, first, about, status, is_gone in told:
        uid = about["uid"]
        spec = some[which % len(some)]
        old_spec, annotations = kept.get(uid, (None, {}))
        about = {**about, "annotations": annotations if spec == old_spec else about.get("annotations", {})}  # noqa: PLW2901 - the same, made fit
        pod = {"metadata": about, "spec": placed(spec, node, first=first), "status": status}
        text = line(pod, "DELETED" if is_gone else "MODIFIED")
        assert lines.read(lines.load(text)["object"]) == read_pod(orjson.loads(text)["object"], SOURCES, {})
        kept[uid] = (spec, about["annotations"])


def user_pod(spec: Object, **status: Any) -> Object:
    fields = [{"manager": "m", "fieldsV1": {"f:spec": {}}}]
    return {
        "metadata": {"name": "p", "namespace": "hub", "uid": "u", "managedFields": fields},
        "spec": spec,
        "status": status,
    }


def test_a_spec_that_is_known_is_not_read_again_nor_who_wrote_what() -> None:
    lines = PodLines(())
    spec = {
        "containers": [{"name": "c", "image": "i", "env": [{"name": "LONG", "value": "x"}]}],
        "dnsPolicy": "Default",
    }
    seen = []
    for node, kind in (("", "ADDED"), ("n", "MODIFIED"), ("n", "MODIFIED"), ("n", "DELETED")):
        item = lines.load(line(user_pod(placed(spec, node, first=True), phase="Pending"), kind))["object"]
        assert item["metadata"]["managedFields"] == []
        seen.append(("dnsPolicy" in item["spec"], lines.read(item)))
    # The third says what the second said; the second all of the first, and a node.
    assert [is_whole for is_whole, _ in seen] == [True, True, False, False]
    states = [pod.state for _, pod in seen if pod is not None]
    assert [state.node_name for state in states] == ["", "n", "n", "n"]
    assert all(state.spec is states[0].spec for state in states)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"type":"ADDED"', b'x},"spec":{},"status":{}'])
def test_what_is_no_event_is_as_bad_as_before(text: bytes) -> None:
    lines = PodLines(())
    if text == b"[]":
        assert lines.load(text) == []
        return
    with pytest.raises(ValueError, match=r"\w"):
        lines.load(text)


def test_bookmarks_and_errors_pass() -> None:
    lines = PodLines(())
    for text in (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"7"},"spec":{"containers":null},"status":{}}}',
        b'{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410,"reason":"Expired"}}',
    ):
        loaded = lines.load(text)
        assert loaded["type"] == orjson.loads(text)["type"]
        assert loaded["object"]["metadata"] == orjson.loads(text)["object"]["metadata"]


def test_an_object_in_another_order_is_loaded_whole() -> None:
    inner = {"metadata": {"a": {}}, "spec": {"b": 1}, "status": {}}
    pod = {"spec": {"containers": [], "inner": inner}, "metadata": {"uid": "u"}, "status": {}}
    assert PodLines(()).load(line(pod)) == {"type": "MODIFIED", "object": pod}
