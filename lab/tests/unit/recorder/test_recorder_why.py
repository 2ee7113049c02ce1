from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.tests.recorded import BEGIN, HOUR, MINUTE, bind_record, empty_store, fail_record, phase_record, pod_record
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import PodStory, find_pods, read_story
from roost_lab.recorder.store.records import (
    AutoscalerRecord,
    DecisionKind,
    DecisionRecord,
    GapRecord,
    NodeRecord,
    Phase,
    PreemptionRecord,
    PullRecord,
    Record,
)

Row = dict[str, Any]
SECOND = 1_000_000
RESET = "\x1b[2J"


def story(
    phases: dict[str, int], bind: Row | None = None, failures: tuple[Row, ...] = (), created_to_us: int = SECOND
) -> PodStory:
    """created_to_us: resolution of its creation; all other phases have whole seconds."""
    pod: Row = {
        "uid": "u",
        "namespace": "hub",
        "name": "p",
        "pod_class": "user",
        "image": "",
        "repo": "",
        "scheduler": "hub-user",
        "cpu_millicores": 1000,
        "memory_bytes": 1 << 30,
        "created_us": 0,
        "source": "watch",
        "deleted_us": None,
        "end_reason": None,
    }
    rows = [
        {
            "phase": phase,
            "detail": "",
            "at_us": at_us,
            "resolution_us": created_to_us if phase == Phase.CREATED else SECOND,
        }
        for phase, at_us in phases.items()
    ]
    decisions = [*failures, *([{**BIND, **bind}] if bind is not None else [])]
    return PodStory(pod, rows, decisions, [], [], [], [])


BIND: Row = {
    "kind": "bind",
    "node_name": "n",
    "scheduler": "",
    "at_us": 3 * SECOND,
    "resolution_us": SECOND,
    "nodes_feasible": 1,
    "nodes_total": 2,
    "model": "agrees",
    "model_note": "",
}


@pytest.mark.parametrize(("model", "is_sure"), [("agrees", True), ("differs", False), ("unknown", False)])
def test_that_no_other_node_was_possible_is_said_only_where_the_model_agrees(model: str, is_sure: bool) -> None:
    text = explain(story({}, {"model": model, "model_note": "the model rejects n"}))
    assert ("No other node was feasible" in text) == is_sure
    assert ("model differs: the model rejects n" in text) == (model == "differs")


def test_a_bound_pod_without_the_moment_of_its_scheduling_waited_until_it_was_bound() -> None:
    assert "  3 s for a node\n" in explain(story({Phase.CREATED: 0}, {}))


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
def test_a_wait_that_begins_with_a_whole_second_is_a_range(created: tuple[int, int], bound_us: int, said: str) -> None:
    text = explain(
        story({Phase.CREATED: created[0]}, {"at_us": bound_us, "resolution_us": 1}, created_to_us=created[1])
    )
    assert f"  {said} for a node\n" in text
    assert f"bound {said} after its creation" in text


def test_texts_of_the_cluster_do_not_steer_the_terminal_or_begin_lines() -> None:
    failure = {
        "kind": "fail",
        "at_us": 0,
        "last_us": 0,
        "tries": 1,
        "nodes_total": 1,
        "reasons": '{"\\u001b[31mred": 1}',
        "message": "",
    }
    other = {**failure, "reasons": "{}", "message": f"{RESET}first\nsecond"}
    text = explain(story({}, failures=(failure, other)))
    assert "\x1b" not in text
    assert "[2Jfirst second" in text
    assert "[31mred" in text


# Stories from a database


def explained(folder: Path, name: str, *records: Record, heard_us: int | None = None) -> str:
    """What `roost why` says of a pod when these are stored. heard_us: until when the record is complete."""
    store = empty_store(folder)
    store.write(records, {} if heard_us is None else {"pods": ("1", heard_us)})
    (pod,) = find_pods(store, name)
    text = explain(read_story(store, pod))
    store.close()
    return text


def test_a_pull_is_told_while_it_lasts_and_counted_once_afterwards(tmp_path: Path) -> None:
    image, begin = "quay.io/a/b:1", BEGIN + HOUR

    def pull(uid: str, ended_us: int, seconds: int) -> PullRecord:
        took_us = seconds * SECOND
        return PullRecord(
            pod_uid=uid,
            image=image,
            node_name="a",
            at_us=ended_us,
            warm=False,
            pull_us=took_us,
            pull_and_wait_us=took_us,
        )

    bound = [
        pod_record("late", image=image, created_us=begin),
        pull("x", BEGIN + 1 * MINUTE, 40),
        pull("y", BEGIN + 2 * MINUTE, 85),
        bind_record("late", begin + SECOND, "a"),
        phase_record("late", Phase.SCHEDULED, begin + SECOND),
        phase_record("late", Phase.PULLING, begin + 2 * SECOND, image),
    ]
    now = explained(tmp_path, "late", *bound, heard_us=begin + 52 * SECOND)
    assert "  Now: pulling quay.io/a/b:1 to a, 50 s so far; the last such pull took 1 min 25 s\n" in now
    after = explained(
        tmp_path,
        "late",
        *bound,
        pull("late", begin + 92 * SECOND, 90),
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
