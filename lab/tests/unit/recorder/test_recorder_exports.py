"""What is handed on reads back as what was stored: scheduler-sniffer's lines, and launches for the
simulator.
"""

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import bind_record, empty_store, phase_record, pod_record, record_of
from lab.tests.told import Story, cases, stories
from roost.cli import run
from roost_lab.pages.dates import as_date
from roost_lab.pages.drawing import time_text, time_ticks
from roost_lab.pages.phrases import show_time
from roost_lab.pages.table import iso_time
from roost_lab.recorder.exporting.exports import launch_lines, sniffer_lines
from roost_lab.recorder.exporting.sniffer_log import go_time, node_lines, pod_lines, read_lines
from roost_lab.recorder.importing.files import Counts
from roost_lab.recorder.store.records import (
    END_REASONS,
    DecisionRecord,
    ImageRecord,
    NodeChangeRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    Record,
)
from roost_lab.traces import recorder as trace_recorder

SNIFFER = Path(__file__).parents[2] / "data" / "sniffer"
# One pod of its published run on GKE, and one that was there before: only conditions tell of that,
# to the second.
AS_THE_SNIFFER_WRITES, EARLIER = (
    (SNIFFER / name).read_text().splitlines() for name in ("pod.jsonl", "earlier.jsonl")
)


def read_back(lines: Iterable[str]) -> tuple[list[Record], Counts]:
    report = Counts()
    return list(read_lines(lines, report, "log")), report


def exported(folder: Path, records: Iterable[Record]) -> list[str]:
    store = empty_store(folder)
    store.write(records, {})
    lines = list(sniffer_lines(store))
    store.close()
    return lines


def test_a_log_in_the_sniffers_own_form_is_read_to_its_last_line() -> None:
    records, report = read_back(AS_THE_SNIFFER_WRITES)
    assert (report.used, report.skipped.total()) == ({"lines": 17, "pods": 1, "nodes": 1}, 0)
    (node,) = [record for record in records if isinstance(record, NodeRecord)]
    had = {
        "cpu": 4000,
        "ephemeral-storage": 98831908 << 10,
        "hugepages-2Mi": 0,
        "memory": 32877056 << 10,
        "pods": 110,
    }
    assert json.loads(node.capacity or "") == had
    free = {"cpu": 3920, "ephemeral-storage": 47060071478, "memory": 29082112 << 10}
    assert json.loads(node.allocatable or "") == had | free
    (pod,) = [record for record in records if isinstance(record, PodRecord)]
    assert (pod.name, pod.end_reason) == ("job-0-xk2p9", "finished")
    steps = [record for record in records if isinstance(record, PhaseRecord)]
    # Its first moment is that of the decision, not the beginning of the second in which it was
    # bound.
    assert pod.created_us % SECOND == 300887
    assert {step.phase: (step.at_us - pod.created_us, step.resolution_us) for step in steps} == {
        Phase.SCHEDULED: (323685 - 300887, 1),
        Phase.STARTED: (SECOND + 894208 - 300887, 1),
        Phase.INITIALIZED: (SECOND - 300887, SECOND),
        Phase.READY: (2 * SECOND - 300887, SECOND),
        Phase.TERMINATING: (10 * SECOND + 868685 - 300887, 1),
    }


