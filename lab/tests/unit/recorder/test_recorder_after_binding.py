"""What a bound pod waited for: its volumes, its sandbox, init containers, and what nothing says."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.moments import BEGIN, SECOND
from lab.tests.objects import event_object
from lab.tests.recorded import bind_record, empty_store, phase_record, pod_record, pull_record
from roost.cli import run
from roost_core.placement.hold_ups import short_cause
from roost_lab.pages.phrases import show_plain, show_span
from roost_lab.recorder.answers.after_binding import AfterBinding, Wait, find_waits
from roost_lab.recorder.recording.event_records import records_of_event
from roost_lab.recorder.recording.pod_events import KIND_OF_REASON, WaitKind
from roost_lab.recorder.recording.pod_records import steps_of
from roost_lab.recorder.recording.reading import read_event, read_pod
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import AutoscalerRecord, Phase, PodEventRecord, Record
from roost_lab.report.gather import gather
from roost_lab.report.sentence import sentence

STARTS = Path(__file__).parents[2] / "data" / "starts"
MULTI_ATTACH = (
    'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and'
    " can't be attached to another"
)


def row(record: Record) -> Mapping[str, Any]:
    return {name: getattr(record, name) for name in type(record).__dataclass_fields__}


def said(reason: str, message: str, at: float, last: float | None = None, **more: Any) -> Any:
    """An Event of the pod p, so many seconds after it was bound."""
    at_us = BEGIN + round(at * SECOND)
    subject = more.pop("subject", "")
    last_us = at_us if last is None else BEGIN + round(last * SECOND)
    return row(
        PodEventRecord(
            pod_uid="p",
            reason=reason,
            subject=subject,
            at_us=at_us,
            resolution_us=SECOND,
            last_us=last_us,
            message=message,
            **more,
        )
    )


def step(phase: Phase, at: float, detail: str = "") -> Mapping[str, Any]:
    return row(phase_record("p", phase, BEGIN + round(at * SECOND), detail))


def told(found: AfterBinding) -> list[tuple[str, str]]:
    return [(show_span(wait.span_us), wait.awaits) for wait in found.waits]


def why_of(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> str:
    database = str(tmp_path / "h.db")
    assert run(["records", "import", str(STARTS / name), "--database", database]) == 0
    capsys.readouterr()
    assert run(["why", "jhub/jupyter-bob", "--database", database]) == 0
    return capsys.readouterr().out


def test_a_volume_that_was_attached_late_is_what_it_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = why_of(tmp_path, capsys, "volume-attached-late.json").splitlines()
    cause = "Multi-Attach error for volume pvc-1 (attached 10:06:10)"
    assert f"  6 min 9 s for its volume: {cause}" in lines
    assert "  11.5 s after it was bound, for nothing that was recorded" in lines


def test_an_init_container_is_what_it_waited_for_and_no_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = why_of(tmp_path, capsys, "init-container-takes-minutes.json").splitlines()
    assert "  5 min 7 s for init container volume-mount-ownership-fix" in lines
    assert lines.index("  no time for image busybox: node-a already had it") < lines.index(
        "  5 min 7 s for init container volume-mount-ownership-fix"
    )


def test_what_nothing_tells_is_a_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = json.loads((STARTS / "volume-attached-late.json").read_text())
    listed["items"] = [item for item in listed["items"] if "Attach" not in item["reason"]]
    events = tmp_path / "events.json"
    events.write_text(json.dumps(listed))
    database = str(tmp_path / "h.db")
    run(["records", "import", str(events), "--database", database])
    capsys.readouterr()
    run(["why", "jhub/jupyter-bob", "--database", database])
    out = capsys.readouterr().out
    assert "  6 min 20 s after it was bound, for nothing that was recorded\n" in out
    assert "volume" not in out


@pytest.mark.parametrize("seed", range(60))
def test_each_step_of_a_start_is_found_and_the_rest_is_what_is_left(seed: int) -> None:
    """A pod whose kubelet tells what a drawn start took, step by step."""
    rng = random.Random(seed)
    at = float(rng.randint(0, 3))
    expected: list[tuple[WaitKind, int]] = []
    phases, pulls, events = [], [], []

    def lasts(kind: WaitKind | None) -> tuple[float, float]:
        nonlocal at
        begin, took = at, rng.randint(1, 700)
        at += took
        if kind is not None:
            expected.append((kind, took * SECOND))
        return begin, at

    def pause() -> None:
        nonlocal at
        at += rng.randint(1, 4)

    if rng.random() < 0.5:
        begin, end = lasts(WaitKind.VOLUME)
        if rng.random() < 0.5:
            events.append(said("FailedAttachVolume", MULTI_ATTACH, begin, subject="pvc-1"))
            events.append(said("SuccessfulAttachVolume", "", end, subject="pvc-1"))
            pause()
        else:
            last = rng.uniform(begin, end)
            message = f'MountVolume.SetUp failed for volume "v{seed}" : not found'
            events.append(said("FailedMount", message, begin, last, subject=f"v{seed}"))
            # What the next step is, ends it.
            phases.append(step(Phase.PULLING, end, "first"))
    if rng.random() < 0.5:
        begin, end = lasts(WaitKind.SANDBOX)
        phases = [phase for phase in phases if phase["phase"] != Phase.PULLING]
        last = rng.uniform(begin, end)
        events.append(said("FailedCreatePodSandBox", "Failed to create", begin, last))
        phases.append(step(Phase.PULLING, end, "first"))
    for number in range(rng.randint(0, 2)):
        pause()
        begin, end = lasts(WaitKind.INIT)
        phases.append(step(Phase.INIT_STARTED, begin, f"init-{number}"))
        if rng.random() < 0.5:
            phases.append(step(Phase.INIT_ENDED, end, f"init-{number}"))
        elif rng.random() < 0.5:
            phases.append(step(Phase.PULLED, end, f"image-{number}"))
            pulls.append(row(pull_record("p", BEGIN + round(end * SECOND), f"image-{number}")))
        else:
            phases.append(step(Phase.PULLING, end, f"image-{number}"))
    pulled = 0
    if rng.random() < 0.5:
        pause()
        begin, end = lasts(None)
        pulled = round((end - begin) * SECOND)
        phases += [step(Phase.PULLING, begin, "main"), step(Phase.PULLED, end, "main")]
        pulls.append(
            row(pull_record("p", BEGIN + round(end * SECOND), "main", seconds=end - begin))
        )
    phases.append(step(Phase.STARTED, at, "notebook"))
    rng.shuffle(phases)
    rng.shuffle(events)
    found = find_waits(phases, pulls, events, BEGIN)
    assert [(wait.kind, wait.span_us) for wait in found.waits] == expected
    whole = round(at * SECOND)
    assert found.unexplained_us == whole - pulled - sum(span for _, span in expected)
    assert found.is_over
    # Until a time in its middle, nothing is longer than that, and the sum is all of it.
    until = BEGIN + rng.randint(0, whole)
    before = [
        phase for phase in phases if phase["at_us"] <= until and phase["phase"] != Phase.STARTED
    ]
    seen = [event for event in events if event["at_us"] <= until]
    part = find_waits(
        before, [pull for pull in pulls if pull["at_us"] <= until], seen, BEGIN, until
    )
    assert part.unexplained_us + sum(e - b for b, e in part.explained) == until - BEGIN
    assert all(BEGIN <= wait.from_us <= wait.to_us <= until for wait in part.waits)


def test_a_mount_that_is_told_after_minutes_began_with_the_binding_and_goes_on() -> None:
    message = (
        "Unable to attach or mount volumes: unmounted volumes=[home], unattached volumes=[],"
        " failed to process volumes=[]: timed out waiting for the condition"
    )
    events = [said("FailedMount", message, 123, 400, subject="home")]
    found = find_waits([], [], events, BEGIN, BEGIN + 420 * SECOND)
    (wait,) = found.waits
    assert (show_span(wait.span_us), wait.goes_on) == ("7 min", True)
    assert found.unexplained_us == 0
    assert wait.cause.startswith("Unable to attach or mount volumes: unmounted volumes=[home]")


def test_several_volumes_are_one_wait_with_the_cause_of_the_longest() -> None:
    events = [
        said("FailedMount", 'failed for volume "a" : secret "a" not found', 2, 8, subject="a"),
        said("FailedAttachVolume", MULTI_ATTACH, 1, subject="pvc-1"),
        said("SuccessfulAttachVolume", "", 300, subject="pvc-1"),
        # Attached at once.
        said("SuccessfulAttachVolume", "", 1, subject="pvc-2"),
    ]
    found = find_waits([step(Phase.STARTED, 302)], [], events, BEGIN)
    assert told(found) == [("5 min 2 s", "its volume")]


def test_a_volume_that_took_its_time_without_a_failure_is_told() -> None:
    events = [said("SuccessfulAttachVolume", "", 45, subject="pvc-1")]
    (wait,) = find_waits([step(Phase.STARTED, 50)], [], events, BEGIN).waits
    assert (show_span(wait.span_us), wait.awaits) == ("45 s", "its volume")
    assert wait.cause == "pvc-1 (attached 08:00:45)"


def test_an_image_whose_pull_fails_is_waited_for_until_it_is_there() -> None:
    phases = [
        step(Phase.PULLING, 2, "q.io/a:1"),
        step(Phase.PULLED, 200, "q.io/a:1"),
        step(Phase.STARTED, 201),
    ]
    message = 'Failed to pull image "q.io/a:1": not found'
    events = [said("Failed", message, 4, 150, subject="q.io/a:1")]
    pulls = [row(pull_record("p", BEGIN + 200 * SECOND, "q.io/a:1", seconds=3.0))]
    found = find_waits(phases, pulls, events, BEGIN)
    assert told(found) == [("3 min 18 s", "image q.io/a:1")]
    assert found.unexplained_us == 3 * SECOND


@pytest.mark.parametrize(
    ("message", "short"),
    [
        (MULTI_ATTACH, "Multi-Attach error for volume pvc-1"),
        (
            'Multi-Attach error for volume "v" Volume is already used by pod(s) jupyter-a',
            "Multi-Attach error for volume v, used by pod(s) jupyter-a",
        ),
        (
            (
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup"
                f' network for sandbox "{"ab" * 32}": plugin type="calico" failed (add): no IPs'
            ),
            "failed to setup network for sandbox …: plugin type=calico failed (add): no IPs",
        ),
        (
            'MountVolume.SetUp failed for volume "x" : secret "y" not found',
            "MountVolume.SetUp failed for volume x: secret y not found",
        ),
        ("x" * 300, f"{'x' * 199}…"),
    ],
)
def test_a_cause_is_told_without_what_wraps_it(message: str, short: str) -> None:
    assert short_cause(message) == short


KEPT = [
    ("FailedMount", 'MountVolume.SetUp failed for volume "home" : x', "", "home"),
    ("FailedAttachVolume", MULTI_ATTACH, "", "pvc-1"),
    ("FailedCreatePodSandBox", "Failed to create pod sandbox: x", "", ""),
    ("Unhealthy", "Readiness probe failed", "spec.containers{notebook}", "notebook"),
    ("Failed", 'Error: secret "x" not found', "spec.containers{notebook}", "notebook"),
    ("Failed", 'Failed to pull image "q.io/a:1": no', "spec.containers{n}", "q.io/a:1"),
    ("BackOff", 'Back-off pulling image "q.io/a:1"', "spec.containers{n}", "q.io/a:1"),
    ("Failed", "Error: ErrImagePull", "spec.containers{n}", None),
    ("Failed", "Error: ImagePullBackOff", "spec.containers{n}", None),
    ("Killing", "Stopping container x", "spec.containers{n}", None),
]


@pytest.mark.parametrize(("reason", "note", "path", "subject"), KEPT)
def test_an_event_of_a_bound_pod_is_kept_with_what_it_is_about(
    reason: str, note: str, path: str, subject: str | None
) -> None:
    item = event_object(reason, note, "p", 3)
    item["regarding"]["fieldPath"] = path
    item["deprecatedCount"] = 4
    records = list(records_of_event(read_event(item)))
    if subject is None:
        assert records == []
        return
    (record,) = records
    assert isinstance(record, PodEventRecord)
    assert (record.reason, record.subject, record.tries) == (reason, subject, 4)


@pytest.mark.parametrize(("reason", "count"), [("Pulled", 0), ("Nominated", 1)])
def test_an_autoscalers_event_of_a_pod_is_recorded_unless_it_is_about_a_pull(
    reason: str, count: int
) -> None:
    item = event_object(reason, "Something else", "p", 3)
    item["reportingController"] = "karpenter"
    records = list(records_of_event(read_event(item)))
    assert [type(record) for record in records] == [AutoscalerRecord] * count


def test_an_init_containers_times_are_read_from_its_pod() -> None:
    state = {
        "terminated": {"startedAt": "2027-01-15T08:00:03Z", "finishedAt": "2027-01-15T08:05:03Z"}
    }
    body = {
        "metadata": {"name": "p", "uid": "p", "creationTimestamp": "2027-01-15T08:00:00Z"},
        "spec": {"containers": [{"name": "n"}], "initContainers": [{"name": "chown"}]},
        "status": {"initContainerStatuses": [{"name": "chown", "state": state}]},
    }
    pod = read_pod(body, (), {})
    assert pod is not None
    steps = {key: step.at_us for key, step in steps_of(pod).items() if "init-" in key[0]}
    assert steps == {
        (Phase.INIT_STARTED, "chown"): BEGIN + 3 * SECOND,
        (Phase.INIT_ENDED, "chown"): BEGIN + 303 * SECOND,
    }


def test_why_tells_of_a_pod_that_still_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = empty_store(tmp_path)
    event = PodEventRecord(
        pod_uid="p",
        reason="FailedCreatePodSandBox",
        subject="",
        at_us=BEGIN + 5 * SECOND,
        resolution_us=SECOND,
        last_us=BEGIN + 60 * SECOND,
        message='plugin type="calico" failed',
    )
    bind = bind_record("p", BEGIN, "n")
    store.write([pod_record("p"), bind, event], {"pods": ("1", BEGIN + 125 * SECOND)})
    accepted = phase_record("q", Phase.ACCEPTED, BEGIN)
    silent = [pod_record("q"), replace(bind, id="q/bind", pod_uid="q"), accepted]
    store.write(silent, {"pods": ("2", BEGIN + 125 * SECOND)})
    store.close()
    database = str(tmp_path / "roost.db")
    assert run(["why", "hub/p", "--database", database]) == 0
    out = capsys.readouterr().out
    assert "  2 min so far for its sandbox: plugin type=calico failed\n" in out
    assert run(["why", "hub/q", "--database", database]) == 0
    line = "  2 min 5 s so far after it was bound, for nothing that was recorded\n"
    assert line in capsys.readouterr().out


def test_a_wait_ends_with_the_start_and_what_fails_later_is_none() -> None:
    events = [said("FailedMount", "later", 900, subject="x"), said("Failed", "Error: x", 901)]
    found = find_waits([step(Phase.STARTED, 2)], [], events, BEGIN)
    assert found == AfterBinding([], 2 * SECOND, True, [])
    assert Wait(WaitKind.SANDBOX, "", 0, 5).cause == ""


def report_of_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> Any:
    why_of(tmp_path, capsys, name)
    run(["report", "--database", str(tmp_path / "h.db"), "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_a_report_says_what_a_start_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report_of_cases(tmp_path, capsys, "volume-attached-late.json")
    cause = "Multi-Attach error for volume pvc-1 (attached 10:06:10)"
    assert found["sentence"] == (
        f"One start took 6 min 21 s and waited 6 min 9 s for its volume: {cause}."
    )
    waits = found["tables"]["start_waits"]
    assert [(row["wait"], row["longest_seconds"]) for row in waits] == [
        ("its volume", 369.0),
        ("nothing that was recorded", 11.5),
    ]
    assert waits[0]["cause"] == cause
    folder = tmp_path / "other"
    folder.mkdir()
    found = report_of_cases(folder, capsys, "init-container-takes-minutes.json")
    assert found["sentence"] == (
        "One start took 5 min 11 s and waited 5 min 7 s for init container"
        " volume-mount-ownership-fix."
    )


def test_an_init_container_whose_image_took_no_time_is_no_start_that_waited_for_an_image(
    open_store: Callable[[], Store],
) -> None:
    """In both databases."""
    store = open_store()
    for uid, init_seconds in (("quick", 0), ("slow", 151)):
        end = BEGIN + (5 + init_seconds) * SECOND
        records = [
            pod_record(uid),
            bind_record(uid, BEGIN + SECOND, "n"),
            phase_record(uid, Phase.STARTED, end, "notebook"),
            phase_record(uid, Phase.READY, end),
            pull_record(uid, end - SECOND),
        ]
        if init_seconds:
            records += [
                phase_record(uid, Phase.INIT_STARTED, BEGIN + 4 * SECOND, "chown"),
                phase_record(uid, Phase.INIT_ENDED, BEGIN + 155 * SECOND, "chown"),
                pull_record(uid, BEGIN + 4 * SECOND, "busybox", seconds=0.218),
            ]
        store.write(records, {})
    report = gather(store)
    assert sentence(report) == (
        "None of 2 starts waited for an image; half took 5 s at most. 1 waited for init containers"
        " (2 min 31 s)."
    )
    # An image besides: what it took is what it took more.
    third = [
        pod_record("third"),
        bind_record("third", BEGIN, "n"),
        phase_record("third", Phase.INIT_STARTED, BEGIN + 4 * SECOND, "chown"),
        phase_record("third", Phase.INIT_ENDED, BEGIN + 300 * SECOND, "chown"),
        pull_record("third", BEGIN + 320 * SECOND, seconds=20),
        phase_record("third", Phase.STARTED, BEGIN + 321 * SECOND, "notebook"),
        phase_record("third", Phase.READY, BEGIN + 321 * SECOND),
    ]
    store.write(third, {})
    said_of_three = sentence(gather(store))
    assert said_of_three.startswith("Of 3 starts, 1 (33 %) waited for an image, 20 s more.")
    assert "2 waited for init containers (at most 4 min 56 s)." in said_of_three


def test_what_a_probe_said_stands_beside_the_time_until_it_was_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = empty_store(tmp_path)
    unhealthy = PodEventRecord(
        pod_uid="p",
        reason="Unhealthy",
        subject="notebook",
        at_us=BEGIN + 20 * SECOND,
        resolution_us=SECOND,
        last_us=BEGIN + 40 * SECOND,
        message="Readiness probe failed: connection refused",
    )
    steps = [
        phase_record("p", Phase.STARTED, BEGIN + 2 * SECOND, "notebook"),
        phase_record("p", Phase.READY, BEGIN + 50 * SECOND),
    ]
    store.write([pod_record("p"), bind_record("p", BEGIN, "n"), unhealthy, *steps], {})
    store.close()
    run(["why", "hub/p", "--database", str(tmp_path / "roost.db")])
    line = "  about 48 s to become ready: Readiness probe failed: connection refused\n"
    assert line in capsys.readouterr().out


moments = st.integers(-100, 1000)
texts = st.sampled_from(["", MULTI_ATTACH, 'Failed to pull image "a": x', "timed out waiting for"])
drawn_events = st.builds(
    said,
    st.sampled_from([*KIND_OF_REASON]),
    texts,
    moments,
    subject=st.sampled_from(["", "a", "pvc-1"]),
)
drawn_steps = st.builds(
    step, st.sampled_from([*Phase]), moments, st.sampled_from(["", "a", "init", "notebook"])
)
drawn_pulls = st.builds(
    lambda at, image, seconds: row(pull_record("p", BEGIN + at * SECOND, image, seconds)),
    moments,
    st.sampled_from(["a", "b"]),
    st.none() | st.integers(0, 500),
)


@given(
    st.lists(drawn_steps, max_size=12),
    st.lists(drawn_pulls, max_size=3),
    st.lists(drawn_events, max_size=8),
    st.none() | moments,
)
def test_whatever_is_told_waits_lie_in_the_start_and_with_the_rest_they_are_all_of_it(
    steps: list[Any], pulls: list[Any], events: list[Any], until: int | None
) -> None:
    until_us = None if until is None else BEGIN + until * SECOND
    found = find_waits(steps, pulls, events, BEGIN, until_us)
    assert found.unexplained_us >= 0
    covered = [(begin, end) for begin, end in found.explained]
    assert covered == sorted(covered)
    assert all(first[1] < then[0] for first, then in pairwise(covered))
    for wait in found.waits:
        assert wait.span_us > 0
        assert any(begin <= wait.from_us and wait.to_us <= end for begin, end in covered)
        assert wait.awaits
        assert wait.cause == show_plain(wait.cause)
    if covered:
        assert covered[0][0] >= BEGIN
    # The order in which rows are read makes no difference to how much is explained.
    again = find_waits(steps[::-1], pulls[::-1], events[::-1], BEGIN, until_us)
    assert (again.explained, again.unexplained_us) == (found.explained, found.unexplained_us)
