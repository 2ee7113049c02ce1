"""Assumptions: read from texts, refused where the world can't be, and each explained."""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from generator.values.files import read_defaults
from generator.values.release import kube_minor
from lab.tests.small_worlds import in_order, play, policy, small
from roost_lab.simulator.setup.assumptions import KUBERNETES_MINORS, Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import AssumptionsError, list_assumptions, make_assumptions, read_assumption
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped import policy_files
from roost_lab.simulator.sweep.run import make_jobs
from roost_lab.simulator.sweep.survey import trace_of


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
        ("sesions=mid", "--set: sesions: found an unknown assumption, expected one of the simulator's. Did you mean s"),
        ("min_nodes", "--set: found 'min_nodes', expected NAME=VALUE."),
        ("min_nodes=1.5", "--set: min_nodes: found '1.5', expected a whole number"),
        ("min_nodes=", "--set: min_nodes: found '', expected a whole number"),
        ("image_sigma=nan", "--set: image_sigma: found 'nan', expected a number"),
        ("with_builds=2", "--set: with_builds: found '2', expected true or false."),
        ("autoscaler=mine", "--set: autoscaler: found 'mine', expected cluster-autoscaler or karpenter or none."),
    ],
)
def test_what_cannot_be_read_is_named_with_what_is_accepted(text: str, said: str) -> None:
    with pytest.raises(AssumptionsError, match=f"^{re.escape(said)}"):
        read_assumption(text, "--set")


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
    ({"build_cold_p90_seconds": 10.0}, "p90_seconds: found 10, expected at least build_cold_median_seconds."),
]


@pytest.mark.parametrize(("values", "said"), IMPOSSIBLE)
def test_a_world_that_cannot_be_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(AssumptionsError, match=re.escape(said)):
        make_assumptions(values, "--set")


def test_all_faults_come_at_once() -> None:
    with pytest.raises(AssumptionsError) as error:
        make_assumptions({"max_nodes": 0, "pulls": "quick", "gc_low": -1.0}, "--set")
    assert len(error.value.faults) == 3


def test_every_assumption_is_listed_with_what_it_is() -> None:
    rows = list_assumptions(make_assumptions({"min_nodes": 3}, "--set"))
    assert [row.name for row in rows] == [one.name for one in fields(Assumptions)]
    assert [row.name for row in rows if row.is_changed] == ["min_nodes"]
    assert all(row.about.endswith(".") for row in rows)


# Launches of one image, which one of two nodes then holds. They ask for memory alone, so each makes its node less
# balanced: 1.35 looks at how balanced a node would be, 1.36 at how much that changes, which is the same on both.
LAUNCHES = in_order(*((index * 200.0, "a") for index in range(5)))
WORLD = small(room=10, nodes=2, user_cpu_millicores=1)


@pytest.mark.parametrize(
    ("minor", "nodes"),
    [("1.35", ["node-1", "node-1", "node-1", "node-2", "node-2"]), ("1.36", ["node-1"] * 5), ("1.37", ["node-1"] * 5)],
)
def test_each_minor_binds_as_its_own_scheduler_does(minor: str, nodes: list[str]) -> None:
    result, world = play(LAUNCHES, policy("kube-default"), replace(WORLD, kubernetes_minor=minor))
    assert (world.users_nodes(), result.cold) == (nodes, len(set(nodes)))


def test_the_usual_minor_is_the_newest_that_the_chart_has_an_image_for() -> None:
    values: Any = read_defaults().values
    tags = values["scheduler"]["image"]["tags"]
    assert max(tags, key=kube_minor) == Assumptions().kubernetes_minor
    assert set(tags) <= set(KUBERNETES_MINORS)


@pytest.mark.parametrize("minor", ["1.32", "1.38", "36", "v1.36", "1.036"])
def test_a_minor_that_the_model_does_not_know_is_refused(minor: str) -> None:
    said = f"--set: kubernetes_minor: found '{minor}', expected 1.33 or 1.34 or 1.35 or 1.36 or 1.37."
    with pytest.raises(AssumptionsError, match=f"^{re.escape(said)}$"):
        read_assumption(f"kubernetes_minor={minor}", "--set")
    with pytest.raises(AssumptionsError, match=f"^{re.escape(said)}$"):
        make_assumptions({"kubernetes_minor": minor}, "--set")


@pytest.mark.parametrize("name", ["roost", "z2jh", "kube-default"])
def test_values_are_rendered_for_the_minor_as_if_loaded_for_it(name: str) -> None:
    usual = load_policy(name)
    for text in KUBERNETES_MINORS:
        minor = kube_minor(text)[1]
        there = usual.in_minor(minor)
        assert there.cluster_profile.minor == there.minor == minor
        # zero-to-jupyterhub's chart brings a kube-scheduler of its own, which doesn't follow the cluster's.
        own = {"roost": {minor}, "z2jh": {35}, "kube-default": set()}
        assert {one.minor for one in there.profiles.values()} == own[name]
        again = there.in_minor(usual.minor)
        assert (replace(again, webhook=usual.webhook), again.digest) == (usual, usual.digest)
        assert (there.digest == usual.digest) == (minor == usual.minor)


def test_policies_of_the_static_rules_have_none_before_1_36() -> None:
    usual = policy("z2jh", '{"admission": {"mode": "policy"}}')
    assert usual.webhook is not None
    assert usual.in_minor(35).webhook is None


def test_a_sweep_replays_each_world_in_its_minor() -> None:
    worlds = [({}, Assumptions()), ({"kubernetes_minor": "1.35"}, Assumptions(kubernetes_minor="1.35"))]
    jobs = make_jobs([policy("z2jh")], [1, 2], worlds, trace_of(()))
    assert [(job.seed, job.policy.minor) for job in jobs] == [(1, 37), (1, 35), (2, 37), (2, 35)]
    assert len({job.key for job in jobs}) == 4


def test_a_pinned_scheduler_decides_by_its_own_minor(tmp_path: Path) -> None:
    pinned = tmp_path / "pinned.yaml"
    pinned.write_text('scheduler: {image: {tag: "v1.36.4"}}\n')
    found = load_policy("pinned", [str(policy_files()["z2jh"]), str(pinned)])
    assert {one.minor for one in found.profiles.values()} == {36}
    assert (found.minor, found.cluster_profile.minor) == (37, 37)
    assert found.digest != load_policy("z2jh").digest


@pytest.mark.parametrize("tag", ["v1.32.2", "v1.38.0"])
def test_a_pinned_scheduler_that_the_model_does_not_know_is_refused_by_its_place(tag: str, tmp_path: Path) -> None:
    pinned = tmp_path / "pinned.yaml"
    pinned.write_text(f'scheduler:\n  image:\n    tag: "{tag}"\n')
    with pytest.raises(AssumptionsError) as error:
        load_policy("pinned", [str(policy_files()["z2jh"]), str(pinned)])
    assert str(error.value).startswith(
        f"{pinned}:3: scheduler.image.tag: found kube-scheduler {tag[1:5]}, expected one of 1.33, 1.34, 1.35, 1.36,"
    )
