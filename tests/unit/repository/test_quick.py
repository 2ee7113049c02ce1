"""`make quick` runs the tests of the rooms that changed."""

from pathlib import Path

import pytest

from tools.quick import tests_of as rooms_of


@pytest.mark.parametrize(
    ("changed", "room"),
    [
        ("lab/roost_lab/recorder/store/schema.py", "lab/tests/unit/recorder"),
        ("lab/roost_lab/pages/table.py", "lab/tests/unit/pages"),
        ("roost_core/kube/client.py", "tests/unit/roost_core"),
        ("webhook/rules/warm.py", "tests/unit/webhook"),
        ("chart/values.yaml", "tests/unit/generator"),
        ("docs/architecture.md", "tests/unit/repository"),
        ("roost/cli.py", "tests/unit/commands"),
        ("lab/roost_lab/traces/order.py", "lab/tests/unit/simulator"),
        ("lab/tests/unit/simulator/test_simulator_pods.py", "lab/tests/unit/simulator/test_simulator_pods.py"),
    ],
)
def test_a_changed_file_has_its_rooms_tests(changed: str, room: str) -> None:
    assert rooms_of([Path(changed)]) == [Path(room)]


def test_a_room_is_run_once_and_what_has_no_tests_runs_none() -> None:
    files = [
        "webhook/review.py",
        "webhook/watch.py",
        "tests/unit/webhook/test_warm.py",
        "LICENSE",
        "benchmarks/ring.py",
    ]
    assert rooms_of(map(Path, files)) == [Path("tests/unit/webhook")]
