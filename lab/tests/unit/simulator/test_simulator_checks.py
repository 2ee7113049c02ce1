"""Assumptions: read from texts, refused where the world can't be, and each explained."""

from dataclasses import fields
from typing import Any

import pytest

from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import AssumptionsError, list_assumptions, make_assumptions, read_assumption


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("min_nodes=7", 7),
        ("node_disk_bytes=40G", 40_000_000_000),
        ("user_memory_bytes=1Gi", 1 << 30),
        ("image_sigma=0.25", 0.25),
        ("with_builds=true", True),
        ("autoscaler=karpenter", Autoscaler.KARPENTER),
        (" sessions = long ", "long"),
    ],
)
def test_values_are_of_their_kind(text: str, value: object) -> None:
    name, found = read_assumption(text, "--set")
    assert (name, found) == (text.partition("=")[0].strip(), value)
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "sesions=mid",
            "--set: sesions: found an unknown assumption, expected one of the simulator's. Did you mean sess",
        ),
        ("min_nodes", "--set: found 'min_nodes', expected NAME=VALUE."),
        ("min_nodes=1.5", "--set: min_nodes: found '1.5', expected a whole number"),
        ("min_nodes=", "--set: min_nodes: found '', expected a whole number"),
        ("image_sigma=nan", "--set: image_sigma: found 'nan', expected a number"),
        ("with_builds=2", "--set: with_builds: found '2', expected true or false."),
        ("autoscaler=mine", "--set: autoscaler: found 'mine', expected cluster-autoscaler or karpenter or none."),
    ],
)
def test_what_cannot_be_read_is_named_with_what_is_accepted(text: str, said: str) -> None:
    with pytest.raises(AssumptionsError) as error:
        read_assumption(text, "--set")
    assert str(error.value).startswith(said)


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"user_memory_bytes": 10**12}, "user_memory_bytes: found 1,000,000,000,000, expected at most node_memory_bytes"),
    ({"user_cpu_millicores": 9000}, "No user fits any node"),
    ({"min_nodes": 5, "max_nodes": 4}, "min_nodes: found 5, expected at most max_nodes, which is 4."),
    ({"max_nodes": 0}, "max_nodes: found 0, expected at least 1."),
    ({"autoscaler": Autoscaler.NONE, "min_nodes": 0}, "at least 1 where no autoscaler adds nodes"),
    ({"sessions": "eternal"}, "sessions: found 'eternal', expected short or mid or long."),
    ({"pulls": "quick"}, "pulls: found 'quick', expected fast or middle or slow."),
    ({"gc_low": 0.9}, "gc_low: found 0.9, expected at most gc_high, which is 0.85."),
    ({"gc_high": 1.2}, "gc_high: found 1.2, expected a number from 0 to 1."),
    ({"node_disk_bytes": 10**9}, "node_disk_bytes: found 1,000,000,000, expected room for an image"),
    ({"node_disk_bytes": 2 * 10**9}, "room for an image as large as one in 10,000, 10,272,841,129"),
    ({"image_median_bytes": 1e12}, "node_disk_bytes: found 1,000,000,000,000, expected room for an image"),
    ({"start_timeout_seconds": 1.0}, "found 1, expected more than bind_seconds and start_seconds, which are 1.35."),
    ({"pushes_per_day": 2.0}, "pushes_per_day: found 2, expected a number from 0 to 1."),
    ({"boot_median_seconds": float("inf")}, "boot_median_seconds: found inf"),
    ({"boot_median_seconds": float("nan")}, "boot_median_seconds: found nan"),
    ({"status_images": -2}, "status_images: found -2, expected at least -1."),
    ({"backoff_seconds": 20.0}, "max_backoff_seconds: found 10, expected at least backoff_seconds."),
    (
        {"build_cold_p90_seconds": 10.0},
        "build_cold_p90_seconds: found 10, expected at least build_cold_median_seconds.",
    ),
]


@pytest.mark.parametrize(("values", "said"), IMPOSSIBLE)
def test_a_world_that_cannot_be_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(AssumptionsError) as error:
        make_assumptions(values, "--set")
    assert said in str(error.value)


def test_all_faults_come_at_once() -> None:
    with pytest.raises(AssumptionsError) as error:
        make_assumptions({"max_nodes": 0, "pulls": "quick", "gc_low": -1.0}, "--set")
    assert len(error.value.faults) == 3


def test_every_assumption_is_listed_with_what_it_is() -> None:
    rows = list_assumptions(make_assumptions({"min_nodes": 3}, "--set"))
    assert [row.name for row in rows] == [one.name for one in fields(Assumptions)]
    assert [row.name for row in rows if row.is_changed] == ["min_nodes"]
    assert all(row.about.endswith(".") for row in rows)
