"""What `roost why` says of a pod that waits: through the recorder's own reading, model and database."""

from pathlib import Path
from typing import Any

import pytest

from lab.tests.objects import BOUND, Object, node_object, pod_object
from lab.tests.recorded import BEGIN, SECOND, empty_store, pod_record
from roost_core.placement.labels import pulled_label
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import find_pods, read_story
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.model import Model
from roost_lab.recorder.recording.reading import read_node, read_pod
from roost_lab.recorder.store.records import NODES, PODS, Record, StoredState, WaitingRecord

IMAGE = "quay.io/me/image:1"
GATE = pulled_label("hub", "hub", IMAGE)
NOW_US = BEGIN + 5 * SECOND


def node(name: str, *, has_image: bool = False, **how: Any) -> Object:
    return node_object(name, images=(IMAGE,) if has_image else (), **how)


def pod(name: str, cpu: str = "1", **how: Any) -> Object:
    return pod_object(name, cpu=cpu, image=IMAGE, **how)


def refused(item: Object, message: str = "0/2 nodes are available: 2 Insufficient cpu.") -> Object:
    condition = {**BOUND, "status": "False", "reason": "Unschedulable", "message": message}
    return {**item, "status": {"conditions": [condition]}}


def keeps_off_pulling() -> Object:
    term = {"matchExpressions": [{"key": GATE, "operator": "NotIn", "values": ["pulling"]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def recorded(nodes: list[Object], pods: list[Object], *, is_listed: bool = False) -> list[Record]:
    """What the recorder stores of these nodes and pods; is_listed: they were there before it began."""
    model = Model({"default-scheduler": default_profile(NEWEST_MINOR)})
    classes = {"user-placeholder": "placeholder"}
    assembler = Assembler(
        lambda labels, _namespace: classes.get(labels.get("component", ""), "user"), StoredState(), model
    )
    records: list[Record] = []
    for kind in (NODES, PODS):
        assembler.listing(kind)
        if kind == NODES:
            for item in nodes:
                records += assembler.node(item["metadata"]["name"], read_node(item), BEGIN, listed=True)
        elif is_listed:
            for item in pods:
                key = f"hub/{item['metadata']['name']}"
                records += assembler.pod(key, read_pod(item, (), {}), BEGIN, listed=True)
        records += assembler.synced(kind, NOW_US)
    if not is_listed:
        for item in pods:
            records += assembler.pod(f"hub/{item['metadata']['name']}", read_pod(item, (), {}), NOW_US)
    return records


def explained(folder: Path, name: str, records: list[Record]) -> str:
    store = empty_store(folder)
    store.write(records, {PODS: ("1", BEGIN + 65 * SECOND)})
    text = explain(read_story(store, find_pods(store, name)[0]))
    store.close()
    return text


def test_a_pod_that_is_larger_than_all_nodes_is_told_how_large_they_are(tmp_path: Path) -> None:
    words = explained(
        tmp_path,
        "p",
        recorded([node("a", has_image=True), node("b", cpu="2")], [pod("u", on="a"), refused(pod("p", cpu="500"))]),
    )
    assert "not ready yet at 2027-01-15 08:01:05 UTC, the last news recorded.\n" in words
    assert "Node by node at its last attempt, 2027-01-15 08:00:05 UTC (it asks 500 CPU and 1.0 GiB):\n" in words
    assert "  a: is too small: asks 500 CPU, the whole node has 4 CPU (1 user, has the image)\n" in words
    assert "  b: is too small: asks 500 CPU, the whole node has 2 CPU (lacks the image)\n" in words
    assert "Where its image was: on a (1 of 2 nodes).\n" in words
    assert "What would help:\n  It asks 500 CPU, the largest node has 4 CPU: ask for less" in words
    assert "  The image gate keeps it off no node.\n" in words
    assert "  No placeholder is there to make room for it.\n" in words


@pytest.mark.parametrize(
    ("nodes", "spec", "lacks", "helps"),
    [
        (
            [node("a", labels={GATE: "pulling"}), node("b", cpu="1")],
            {"affinity": keeps_off_pulling()},
            "a: is still pulling an image of the pod, so the image gate keeps it off (lacks the image)",
            "a will take it when the image is there, or when the gate opens: wait.",
        ),
        (
            [node("a", unschedulable=True), node("b", cpu="1")],
            {},
            "a: is cordoned (lacks the image)",
            "a would take it, but is cordoned: kubectl uncordon a",
        ),
        (
            [node("a", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]), node("b", cpu="1")],
            {},
            "a: has the taint gpu=yes:NoSchedule, which the pod does not tolerate (lacks the image)",
            "a would take it if it tolerated gpu=yes:NoSchedule.",
        ),
        (
            [node("a", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]), node("b", cpu="1")],
            {},
            "a: is not ready (lacks the image)",
            "a would take it when ready: kubectl describe node a",
        ),
        (
            [node("a", labels={"zone": "b"}), node("b", cpu="1", labels={"zone": "a"})],
            {"nodeSelector": {"zone": "a"}},
            "a: lacks what the pod requires: zone=a (lacks the image)",
            "a would take it if it did not require zone=a.",
        ),
        (
            [node("a", cpu="3"), node("b", cpu="1")],
            {},
            "a: asks 2 CPU, free 1 CPU of 3 CPU (1 user, lacks the image)",
            "It needs a new node, or 1 CPU more free on a, which comes nearest.",
        ),
        (
            [node("a", pods="1"), node("b", cpu="1")],
            {},
            "a: runs as many pods as it may (1) (1 user, lacks the image)",
            "No autoscaler has said anything about it: none runs, or none of its node groups suits.",
        ),
    ],
    ids=["gate", "cordon", "taint", "not ready", "label", "room", "pods"],
)
def test_each_node_is_told_with_what_it_lacks_and_with_what_would_help(
    tmp_path: Path, nodes: list[Object], spec: Object, lacks: str, helps: str
) -> None:
    others = [pod("u", cpu="2", on="a")] if "user" in lacks else []
    words = explained(tmp_path, "p", recorded(nodes, [*others, refused(pod("p", cpu="2", **spec))]))
    assert f"\n  {lacks}\n" in words
    assert f"\n  {helps}\n" in words.partition("What would help:")[2]
    # The other node is too small, and no advice.
    assert "  b: is too small: asks 2 CPU, the whole node has 1 CPU" in words


def test_a_node_is_told_with_all_that_it_lacks_at_once(tmp_path: Path) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    words = explained(
        tmp_path, "p", recorded([node("a", cpu="1", unschedulable=True, taints=[taint])], [refused(pod("p", cpu="2"))])
    )
    line = next(line for line in words.splitlines() if line.startswith("  a: "))
    assert line.startswith(
        "  a: is cordoned; has the taint gpu=yes:NoSchedule, which the pod does not tolerate; is too "
    )
    assert "kubectl uncordon" not in words


def test_placeholders_that_gave_no_room_are_told(tmp_path: Path) -> None:
    holder = pod("h", cpu="1", on="a", labels={"component": "user-placeholder"})
    words = explained(tmp_path, "p", recorded([node("a", cpu="2")], [holder, refused(pod("p", cpu="2"))]))
    assert "  1 placeholder on a did not make room for it: " in words


def test_pods_that_waited_before_the_recorder_began_are_examined_once_all_is_known() -> None:
    told = recorded([node("a")], [refused(pod("p", cpu="500")), pod("u", on="a")], is_listed=True)
    assert [(one.pod_uid, one.number) for one in told if isinstance(one, WaitingRecord)] == [("uid-p", 1)]


def test_the_last_attempt_replaces_the_one_before(tmp_path: Path) -> None:
    first = recorded([node("a")], [refused(pod("p", cpu="500"))])
    then = recorded([node("a"), node("b")], [refused(pod("p", cpu="500"), "0/2 nodes are available: …")])
    assert "  b: is too small" in explained(tmp_path, "p", [*first, *then])


def test_a_pod_that_no_scheduler_has_tried_is_told_to_look_for_its_scheduler(tmp_path: Path) -> None:
    words = explained(tmp_path, "p", [pod_record("p")])
    assert "What would help:\n  No scheduler is known to have tried it. Does hub-user run?" in words