@given(
    st.lists(
        st.tuples(
            st.integers(0, 900),
            st.none() | st.integers(1, 300),
            st.sampled_from(["person", "opened", "unused", "unknown", "start-failed"]),
            st.integers(1, 600),
        ),
        max_size=8,
    )
)
def test_who_opens_a_seated_server_launches_it_then_and_an_unopened_one_is_no_launch(
    made: list[tuple[int, int | None, str, int]],
) -> None:
    records: list[Record] = []
    expected = []
    for number, (second, ready_after, kind, told_after) in enumerate(made):
        uid = f"p{number}"
        created_us = BEGIN + second * SECOND
        told_us = created_us + told_after * SECOND
        launched_us = told_us if kind == "opened" else created_us
        records.append(pod_record(uid, created_us=created_us, deleted_us=created_us + HOUR))
        if ready_after is not None:
            records.append(phase_record(uid, Phase.READY, created_us + ready_after * SECOND))
        if kind != "person":
            records.append(phase_record(uid, Phase.SEATED, created_us - SECOND))
        if kind in ("opened", "unused", "start-failed"):
            records.append(phase_record(uid, Phase(kind), told_us))
        if kind in ("person", "opened"):
            ready_seconds = ready_after
            if ready_after is not None and kind == "opened":
                # Its user may come while it starts, and waits for the rest.
                ready_seconds = max(0, ready_after - told_after)
            seconds = (created_us + HOUR - launched_us) / SECOND
            expected.append((launched_us, f"hub/{uid}", ready_seconds, seconds))
    with tempfile.TemporaryDirectory() as folder:
        store = empty_store(Path(folder))
        store.write(records, {})
        lines = [json.loads(line) for line in launch_lines(store)]
        store.close()
    times = [line["timestamp"] for line in lines]
    assert times == sorted(times)
    found = [
        (line["timestamp"], line["name"], line["ready_seconds"], line["seconds"]) for line in lines
    ]
    shown = [
        (as_date(at_us).isoformat(timespec="microseconds"), *rest) for at_us, *rest in expected
    ]
    assert sorted(found) == sorted(shown)


@pytest.mark.parametrize(
    "log", [AS_THE_SNIFFER_WRITES, EARLIER, [*EARLIER, *AS_THE_SNIFFER_WRITES]]
)
def test_a_log_that_was_read_and_written_reads_as_the_first_one(
    tmp_path: Path, log: list[str]
) -> None:
    records, _ = read_back(log)
    again, report = read_back(exported(tmp_path, records))
    assert (sorted(map(repr, again)), report.skipped.total()) == (sorted(map(repr, records)), 0)


def test_lines_are_the_sniffers_own_letter_by_letter_and_one_more_tells_the_end(
    tmp_path: Path,
) -> None:
    # Times of processes have nanoseconds and a second clock, which the record lacks.
    wanted = {
        re.sub(r"\d{3}( \+0000 UTC) m=[^\"]*", r"\1", write) for write in AS_THE_SNIFFER_WRITES
    }
    written = set(exported(tmp_path, read_back(AS_THE_SNIFFER_WRITES)[0]))
    assert wanted <= written
    assert [json.loads(one)["reason"] for one in written - wanted] == ["finished"]


def said(line: str) -> str:
    told = json.loads(line)
    has = [f"{resource}={amount}" for resource, amount in told.get("extra", {}).items()]
    clock = told.get("timestamp", "").split(" ")[1:2]
    return " ".join(
        [told["endpoint"], *(told[key] for key in ("event", "reason") if key in told), *has, *clock]
    )


def change(version: int, field: str, *values: Any) -> NodeChangeRecord:
    old, new = (json.dumps(value) if isinstance(value, dict) else str(value) for value in values)
    how = {
        "node_uid": "uid-n",
        "resource_version": str(version),
        "field": field,
        "old": old,
        "new": new,
    }
    return NodeChangeRecord(at_us=BEGIN + version * MINUTE, resolution_us=SECOND, **how)


@stories("sniffer", "node change pod bind phase")
def test_a_record_is_told_as_the_sniffer_tells_it_and_reads_back(
    tmp_path: Path, story: Story
) -> None:
    lines = exported(tmp_path, [record_of(thing, {"change": change}) for thing in story.things])
    story.check_drawn([said(line) for line in lines])
    records, report = read_back(lines)
    assert report.skipped == {}
    if "change" not in {thing.kind for thing in story.things}:
        assert sorted(exported(tmp_path, records)) == sorted(lines)
        return
    # Of what changed, the last counts, and the first moment at which it was ready.
    (node,) = [record_of(thing) for thing in story.things if thing.kind == "node"]
    (again,) = records
    for told in ("allocatable", "ready_us", "gone_us"):
        assert getattr(again, told) == getattr(node, told)


def test_amounts_that_cannot_be_read_take_nothing_from_a_node() -> None:
    odd: dict[str, Any] = {
        "capacity-cpu": "many",
        "capacity-memory": {},
        "capacity-pods": ["1"],
        "allocatable-cpu": None,
    }
    lines = [
        json.dumps({"object": "Node", "name": "n", "extra": extra})
        for extra in ({"capacity-cpu": "4"}, odd, {})
    ]
    ((node,), report) = read_back(lines)
    assert isinstance(node, NodeRecord)
    assert (node.capacity, report.skipped) == ('{"cpu": 4000}', {})


