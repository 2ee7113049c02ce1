"""What no recorder has written, and what nobody should have typed, is said in a sentence; none of it is a traceback."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.recorded import BEGIN, HOUR, empty_store
from lab.tests.unit.recorder.test_recorder_why import SECOND, story
from roost.cli import run
from roost_lab.commands import records as command
from roost_lab.pages.dates import as_date
from roost_lab.pages.drawing import time_text, time_ticks
from roost_lab.pages.phrases import show_time
from roost_lab.pages.table import iso_time
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.sniffer_log import SnifferReport, go_time, read_lines
from roost_lab.recorder.store.records import DecisionKind, PhaseRecord, PodRecord


def line(**fields: Any) -> str:
    return json.dumps({"object": "Pod", "name": "p", "event": "Ready", "timestamp": "2024-04-23T19:51:09Z", **fields})


# scheduler-sniffer's lines


@pytest.mark.parametrize(
    "timestamp",
    [
        "0001-01-01 00:00:00 +0000 UTC",
        "0001-01-01T00:00:00Z",
        "0000-00-00 00:00:00 +0000 UTC",
        "1969-12-31T23:59:59.5Z",
        "1970-01-01T00:00:00Z",
        "2024-02-30 10:00:00 +0000 UTC",
        "2024-02-28T25:00:00Z",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_a_line_whose_time_means_none_or_never_was_counts_as_one_without_a_time(timestamp: str) -> None:
    report = SnifferReport()
    records = list(read_lines([line(timestamp=timestamp)], report))
    assert report.skipped == {"no time": 1}
    assert [one.created_us for one in records if isinstance(one, PodRecord)] == [0]
    assert not [one for one in records if isinstance(one, PhaseRecord)]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ("[" * 100_000, "not valid JSON"),
        (line(name="a\ud800"), "characters that databases refuse"),
        (line(name="a\0"), "characters that databases refuse"),
        (line(node="n\udfff"), "characters that databases refuse"),
        (line(event="Deleted", reason="so\0so"), "characters that databases refuse"),
        (line(object="Node", name="\ud800" * 70, extra={}), "characters that databases refuse"),
        (line(name="a" * 254), "a name of more than 253 characters"),
        (line(node="n" * 254), "a name of more than 253 characters"),
    ],
)
def test_one_bad_line_is_counted_and_the_others_are_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: str, reason: str
) -> None:
    log, database = tmp_path / "sniffer.log", str(tmp_path / "roost.db")
    log.write_text("\n".join([line(name="good"), odd, line(name="good-too")]))
    assert command.take_in(database, [str(log)]) == 0
    said = capsys.readouterr()
    assert said.out == "3 lines: 2 pods, 0 nodes\n"
    assert said.err == f"{log}:2: 1 lines skipped: {reason}\n"


def test_a_report_of_a_log_with_times_that_mean_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, database = tmp_path / "sniffer.log", str(tmp_path / "roost.db")
    log.write_text("\n".join([line(), line(name="zero", timestamp="0001-01-01 00:00:00 +0000 UTC")]))
    assert command.take_in(database, [str(log)]) == 0
    for form in ("json", "html"):
        assert run(["report", "--database", database, "--format", form, "--output", str(tmp_path / form)]) == 0
    assert "Traceback" not in capsys.readouterr().err


# Moments


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


@pytest.mark.parametrize("time", ["0001-01-01", "1969-12-31T23:59", "1970-01-01T00:00+02:00", "9999-12-31T23:59-01:00"])
@pytest.mark.parametrize(
    "arguments", [["report", "--since"], ["report", "--until"], ["why", "p", "--at"], ["records", "export", "--since"]]
)
def test_a_time_before_1970_or_after_9999_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], time: str
) -> None:
    empty_store(tmp_path).close()
    assert run([*arguments, time, "--database", str(tmp_path / "roost.db")]) == 2
    assert f"{time}: expected a time such as 2026-11-21T10:30 (UTC), from 1970 to 9999" in " ".join(
        capsys.readouterr().err.split()
    )


# What is not known is left out


def test_a_failure_of_unknown_nodes_and_an_end_of_unknown_kind_are_told_without_them() -> None:
    failure = {
        "kind": DecisionKind.FAIL,
        "at_us": SECOND,
        "last_us": SECOND,
        "tries": 1,
        "nodes_total": None,
        "reasons": '{"Insufficient cpu": 2}',
        "message": "",
    }
    known = story({}, failures=(failure, {**failure, "nodes_total": 3}))
    known = replace(known, pod={**known.pod, "deleted_us": BEGIN})
    text = explain(known)
    assert "1970-01-01 00:00:01 UTC: 2 Insufficient cpu\n" in text
    assert "1970-01-01 00:00:01 UTC: of 3 nodes: 2 Insufficient cpu\n" in text
    assert text.endswith(f"Gone {show_time(BEGIN)}.\n")
    known = replace(known, pod={**known.pod, "end_reason": "evicted"})
    assert explain(known).endswith(f"Gone {show_time(BEGIN)}: it was evicted.\n")
