"""Assumptions: read from texts, refused where the world can't be, and each explained."""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from generator.render.kube_scheduler import SCHEDULER_TAGS
from generator.values.release_name import kube_minor
from lab.tests.small_worlds import in_order, play, policy, small
from lab.tests.told import cases
from roost_lab.simulator.setup.assumptions import KUBERNETES_MINORS, Assumptions, Autoscaler
from roost_lab.simulator.setup.checks import (
    AssumptionsError,
    list_assumptions,
    make_assumptions,
    read_assumption,
)
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.sweep.run import make_jobs
from roost_lab.simulator.sweep.survey import trace_of


@pytest.mark.parametrize(
    ("text", "value"),
    [*cases("simulator", "assumptions"), ("autoscaler=karpenter", Autoscaler.KARPENTER)],
)
def test_values_are_of_their_kind(text: str, value: object) -> None:
    name, found = read_assumption(text, "--set")
    assert (name, found) == (text.partition("=")[0].strip(), value)
    assert type(found) is type(value)


@pytest.mark.parametrize(("text", "said"), cases("simulator", "assumptions_refused"))
def test_what_cannot_be_read_is_named_with_what_is_accepted(text: str, said: str) -> None:
    with pytest.raises(AssumptionsError, match=f"^{re.escape(said)}"):
        read_assumption(text, "--set")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        *cases("simulator", "impossible"),
        (
            {"autoscaler": Autoscaler.NONE, "min_nodes": 0},
            "at least 1 where no autoscaler adds nodes",
        ),
    ],
)
def test_a_world_that_cannot_be_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(AssumptionsError, match=re.escape(said)):
        make_assumptions(values, "--set")


def test_all_faults_come_at_once() -> None:
    with pytest.raises(AssumptionsError) as error:
        make_assumptions({"max_nodes": 0, "pulls": "quick", "gc_low": -1.0}, "--set")
    assert len(error.value.faults) == 3


def test_every_assumption_is_listed_with_what_it_is() -> None:
    rows = list_assumptions(make_assumptions({"min_nodes": 3}, "--set"))
    assert [row.name for row in rows] == [field.name for field in fields(Assumptions)]
    assert [row.name for row in rows if row.is_changed] == ["min_nodes"]
    assert all(row.about.endswith(".") for row in rows)


# Launches of one image, which one of two nodes then holds. They ask for memory alone, so each makes
# its node less balanced: 1.35 looks at how balanced a node would be, 1.36 at how much that changes,
# which is the same on both.
LAUNCHES = in_order(*((index * 200.0, "a") for index in range(5)))
WORLD = small(room=10, nodes=2, user_cpu_millicores=1)


@pytest.mark.parametrize(
    ("minor", "nodes"),
    [
        ("1.35", ["node-1", "node-1", "node-1", "node-2", "node-2"]),
        ("1.36", ["node-1"] * 5),
        ("1.37", ["node-1"] * 5),
    ],
)
def test_each_minor_binds_as_its_own_scheduler_does(minor: str, nodes: list[str]) -> None:
    result, world = play(LAUNCHES, policy("kube-default"), replace(WORLD, kubernetes_minor=minor))
    assert (world.users_nodes(), result.cold) == (nodes, len(set(nodes)))


def test_the_usual_minor_is_the_newest_that_the_chart_has_an_image_for() -> None:
    assert max(SCHEDULER_TAGS, key=kube_minor) == Assumptions().kubernetes_minor
    assert tuple(SCHEDULER_TAGS) == KUBERNETES_MINORS


@pytest.mark.parametrize("minor", ["1.32", "1.38", "36", "v1.36", "1.036"])
def test_a_minor_that_the_model_does_not_know_is_refused(minor: str) -> None:
    said = (
        f"--set: kubernetes_minor: found '{minor}', expected 1.33 or 1.34 or 1.35 or 1.36 or 1.37."
    )
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
        # zero-to-jupyterhub's chart brings a kube-scheduler of its own, which doesn't follow the
        # cluster's.
        own = {"roost": {minor}, "z2jh": {35}, "kube-default": set()}
        assert {profile.minor for profile in there.profiles.values()} == own[name]
        again = there.in_minor(usual.minor)
        assert (replace(again, webhook=usual.webhook), again.digest) == (usual, usual.digest)
        assert (there.digest == usual.digest) == (minor == usual.minor)


def test_policies_of_the_static_rules_have_none_before_1_36() -> None:
    usual = policy("z2jh", '{"admission": {"mode": "policy"}}')
    assert usual.webhook is not None
    assert usual.in_minor(35).webhook is None


def test_a_sweep_replays_each_world_in_its_minor() -> None:
    worlds = [
        ({}, Assumptions()),
        ({"kubernetes_minor": "1.35"}, Assumptions(kubernetes_minor="1.35")),
    ]
    jobs = make_jobs([policy("z2jh")], [1, 2], worlds, trace_of(()))
    assert [(job.seed, job.policy.minor) for job in jobs] == [(1, 37), (1, 35), (2, 37), (2, 35)]
    assert len({job.key for job in jobs}) == 4


def test_a_pinned_scheduler_decides_by_its_own_minor(tmp_path: Path) -> None:
    pinned = tmp_path / "pinned.yaml"
    pinned.write_text('scheduler: {image: {tag: "v1.36.4"}}\n')
    found = load_policy("pinned", [str(policy_files()["z2jh"]), str(pinned)])
    assert {profile.minor for profile in found.profiles.values()} == {36}
    assert (found.minor, found.cluster_profile.minor) == (37, 37)
    assert found.digest != load_policy("z2jh").digest


@pytest.mark.parametrize("tag", ["v1.32.2", "v1.38.0"])
def test_a_pinned_scheduler_that_the_model_does_not_know_is_refused_by_its_place(
    tag: str, tmp_path: Path
) -> None:
    pinned = tmp_path / "pinned.yaml"
    pinned.write_text(f'scheduler:\n  image:\n    tag: "{tag}"\n')
    with pytest.raises(AssumptionsError) as error:
        load_policy("pinned", [str(policy_files()["z2jh"]), str(pinned)])
    assert str(error.value).startswith(
        f"{pinned}:3: scheduler.image.tag: found kube-scheduler {tag[1:5]}, expected one of 1.33,"
        " 1.34, 1.35, 1.36,"
    )
