from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.objects import BOUND, Object, node_object, pod_object
from lab.tests.recorded import bind_record, empty_store, fail_record, phase_record, pod_record, pull_record
from roost_core.placement.labels import pulled_label
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import find_pods, read_story
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.model import Model
from roost_lab.recorder.recording.reading import read_node, read_pod
from roost_lab.recorder.store.records import (
    NODES,
    PODS,
    AutoscalerRecord,
    DecisionKind,
    DecisionRecord,
    GapRecord,
    NodeRecord,
    Phase,
    PreemptionRecord,
    Record,
    StoredState,
    WaitingRecord,
)

RESET = "\x1b[2J"


def explained(folder: Path, name: str, *records: Record, heard_us: int | None = None) -> str:
    """What `roost why` says of a pod when these are stored. heard_us: until when the record is complete."""
    store = empty_store(folder)
    store.write(records, {} if heard_us is None else {"pods": ("1", heard_us)})
    (pod,) = find_pods(store, name)
    text = explain(read_story(store, pod))
    store.close()
    return text


@pytest.mark.parametrize(("model", "is_sure"), [("agrees", True), ("differs", False), ("unknown", False)])
def test_that_no_other_node_was_possible_is_said_only_where_the_model_agrees(
    tmp_path: Path, model: str, is_sure: bool
) -> None:
    judged: dict[str, Any] = {"model_note": "the model rejects n", "nodes_feasible": 1, "nodes_total": 2}
    text = explained(tmp_path, "p", pod_record("p"), replace(bind_record("p", BEGIN, "n", model), **judged))
    assert ("No other node was feasible" in text) == is_sure
    assert ("model differs: the model rejects n" in text) == (model == "differs")


# When it was created and to what resolution, when it was bound, exactly.
@pytest.mark.parametrize(
    ("created", "bound_us", "said"),
    [
        # A whole second, and a wait that may be nobody's: its end less a second is before it.
        ((0, SECOND), 900_000, "at most 900 ms"),
        ((0, SECOND), 3_100_000, "2.1 s to 3.1 s"),
        # The watch told of it.
        ((800_000, 1), 900_000, "100 ms"),
        ((800_000, 1), 3_100_000, "2.3 s"),
        # A second doesn't matter.
        ((0, SECOND), 95_100_000, "1 min 35 s"),
    ],
)
def test_a_wait_that_begins_with_a_whole_second_is_a_range(
    tmp_path: Path, created: tuple[int, int], bound_us: int, said: str
) -> None:
    step = replace(phase_record("p", Phase.CREATED, BEGIN + created[0]), resolution_us=created[1])
    text = explained(tmp_path, "p", pod_record("p"), step, bind_record("p", BEGIN + bound_us, "n"))
    assert f"  {said} for a node\n" in text
    assert f"bound by hub-user {said} after its creation" in text


def test_texts_of_the_cluster_do_not_steer_the_terminal_or_begin_lines(tmp_path: Path) -> None:
    other = replace(fail_record("p", 2, {}), message=f"{RESET}first\nsecond")
    text = explained(tmp_path, "p", pod_record("p"), fail_record("p", 1, {"\x1b[31mred": 1}), other)
    assert "\x1b" not in text
    assert "[2Jfirst second" in text
    assert "[31mred" in text


def test_a_failure_of_unknown_nodes_and_an_end_of_unknown_kind_are_told_without_them(tmp_path: Path) -> None:
    failures = [fail_record("p", 1, {"Insufficient cpu": 2}), fail_record("p", 2, {"Insufficient cpu": 2})]
    failures[1] = replace(failures[1], nodes_total=3)
    text = explained(tmp_path, "p", pod_record("p", deleted_us=BEGIN), *failures)
    assert "2027-01-15 08:00:01 UTC: 2 Insufficient cpu\n" in text
    assert "2027-01-15 08:00:01 UTC: of 3 nodes: 2 Insufficient cpu\n" in text
    assert text.endswith("Gone 2027-01-15 08:00:00 UTC.\n")
    evicted = explained(tmp_path, "p", pod_record("p", deleted_us=BEGIN, end_reason="evicted"))
    assert evicted.endswith("Gone 2027-01-15 08:00:00 UTC: it was evicted.\n")