def test_a_node_that_is_there_again_is_not_gone() -> None:
    gone = [NodeRecord(uid="n", name="n", created_us=BEGIN, ready_us=BEGIN, gone_us=BEGIN + 5)]
    lines = list(node_lines(vars(gone[0]), ()))
    for told, gone_us in ((lines, BEGIN + 5), ([*lines, lines[0]], None)):
        assert [one.gone_us for one in read_back(told)[0] if isinstance(one, NodeRecord)] == [
            gone_us
        ]


AMOUNTS = st.none() | st.dictionaries(
    st.sampled_from(
        ["cpu", "memory", "pods", "hugepages-1Gi", "example.org/device-x", "ephemeral-storage"]
    ),
    st.integers(min_value=0, max_value=2**63 - 1)
    | st.integers(min_value=0, max_value=64).map(lambda power: 1 << power),
    min_size=1,
).map(lambda amounts: json.dumps(amounts, sort_keys=True))
MOMENTS = st.integers(min_value=BEGIN, max_value=BEGIN + HOUR)
PHASES = st.sampled_from(
    [Phase.CREATED, Phase.INITIALIZED, Phase.STARTED, Phase.READY, Phase.TERMINATING]
)


@given(AMOUNTS, AMOUNTS, MOMENTS, st.dictionaries(PHASES, MOMENTS), st.sampled_from(END_REASONS))
def test_whatever_is_written_reads_back_and_is_written_the_same(
    capacity: str | None, allocatable: str | None, at_us: int, times: dict[Phase, int], end: str
) -> None:
    node = NodeRecord(
        uid="n",
        name="n",
        capacity=capacity,
        allocatable=allocatable,
        ready_us=at_us,
        gone_us=at_us + 5,
    )
    pod = pod_record("p", deleted_us=at_us, end_reason=end)
    phases = [
        phase_record("p", phase, time) for phase, time in (times | {Phase.SCHEDULED: at_us}).items()
    ]

    def written(records: Iterable[Record]) -> list[str]:
        kinds = (NodeRecord, PodRecord, PhaseRecord, DecisionRecord)
        nodes, pods, steps, binds = (
            [vars(record) for record in records if isinstance(record, kind)] for kind in kinds
        )
        return [*node_lines(nodes[0], ()), *pod_lines(pods[0], steps, binds[0])]

    lines = written([node, pod, *phases, bind_record("p", at_us, "n")])
    records, report = read_back(lines)
    assert (sorted(written(records)), report.skipped) == (sorted(lines), {})
    for record in records:
        if isinstance(record, NodeRecord):
            assert (record.capacity, record.allocatable, record.gone_us) == (
                capacity,
                allocatable,
                at_us + 5,
            )
        elif isinstance(record, PodRecord):
            assert (record.deleted_us, record.end_reason) == (at_us, end)


