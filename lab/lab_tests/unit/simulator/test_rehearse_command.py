"""`roost rehearse`: the sentence, JSON, and faults without a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from roost.cli import run

if TYPE_CHECKING:
    from pathlib import Path

EVENT = ["rehearse", "--event", "2026-11-24T09:00 60 people image quay.io/me/course:1", "--seeds", "1"]

POOLS = "currency: EUR\npools: [{name: users, machine: {cpu: 8, memory: 52G}, price: 0.5, min_nodes: 1}]\n"


def test_the_sentence_is_all_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*EVENT, "--launches", "100"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("With the booking, half of the 60 people wait ")
    assert out.count("\n") == 1
    assert not err


def test_a_trace_is_moved_to_the_events_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "launches.jsonl"
    line = {"schema": "binderhub.jupyter.org/launch", "version": 3, "provider": "GitHub", "status": "success"}
    hours = [f"2019-05-23T{hour:02}:{minute:02}:00+00:00" for hour in range(24) for minute in range(0, 60, 10)]
    trace.write_text("".join(json.dumps({**line, "timestamp": time, "spec": "a/b/c"}) + "\n" for time in hours))
    assert run([*EVENT, "--trace", str(trace), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # Nodes are there from six hours before the event to three hours after it.
    assert found["unbooked"]["node_hours"] >= 9


def test_a_pools_file_tells_what_a_booking_costs_in_money(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text(POOLS)
    command = [*EVENT, "--launches", "100", "--pools", str(pools)]
    assert run(command) == 0
    assert " EUR " in capsys.readouterr().out
    assert run([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["currency"] == "EUR"
    for day in ("booked", "unbooked"):
        # Each node costs 0.5 an hour.
        assert found[day]["cost"] == pytest.approx(0.5 * found[day]["node_hours"])
    assert found["cost_more"] == pytest.approx(0.5 * found["node_hours_more"])
    pools.write_text(POOLS.replace("price: 0.5", "price: 0"))
    assert run([*command, "--format", "json"]) == 0
    assert not {"currency", "cost_more"} & json.loads(capsys.readouterr().out).keys()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--assume", "node_pods=4"], "--assume: node_pods: found an assumption about the only pool, expected nothing"),
        (["--set", "placeholders[0].nodeSelector.pool=other"], "placeholders[0]: found pods that fit no node"),
    ],
)
def test_what_contradicts_the_pools_is_said(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text(POOLS)
    assert run([*EVENT, "--pools", str(pools), *more]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--assume", "nodes=4"], "roost rehearse: --assume: nodes: found an unknown assumption"),
        (["--trace", "none.jsonl"], "none.jsonl: found No such file or directory"),
        (["--pools", "none.yaml"], "roost rehearse: --pools: none.yaml: can't be read"),
    ],
)
def test_faults_are_said_in_a_line(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*EVENT, *more]) == 1
    assert said in capsys.readouterr().err