def test_a_pull_is_told_while_it_lasts_and_counted_once_afterwards(tmp_path: Path) -> None:
    image, begin = "quay.io/a/b:1", BEGIN + HOUR

    bound = [
        pod_record("late", image=image, created_us=begin),
        pull_record("x", BEGIN + 1 * MINUTE, image, 40),
        pull_record("y", BEGIN + 2 * MINUTE, image, 85),
        bind_record("late", begin + SECOND, "n"),
        phase_record("late", Phase.SCHEDULED, begin + SECOND),
        phase_record("late", Phase.PULLING, begin + 2 * SECOND, image),
    ]
    now = explained(tmp_path, "late", *bound, heard_us=begin + 52 * SECOND)
    assert "  Now: pulling quay.io/a/b:1 to n, 50 s so far; the last such pull took 1 min 25 s\n" in now
    after = explained(
        tmp_path,
        "late",
        *bound,
        pull_record("late", begin + 92 * SECOND, image, 90),
        phase_record("late", Phase.ACCEPTED, begin + SECOND),
        phase_record("late", Phase.INITIALIZED, begin + SECOND),
        phase_record("late", Phase.STARTED, begin + 95 * SECOND),
        phase_record("late", Phase.READY, begin + 95 * SECOND),
    )
    assert "Now:" not in after
    assert "1 min 30 s for image" in after
    assert "about 3 s for its containers to start" in after


def scale_up(number: int, after_us: int, count: int = 1) -> AutoscalerRecord:
    return AutoscalerRecord(
        event_uid=f"e{number}",
        at_us=BEGIN + after_us,
        last_us=BEGIN + after_us + (count - 1) * MINUTE,
        count=count,
        reason="TriggeredScaleUp" if number else "NotTriggerScaleUp",
        about="Pod/hub/p",
        message=f"pod triggered scale-up {number}",
    )


def decision(kind: DecisionKind, detail: str) -> DecisionRecord:
    return replace(bind_record("p", BEGIN + MINUTE, "n"), id=f"p/{kind}/{detail}", kind=kind)


def test_a_pod_that_waits_still_is_told_of_scale_ups_after_its_last_phase(tmp_path: Path) -> None:
    words = explained(
        tmp_path,
        "p",
        pod_record("p"),
        phase_record("p", Phase.UNSCHEDULABLE, BEGIN + SECOND),
        fail_record("p", 1, {"Insufficient cpu": 2}),
        *(scale_up(number, number * MINUTE) for number in range(5)),
        scale_up(5, 20 * MINUTE, count=3),
    )
    assert "  a node, after at least 1 failed attempt:\n" in words
    assert "2027-01-15 08:00:00 UTC: NotTriggerScaleUp: pod triggered scale-up 0\n" in words
    assert "… 3 more messages of an autoscaler …\n" in words
    times = "(3 times, last 2027-01-15 08:22:00 UTC)"
    assert f"    2027-01-15 08:20:00 UTC: TriggeredScaleUp: pod triggered scale-up 5 {times}\n" in words


def test_what_an_autoscaler_said_after_the_pod_was_ready_or_of_another_of_its_name_is_none_of_its_start(
    tmp_path: Path,
) -> None:
    ready = explained(
        tmp_path, "p", pod_record("p"), phase_record("p", Phase.READY, BEGIN + MINUTE), scale_up(1, 2 * MINUTE)
    )
    gone = explained(tmp_path, "p", pod_record("p", deleted_us=BEGIN + MINUTE), scale_up(1, 2 * MINUTE))
    assert "scale-up" not in ready + gone


def test_a_pod_that_was_deleted_while_it_waited_has_waited_until_then_in_vain(tmp_path: Path) -> None:
    words = explained(
        tmp_path,
        "p",
        pod_record("p", deleted_us=BEGIN + 5 * MINUTE, end_reason="deleted"),
        phase_record("p", Phase.UNSCHEDULABLE, BEGIN + SECOND),
        phase_record("p", Phase.GONE, BEGIN + 5 * MINUTE),
        fail_record("p", 1, {"Insufficient cpu": 2}, tries=4),
        scale_up(1, 2 * MINUTE),
    )
    assert "it never became ready.\n" in words
    assert "Where it went: nowhere; no scheduler has bound it.\n" in words
    assert "  5 min for a node without success, after at least 4 failed attempts:\n" in words
    assert "TriggeredScaleUp: pod triggered scale-up 1\n" in words
    assert "Gone 2027-01-15 08:05:00 UTC: it was deleted.\n" in words


