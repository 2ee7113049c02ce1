"""The exported trace is one that Perfetto reads: Chrome's Trace Event Format, slices of a thread within each other."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab_tests.recorded import (
    BEGIN,
    HOUR,
    MINUTE,
    SECOND,
    bind_record,
    empty_store,
    fail_record,
    phase_record,
    pod_record,
    story_records,
)
from roost_lab.commands.records import COMMAND
from roost_lab.recorder.answers.chrome_trace import trace_lines
from roost_lab.recorder.store.records import Phase, PullRecord, Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Event = dict[str, Any]
# Fields that each kind of event must have.
FIELDS = {
    "X": {"name": str, "cat": str, "ts": int, "dur": int, "pid": int, "tid": int, "args": dict},
    "i": {"name": str, "cat": str, "ts": int, "s": str, "pid": int, "tid": int, "args": dict},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
}


def trace(folder: Path, records: Sequence[Record], since_us: int = 0) -> list[Event]:
    """The events of the exported trace, after all that the format asks for has been checked."""
    store = empty_store(folder)
    try:
        store.write(records, {})
        document = json.loads("\n".join(trace_lines(store, since_us)))
    finally:
        store.close()
    events: list[Event] = document["traceEvents"]
    assert document["displayTimeUnit"] == "ms"
    for event in events:
        for field, kind in FIELDS[event["ph"]].items():
            assert isinstance(event[field], kind), event
    named = {(event["name"], event["pid"], event["tid"]) for event in events if event["ph"] == "M"}
    # Each thread belongs to one process, and all have names.
    threads = {(event["pid"], event["tid"]) for event in events if event["ph"] != "M"}
    assert len({thread for _, thread in threads}) == len(threads)
    assert {("thread_name", *one) for one in threads} <= named
    assert {("process_name", process, 0) for process, _ in threads} <= named
    check_nesting(events)
    return events


def check_nesting(events: Sequence[Event]) -> None:
    """Two slices of a thread are apart, or one lies within the other."""
    by_thread: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            by_thread[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in by_thread.values():
        open_ends: list[int] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], spans
            open_ends.append(end)


def slices(events: Sequence[Event]) -> list[tuple[str, int, int]]:
    """Name, begin and duration in seconds."""
    return [
        (event["name"], (event["ts"] - BEGIN) // SECOND, event["dur"] // SECOND)
        for event in events
        if event["ph"] == "X"
    ]


def tracks(events: Sequence[Event]) -> dict[str, tuple[str, int]]:
    """Pod -> the node and thread that it is drawn on."""
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    return {event["name"]: (names[event["pid"]], event["tid"]) for event in events if event.get("cat") == "user"}


def test_a_pod_is_a_slice_with_the_phases_of_its_start(tmp_path: Path) -> None:
    events = trace(tmp_path, story_records())
    assert slices(events) == [
        ("hub/p", 0, 7200),
        ("waits for a node", 0, 1),
        ("starts containers", 1, 1),
        ("pulls an image", 1, 0),
        ("gets ready", 2, 1),
        # It still exists: drawn until the record's last news, its own creation.
        ("hub/last", 7260, 0),
    ]
    pod = next(event for event in events if event["name"] == "hub/p")
    assert (pod["cat"], pod["args"]["ready_seconds"]) == ("user", 3.0)
    (instant,) = [event for event in events if event["ph"] == "i"]
    assert (instant["name"], instant["args"]["tries"]) == ("FailedScheduling", 1)
    nodes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert nodes == ["n", "no node"]


def test_pods_that_ran_at_once_have_a_thread_each_and_later_ones_take_over(tmp_path: Path) -> None:
    records: list[Record] = []
    for name, node, from_us, to_us in (
        ("a", "n", 0, 10 * MINUTE),
        ("b", "n", MINUTE, 20 * MINUTE),
        ("c", "m", 2 * MINUTE, 3 * MINUTE),
        ("d", "n", 10 * MINUTE, 15 * MINUTE),
        ("e", "n", 30 * MINUTE, 40 * MINUTE),
    ):
        records += [
            pod_record(name, created_us=BEGIN + from_us, deleted_us=BEGIN + to_us),
            bind_record(name, BEGIN + from_us + SECOND, node),
        ]
    events = trace(tmp_path, records)
    drawn = tracks(events)
    assert drawn["hub/a"] == drawn["hub/d"] == drawn["hub/e"] != drawn["hub/b"]
    assert {node for node, _ in drawn.values()} == {"n", "m"}
    again = tmp_path / "again"
    again.mkdir()
    assert set(tracks(trace(again, records, BEGIN + 5 * MINUTE))) == {"hub/d", "hub/e"}


moments = st.one_of(st.none(), st.integers(0, 100).map(lambda second: BEGIN + second * SECOND))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(moments, moments, moments, moments, moments, st.integers(0, 50)), min_size=1, max_size=6),
    st.sampled_from(["n", "m"]),
)
def test_slices_never_cross_whatever_the_clocks_say(
    tmp_path_factory: Any, drawn: list[tuple[int | None, ...]], node: str
) -> None:
    records: list[Record] = []
    for number, (bound, started, ready, pulled, gone, took) in enumerate(drawn):
        uid = f"p{number}"
        records.append(pod_record(uid, created_us=BEGIN + 20 * SECOND, deleted_us=gone))
        if bound is not None:
            records += [bind_record(uid, bound, node), fail_record(uid, 1, {"Insufficient cpu": 1})]
        records += [
            phase_record(uid, phase, at_us)
            for phase, at_us in ((Phase.STARTED, started), (Phase.READY, ready))
            if at_us is not None
        ]
        if pulled is not None:
            pull = PullRecord(
                pod_uid=uid,
                image="i:1",
                node_name=node,
                at_us=pulled,
                warm=False,
                pull_and_wait_us=(took or 0) * SECOND,
            )
            records += [pull, replace(pull, image="i:2")]
    events = trace(tmp_path_factory.mktemp("trace"), records)
    assert sum(event.get("cat") == "user" for event in events) == len(drawn)


def test_the_command_prints_it(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write([*story_records(), pod_record("odd", pod_class="", created_us=BEGIN + HOUR)], {})
    store.close()
    done = CliRunner().invoke(
        COMMAND, ["export", "--database", str(store.engine.url.database), "--format", "chrome-trace"]
    )
    assert done.exit_code == 0, done.output
    events = json.loads(done.output)["traceEvents"]
    assert {event["cat"] for event in events if event["ph"] == "X"} == {"user", "build", "phase", "no class"}
