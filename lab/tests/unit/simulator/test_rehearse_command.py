"""`roost rehearse`: the sentence, its rows, and faults without a traceback."""

import json
import re
from pathlib import Path

import pytest

from roost.cli import run

EVENT = ["rehearse", "--event", "2026-11-24T09:00 60 people image quay.io/me/course:1", "--seeds", "1"]


def test_the_sentence_comes_first_then_a_row_with_and_without_the_booking(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*EVENT, "--launches", "100"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("With the booking, half of the 60 people wait ")
    with_it, without = out.splitlines()[2:]
    assert (with_it[:6], without[:10], len(with_it)) == ("booked", "not booked", len(without))
    assert not err


def test_a_trace_is_moved_to_the_events_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "launches.jsonl"
    line = {"schema": "binderhub.jupyter.org/launch", "version": 3, "provider": "GitHub", "status": "success"}
    hours = [f"2019-05-23T{hour:02}:{minute:02}:00+00:00" for hour in range(24) for minute in range(0, 60, 10)]
    trace.write_text("".join(json.dumps({**line, "timestamp": time, "spec": "a/b/c"}) + "\n" for time in hours))
    assert run([*EVENT, "--trace", str(trace)]) == 0
    _, _, node_hours, _ = re.split(r" {2,}", capsys.readouterr().out.splitlines()[3])[1:]
    # Nodes are there from six hours before the event to three hours after it.
    assert float(node_hours) >= 9


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--assume", "nodes=4"], "roost rehearse: --assume: nodes: found an unknown assumption"),
        (["--trace", "none.jsonl"], "none.jsonl: found No such file or directory"),
        (["--set", "placeholders[0].resources.requests.memory=900G"], "placeholders[0]: found pods that fit no node"),
    ],
)
def test_faults_are_said_in_a_line(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*EVENT, *more]) == 1
    assert said in capsys.readouterr().err