def test_a_gap_is_told_of_only_if_it_touches_the_start(tmp_path: Path) -> None:
    gap = GapRecord(kind="pods", from_us=BEGIN + 2 * MINUTE, to_us=BEGIN + 3 * MINUTE, why="forgotten")
    assert "Note: from 2027-01-15 08:02:00 UTC" in explained(tmp_path, "p", pod_record("p"), gap)
    ready = phase_record("p", Phase.READY, BEGIN + MINUTE)
    assert "Note:" not in explained(tmp_path, "p", pod_record("p"), ready, gap)


VICTIM = pod_record("v", priority=-10, deleted_us=BEGIN + MINUTE, end_reason="preempted")


@pytest.mark.parametrize(
    ("by_uid", "others", "says"),
    [
        ("p", [pod_record("p", priority=10)], "it was pre-empted for hub/p.\n"),
        ("p", [], "it was pre-empted for a pod that isn't recorded (uid p).\n"),
        (None, [pod_record("p", priority=10)], "it was pre-empted for a pod of higher priority.\n"),
    ],
)
def test_a_victim_is_told_for_whom_it_had_to_go(
    tmp_path: Path, by_uid: str | None, others: list[Record], says: str
) -> None:
    made = PreemptionRecord(victim_uid="v", by_uid=by_uid, node_name="n", at_us=BEGIN + MINUTE, kind="preempted")
    assert says in explained(tmp_path, "v", VICTIM, made, *others)


def test_a_pod_is_told_who_had_to_go_for_it(tmp_path: Path) -> None:
    words = explained(
        tmp_path,
        "p",
        pod_record("p"),
        VICTIM,
        decision(DecisionKind.NOMINATE, "n"),
        decision(DecisionKind.PREEMPT, "v"),
        decision(DecisionKind.PREEMPT, "unknown"),
        bind_record("p", BEGIN + 2 * MINUTE, "n"),
    )
    assert "  Room was made for it on n at 2027-01-15 08:01:00 UTC.\n" in words
    assert "  Pre-empted for it on n: hub/v.\n" in words
    assert "  Pre-empted for it on n: a pod of lower priority.\n" in words


GATED = [phase_record("p", Phase.GATED, BEGIN, gate) for gate in ("b.example/room", "a.example/quota")]
GATES = "its scheduling gates a.example/quota, b.example/room"


@pytest.mark.parametrize(
    ("deleted_us", "more", "says"),
    [
        (None, [], f"  {GATES} to be removed: until then no scheduler considers it\n"),
        (BEGIN + MINUTE, [], f"  1 min for {GATES} to be removed, without success\n"),
        (
            None,
            [phase_record("p", Phase.UNGATED, BEGIN + MINUTE), bind_record("p", BEGIN + MINUTE + SECOND, "n")],
            f"  1 min for {GATES} to be removed\n  1 s for a node\n",
        ),
        (None, [phase_record("p", Phase.UNGATED, BEGIN + MINUTE)], f"  1 min for {GATES} to be removed\n  a node\n"),
        (
            None,
            [bind_record("p", BEGIN + MINUTE, "n")],
            f"  first for {GATES} to be removed; when that was is not recorded\n  1 min for a node\n",
        ),
    ],
)
def test_a_gated_pod_waits_for_its_gates_by_name_and_only_then_for_a_node(
    tmp_path: Path, deleted_us: int | None, more: list[Record], says: str
) -> None:
    words = explained(tmp_path, "p", pod_record("p", deleted_us=deleted_us), *GATED, *more)
    assert f"What it waited for:\n{says}" in words
    assert " for a node without success" not in words


@pytest.mark.parametrize(
    ("filled_us", "says"),
    [
        (None, "  The node had joined 1 h earlier.\n"),
        (BEGIN - MINUTE, "  The node had joined 1 h earlier, and had all images of the hub 1 min earlier.\n"),
        (BEGIN + MINUTE, "  The node had joined 1 h earlier, and had all images of the hub 1 min later.\n"),
    ],
)
def test_how_new_the_node_was_and_whether_its_images_were_there_is_told(
    tmp_path: Path, filled_us: int | None, says: str
) -> None:
    node = NodeRecord(uid="uid-n", name="n", created_us=BEGIN - HOUR, images_ready_us=filled_us)
    assert says in explained(tmp_path, "p", pod_record("p"), node, bind_record("p", BEGIN, "n"))


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


def answer_to(folder: Path, name: str, records: list[Record]) -> str:
    store = empty_store(folder)
    store.write(records, {PODS: ("1", BEGIN + 65 * SECOND)})
    text = explain(read_story(store, find_pods(store, name)[0]))
    store.close()
    return text


