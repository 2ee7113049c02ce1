"""`make quick` runs the tests of the rooms that changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.quick import tests_of as rooms_of


@pytest.mark.parametrize(
    ("changed", "room"),
    [
        ("lab/roost_lab/recorder/store/schema.py", "recorder"),
        ("lab/roost_lab/pages/table.py", "recorder"),
        ("roost_core/kube/client.py", "roost_core"),
        ("webhook/rules/rulebook.py", "webhook"),
        ("chart/values.yaml", "generator"),
        ("docs/architecture.md", "repository"),
        ("roost/cli.py", "commands"),
        ("lab/lab_tests/unit/simulator/test_simulator_pods.py", "simulator/test_simulator_pods.py"),
    ],
)
def test_a_changed_file_has_its_rooms_tests(changed: str, room: str) -> None:
    assert rooms_of([Path(changed)]) == [Path("tests/unit", room)]


def test_a_room_is_run_once_and_what_has_no_tests_runs_none() -> None:
    files = [
        "webhook/review.py",
        "webhook/watch.py",
        "tests/unit/webhook/test_warm.py",
        "LICENSE",
        "benchmarks/ring.py",
    ]
    assert rooms_of(map(Path, files)) == [Path("tests/unit/webhook")]
