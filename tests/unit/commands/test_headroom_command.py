"""`roost headroom`: what it prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from roost.__main__ import main
from tests.builders import default_values

if TYPE_CHECKING:
    from pathlib import Path

LECTURES = {
    "name": "lectures",
    "replicas": 30,
    "timeZone": "Europe/Berlin",
    "start": "0 8 * * 1-5",
    "end": "0 18 * * 1-5",
}
EXAM = {
    "name": "exam",
    "replicas": 80,
    "timeZone": "America/New_York",
    "start": "2026-10-07T04:00",
    "end": "2026-10-07T06:30",
}


def _values(folder: Path, *sets: dict[str, Any]) -> str:
    default = default_values()["placeholders"][0]
    path = folder / "values.json"
    path.write_text(json.dumps({"placeholders": [{**default, **one} for one in sets]}))
    return str(path)


def _run(*arguments: str) -> int:
    return main(["headroom", *arguments])


def test_each_change_is_printed_in_local_time_with_placeholder_hours_and_node_hours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = _values(tmp_path, {"windows": [LECTURES, EXAM]})
    code = _run("-f", values, "--at", "2026-10-06T07:00", "--days", "2", "--node-cpu", "4", "--node-memory", "14Gi")
    assert code == 0
    assert capsys.readouterr().out == (
        "default (placeholders, times of Europe/Berlin)\n"
        "  Tue 2026-10-06 07:00 CEST   3  no window\n"
        "  Tue 2026-10-06 08:00 CEST  30  lectures\n"
        "  Tue 2026-10-06 18:00 CEST   3  no window\n"
        "  Wed 2026-10-07 08:00 CEST  30  lectures\n"
        "  Wed 2026-10-07 10:00 CEST  80  exam (Wed 2026-10-07 04:00 EDT there)\n"
        "  Wed 2026-10-07 12:30 CEST  30  lectures\n"
        "  Wed 2026-10-07 18:00 CEST   3  no window\n"
        # 30 for 20 h, 50 more for 2.5 h, 3 for 28 h; nodes: 3 for 17.5 h, 6 for 2.5 h, 1 for 28 h.
        "  48 hours: 809 placeholder-hours, 95.5 node-hours if nothing else fills the nodes (14 placeholders a node)\n"
    )


def test_sets_that_count_nodes_have_node_hours_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = _values(tmp_path, {"countBy": "nodes", "replicas": 2}, {"name": "gpu", "replicas": 0})
    assert _run("-f", values, "--at", "2026-10-06T07:00Z") == 0
    assert capsys.readouterr().out == (
        "default (nodes, times of UTC)\n"
        "  Tue 2026-10-06 07:00 UTC  2  no window\n"
        "  168 hours: 336 node-hours\n"
        "gpu (placeholders, times of UTC)\n"
        "  Tue 2026-10-06 07:00 UTC  0  no window\n"
        "  168 hours: 0 placeholder-hours, 0 node-hours at most (one placeholder a node; "
        "say --node-cpu and --node-memory for fewer)\n"
    )


def test_without_a_nodes_size_node_hours_are_bound_by_one_placeholder_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = _values(tmp_path, {"windows": [LECTURES]})
    assert _run("-f", values, "--at", "2026-10-06T07:00", "--days", "1") == 0
    said = "  24 hours: 342 placeholder-hours, 342 node-hours at most (one placeholder a node;"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("placeholder.backend=capacityBuffer", "windows without effect: with placeholder.backend: capacityBuffer"),
        (
            "controllers.enabled=false,webhook.certificates.mode=certManager",
            "windows without effect: controllers.enabled is false",
        ),
        ("enabled=false", "windows without effect: enabled is false"),
    ],
)
def test_windows_that_nobody_keeps_are_said_to_have_no_effect(
    setting: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = _values(tmp_path, {"windows": [LECTURES]}, {"name": "plain"})
    assert _run("-f", values, "--set", setting) == 0
    assert capsys.readouterr().out.count(said) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--at", "tomorrow"), "--at: found 'tomorrow', expected a date-time"),
        (("--node-cpu", "much"), "--node-cpu: found 'much', expected a Kubernetes quantity"),
        (("--node-memory", "0"), "--node-memory: found '0'"),
        (("--days", "0"), "--days"),
    ],
)
def test_wrong_usage_is_said_and_is_exit_code_2(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*arguments) == 2
    assert said in capsys.readouterr().err


def test_faulty_windows_are_exit_code_1_and_name_their_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = _values(tmp_path, {"windows": [{**LECTURES, "start": "0 25 * * *"}]})
    assert _run("-f", values) == 1
    assert "placeholders[0].windows[0].start" in capsys.readouterr().err
