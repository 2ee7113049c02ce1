"""What is handed on reads back as what was stored: scheduler-sniffer's lines, and launches for the simulator."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests.recorded import BEGIN, HOUR, MINUTE, SECOND, bind_record, empty_store, phase_record, pod_record
from roost_lab.commands import records as command
from roost_lab.recorder.answers.exports import launch_lines, sniffer_lines
from roost_lab.recorder.answers.sniffer_log import SnifferReport, read_lines
from roost_lab.recorder.store.records import ImageRecord, NodeRecord, Phase, PhaseRecord, PodRecord, Record
from roost_lab.traces import recorder as trace_recorder

Object = dict[str, Any]


SNIFFER = Path(__file__).parents[2] / "data" / "sniffer"
# One pod of its published run on GKE, and one that was there before: only conditions tell of that, to the second.
AS_THE_SNIFFER_WRITES, EARLIER = ((SNIFFER / name).read_text().splitlines() for name in ("pod.jsonl", "earlier.jsonl"))


def read_back(lines: Iterable[str]) -> tuple[list[Record], SnifferReport]:
    report = SnifferReport()
    return list(read_lines(lines, report)), report


def exported(folder: Path, records: Iterable[Record]) -> list[str]:
    store = empty_store(folder)
    store.write(records, {})
    lines = list(sniffer_lines(store))
    store.close()
    return lines


def test_a_log_in_the_sniffers_own_form_is_read_to_its_last_line() -> None:
    records, report = read_back(AS_THE_SNIFFER_WRITES)
    assert (report.lines, report.pods, report.nodes, report.skipped.total()) == (14, 1, 1, 0)
    (node,) = [one for one in records if isinstance(one, NodeRecord)]
    assert json.loads(node.allocatable or "") == {
        "cpu": 3920,
        "ephemeral-storage": 47060071478,
        "memory": 29082112 * 1024,
        "pods": 110,
    }
    (pod,) = [one for one in records if isinstance(one, PodRecord)]
    assert (pod.name, pod.end_reason) == ("job-0-xk2p9", "finished")
    after = {
        one.phase: (one.at_us - pod.created_us, one.resolution_us) for one in records if isinstance(one, PhaseRecord)
    }
    # Its first moment is that of the decision, not the beginning of the second in which it was bound.
    assert pod.created_us % SECOND == 300887
    assert after == {
        Phase.SCHEDULED: (323685 - 300887, 1),
        Phase.STARTED: (SECOND + 894208 - 300887, 1),
        Phase.INITIALIZED: (SECOND - 300887, SECOND),
        Phase.READY: (2 * SECOND - 300887, SECOND),
        Phase.TERMINATING: (10 * SECOND + 868685 - 300887, 1),
    }


@pytest.mark.parametrize("log", [AS_THE_SNIFFER_WRITES, EARLIER, [*EARLIER, *AS_THE_SNIFFER_WRITES]])
def test_a_log_that_was_read_and_written_reads_as_the_first_one(tmp_path: Path, log: list[str]) -> None:
    records, _ = read_back(log)
    lines = exported(tmp_path, records)
    again, report = read_back(lines)
    assert sorted(map(repr, again)) == sorted(map(repr, records))
    assert report.skipped.total() == 0


MOMENTS = st.integers(min_value=0, max_value=3 * HOUR)


@st.composite
def _pods(draw: st.DrawFn) -> list[Record]:
    """Pods as `roost record` stores them; a name may come back after its last pod has gone."""
    records: list[Record] = []
    begin_us = BEGIN
    for number in range(draw(st.integers(min_value=1, max_value=4))):
        name = draw(st.sampled_from(["jupyter-ada", "jupyter-bob"]))
        uid = f"uid-{number}"
        steps = sorted(draw(st.lists(MOMENTS, min_size=5, max_size=5)))
        created_us = begin_us + steps[0] // SECOND * SECOND
        has_ended = draw(st.booleans()) or number < 3
        records.append(
            pod_record(
                uid,
                name=name,
                created_us=created_us,
                deleted_us=begin_us + steps[4] if has_ended else None,
                end_reason=draw(st.sampled_from(["deleted", "finished", "failed", "preempted", "unseen"]))
                if has_ended
                else None,
            )
        )
        records.append(replace(phase_record(uid, Phase.CREATED, created_us), resolution_us=SECOND))
        if draw(st.booleans()):
            records.append(bind_record(uid, begin_us + steps[1], "n"))
            records.append(phase_record(uid, Phase.SCHEDULED, begin_us + steps[1]))
            records.append(phase_record(uid, Phase.STARTED, begin_us + steps[2], "notebook"))
            records.append(phase_record(uid, Phase.READY, begin_us + steps[3]))
        if has_ended:
            records.append(phase_record(uid, Phase.TERMINATING, begin_us + steps[4]))
        begin_us += 4 * HOUR
    return records


@given(_pods())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_recorded_pods_are_the_same_launches_when_they_are_written_and_read(
    tmp_path: Path, records: list[Record]
) -> None:
    read, report = read_back(exported(tmp_path, records))
    assert report.skipped.total() == 0

    def told(among: Iterable[Record]) -> list[tuple[str, int, int | None, str | None]]:
        pods = [one for one in among if isinstance(one, PodRecord)]
        return sorted((one.name, one.created_us, one.deleted_us, one.end_reason) for one in pods)

    assert told(read) == told(records)

    def ready(among: Iterable[Record]) -> list[tuple[str, int]]:
        """When pods were ready, by name."""
        names = {one.uid: one.name for one in among if isinstance(one, PodRecord)}
        phases = [one for one in among if isinstance(one, PhaseRecord) and one.phase is Phase.READY]
        return sorted((names[one.pod_uid], one.at_us) for one in phases)

    assert ready(read) == ready(records)


def test_a_launch_says_when_it_was_created_ready_and_gone(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write(
        [
            pod_record("a", repo="https://example.org/r", ref="abc", deleted_us=BEGIN + HOUR, end_reason="deleted"),
            phase_record("a", Phase.READY, BEGIN + 90 * SECOND),
            pod_record("b", created_us=BEGIN + MINUTE),
            pod_record("c", created_us=BEGIN + MINUTE, pod_class="build"),
            ImageRecord(node_uid="n", image="registry.example.org/image", first_us=BEGIN, image_bytes=7),
        ],
        {},
    )
    first, second = (json.loads(line) for line in launch_lines(store))
    store.close()
    assert set(first) == {
        *("timestamp", "schema", "version", "class", "name", "repository", "ref", "image", "image_bytes"),
        *("cpu_millicores", "memory_bytes", "seconds", "status", "ready_seconds", "hub"),
    }
    assert first["timestamp"] == "2027-01-15T08:00:00.000000+00:00"
    assert (first["ready_seconds"], first["seconds"], first["status"]) == (90.0, 3600.0, "deleted")
    assert (first["repository"], first["ref"], first["image_bytes"]) == ("https://example.org/r", "abc", 7)
    assert (second["name"], second["ready_seconds"], second["seconds"]) == ("hub/b", None, None)
    assert trace_recorder.read_entry(first).session_seconds == 3510.0
    assert trace_recorder.read_entry(first).hub == first["hub"] == "hub"
    assert trace_recorder.read_entry(second).session_seconds is None


def test_what_a_log_holds_and_what_was_passed_over_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "sniffer.log"
    no_time = json.dumps({"object": "Pod", "name": "job-0-xk2p9", "event": "Ready"})
    log.write_text("\n".join([*AS_THE_SNIFFER_WRITES, "nonsense", "more of it", no_time]))
    assert command.take_in(str(tmp_path / "sniffer.db"), [str(log)]) == 0
    said = capsys.readouterr()
    assert said.out == "17 lines: 1 pods, 1 nodes\n"
    assert f"{log}:15: 2 lines skipped: not valid JSON" in said.err
    assert f"{log}:17: 1 lines skipped: no time" in said.err
    assert command.export(str(tmp_path / "sniffer.db"), "sniffer", 0) == 0
    assert len(read_back(capsys.readouterr().out.splitlines())[0]) == len(read_back(AS_THE_SNIFFER_WRITES)[0])