def test_a_pod_that_is_larger_than_all_nodes_is_told_how_large_they_are(tmp_path: Path) -> None:
    words = answer_to(
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


# What is the matter with node a, and what else the pod asks for -> what a lacks, and what would help.
LACKS: list[tuple[Object, Object, str, str]] = [
    ({"labels": {GATE: "pulling"}}, {"affinity": keeps_off_pulling()},
     "is still pulling an image of the pod, so the image gate keeps it off (lacks",
     "a will take it when the image is there, or when the gate opens: wait."),
    ({"unschedulable": True}, {}, "is cordoned (lacks", "a would take it, but is cordoned: kubectl uncordon a"),
    ({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}, {},
     "has the taint gpu=yes:NoSchedule, which the pod does not tolerate (lacks",
     "a would take it if it tolerated gpu=yes:NoSchedule."),
    ({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}, {}, "is not ready (lacks",
     "a would take it when ready: kubectl describe node a"),
    ({"labels": {"zone": "b"}}, {"nodeSelector": {"zone": "a"}}, "lacks what the pod requires: zone=a (lacks",
     "a would take it if it did not require zone=a."),
    ({"cpu": "3"}, {}, "asks 2 CPU, free 1 CPU of 3 CPU (1 user, lacks",
     "It needs a new node, or 1 CPU more free on a, which comes nearest."),
    ({"pods": "1"}, {}, "runs as many pods as it may (1) (1 user, lacks",
     "No autoscaler has said anything about it: none runs, or none of its node groups suits."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("how", "spec", "lacks", "helps"), LACKS, ids=["gate", "cordon", "taint", "not ready", "label", "room", "pods"]
)
def test_each_node_is_told_with_what_it_lacks_and_with_what_would_help(
    tmp_path: Path, how: Object, spec: Object, lacks: str, helps: str
) -> None:
    others = [pod("u", cpu="2", on="a")] if "user" in lacks else []
    nodes = [node("a", **how), node("b", cpu="1", labels={"zone": "a"})]
    words = answer_to(tmp_path, "p", recorded(nodes, [*others, refused(pod("p", cpu="2", **spec))]))
    assert f"\n  a: {lacks} the image)\n" in words
    assert f"\n  {helps}\n" in words.partition("What would help:")[2]
    # The other node is too small, and no advice.
    assert "  b: is too small: asks 2 CPU, the whole node has 1 CPU" in words


def test_a_node_is_told_with_all_that_it_lacks_at_once(tmp_path: Path) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    words = answer_to(
        tmp_path, "p", recorded([node("a", cpu="1", unschedulable=True, taints=[taint])], [refused(pod("p", cpu="2"))])
    )
    line = next(line for line in words.splitlines() if line.startswith("  a: "))
    assert line.startswith(
        "  a: is cordoned; has the taint gpu=yes:NoSchedule, which the pod does not tolerate; is too "
    )
    assert "kubectl uncordon" not in words


def test_placeholders_that_gave_no_room_are_told(tmp_path: Path) -> None:
    holder = pod("h", cpu="1", on="a", labels={"component": "user-placeholder"})
    words = answer_to(tmp_path, "p", recorded([node("a", cpu="2")], [holder, refused(pod("p", cpu="2"))]))
    assert "  1 placeholder on a did not make room for it: " in words


def test_pods_that_waited_before_the_recorder_began_are_examined_once_all_is_known() -> None:
    told = recorded([node("a")], [refused(pod("p", cpu="500")), pod("u", on="a")], is_listed=True)
    assert [(one.pod_uid, one.number) for one in told if isinstance(one, WaitingRecord)] == [("uid-p", 1)]


def test_the_last_attempt_replaces_the_one_before(tmp_path: Path) -> None:
    first = recorded([node("a")], [refused(pod("p", cpu="500"))])
    then = recorded([node("a"), node("b")], [refused(pod("p", cpu="500"), "0/2 nodes are available: …")])
    assert "  b: is too small" in answer_to(tmp_path, "p", [*first, *then])


def test_a_pod_that_no_scheduler_has_tried_is_told_to_look_for_its_scheduler(tmp_path: Path) -> None:
    words = answer_to(tmp_path, "p", [pod_record("p")])
    assert "What would help:\n  No scheduler is known to have tried it. Does hub-user run?" in words