def test_a_launch_says_when_it_was_created_ready_and_gone(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    told: list[Record] = [
        pod_record(
            "a",
            repo="https://example.org/r",
            ref="abc",
            deleted_us=BEGIN + HOUR,
            end_reason="deleted",
        ),
        phase_record("a", Phase.READY, BEGIN + 90 * SECOND),
        pod_record("b", created_us=BEGIN + MINUTE),
        pod_record("c", created_us=BEGIN + MINUTE, pod_class="build"),
        ImageRecord(
            node_uid="n", image="registry.example.org/image", first_us=BEGIN, image_bytes=7
        ),
    ]
    store.write(told, {})
    first, second = (json.loads(line) for line in launch_lines(store))
    store.close()
    assert set(first) == {
        *(
            "timestamp",
            "schema",
            "version",
            "class",
            "name",
            "repository",
            "ref",
            "image",
            "image_bytes",
        ),
        *("cpu_millicores", "memory_bytes", "seconds", "status", "ready_seconds", "hub"),
    }
    assert first["timestamp"] == "2027-01-15T08:00:00.000000+00:00"
    assert (first["ready_seconds"], first["seconds"], first["status"]) == (90.0, 3600.0, "deleted")
    assert (first["repository"], first["ref"], first["image_bytes"]) == (
        "https://example.org/r",
        "abc",
        7,
    )
    assert (second["name"], second["ready_seconds"], second["seconds"]) == ("hub/b", None, None)
    assert trace_recorder.read_entry(first).session_seconds == 3510.0
    assert trace_recorder.read_entry(first).hub == first["hub"] == "hub"
    assert trace_recorder.read_entry(second).session_seconds is None


def test_what_a_log_holds_and_what_was_passed_over_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "sniffer.log"
    no_time = json.dumps({"object": "Pod", "name": "job-0-xk2p9", "event": "Ready"})
    log.write_text("\n".join([*AS_THE_SNIFFER_WRITES, "nonsense", "more of it", no_time]))
    assert run(["records", "import", str(log), "--database", str(tmp_path / "sniffer.db")]) == 0
    said = capsys.readouterr()
    assert said.out == "20 lines: 1 pods, 1 nodes\n"
    assert f"{log}:18: 2 lines skipped: not valid JSON" in said.err
    assert f"{log}:20: 1 lines skipped: no time" in said.err
    assert (
        run(
            ["records", "export", "--database", str(tmp_path / "sniffer.db"), "--format", "sniffer"]
        )
        == 0
    )
    assert len(read_back(capsys.readouterr().out.splitlines())[0]) == len(
        read_back(AS_THE_SNIFFER_WRITES)[0]
    )


def line(**fields: Any) -> str:
    return json.dumps(
        {
            "object": "Pod",
            "name": "p",
            "event": "Ready",
            "timestamp": "2024-04-23T19:51:09Z",
            **fields,
        }
    )


@pytest.mark.parametrize("timestamp", cases("importing", "no_times"))
def test_a_line_whose_time_means_none_or_never_was_counts_as_one_without_a_time(
    timestamp: str,
) -> None:
    records, report = read_back([line(timestamp=timestamp)])
    assert report.skipped == {"no time": 1}
    assert [record.created_us for record in records if isinstance(record, PodRecord)] == [0]
    assert not [record for record in records if isinstance(record, PhaseRecord)]


@pytest.mark.parametrize(
    ("odd", "reason"), [("[" * 100_000, "not valid JSON"), *cases("importing", "bad_lines")]
)
def test_one_bad_line_is_counted_and_the_others_are_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: str, reason: str
) -> None:
    log, database = tmp_path / "sniffer.log", str(tmp_path / "roost.db")
    log.write_text("\n".join([line(name="good"), odd, line(name="good-too")]))
    assert run(["records", "import", str(log), "--database", database]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "3 lines: 2 pods, 0 nodes\n",
        f"{log}:2: 1 lines skipped: {reason}\n",
    )


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_every_number_that_a_database_holds_can_be_shown(at_us: int) -> None:
    for shown in (iso_time(at_us), show_time(at_us), time_text(at_us), go_time(at_us, 1)):
        assert "1970" <= shown[:4] <= "9999"


def test_the_first_and_the_last_moment_are_shown_as_they_are() -> None:
    last_us = 253_402_300_800 * SECOND - 1
    assert as_date(last_us).isoformat() == "9999-12-31T23:59:59.999999+00:00"
    assert iso_time(last_us + 1) == iso_time(last_us) == "9999-12-31T23:59:59Z"
    assert iso_time(-1) == iso_time(0) == "1970-01-01T00:00:00Z"
    assert time_ticks(-(2**60), -(2**60) + HOUR)["ticktext"]


@pytest.mark.parametrize(
    "time", ["0001-01-01", "1969-12-31T23:59", "1970-01-01T00:00+02:00", "9999-12-31T23:59-01:00"]
)
@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "--since"],
        ["report", "--until"],
        ["why", "p", "--at"],
        ["records", "export", "--since"],
    ],
)
def test_a_time_before_1970_or_after_9999_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], time: str
) -> None:
    empty_store(tmp_path).close()
    assert run([*arguments, time, "--database", str(tmp_path / "roost.db")]) == 2
    assert f"{time}: expected a time such as 2026-11-21T10:30 (UTC), from 1970 to 9999" in " ".join(
        capsys.readouterr().err.split()
    )
