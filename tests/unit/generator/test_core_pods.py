"""`corePods`: what the four programs have in common, and what each changes for itself."""

import json
from typing import Any

import pytest

from generator.render.manifests import render
from generator.values.merge import merge_maps
from generator.values.release import Release
from tests.unit.generator.linted import found, merged

PROGRAMS = ("scheduler", "webhook", "controllers", "recorder")
Values = dict[str, Any]


def pods(text: str) -> dict[str, Values]:
    bodies: list[Values] = [dict(one.body) for one in render(merged(text).values, Release("hub", "hub", "v1.37.2"))]
    deployments = {one["metadata"]["name"]: one for one in bodies if one["kind"] == "Deployment"}
    return {name: deployments[f"hub-roost-{name}"]["spec"]["template"]["spec"] for name in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_has_what_core_pods_says(program: str) -> None:
    spec = pods("recorder: {enabled: true}\ncorePods: {nodeSelector: {pool: core}, tolerations: [], hostNetwork: true}")
    assert spec[program]["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "core"}
    assert "tolerations" not in spec[program]
    assert spec[program]["hostNetwork"] is True


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_changes_what_it_names_for_itself_alone(program: str) -> None:
    own = {"nodeSelector": {"disk": "ssd"}, "priorityClassName": "", "hostNetwork": False}
    common = {"nodeSelector": {"pool": "core"}, "priorityClassName": "high", "hostNetwork": True}
    specs = pods(json.dumps(merge_maps({"corePods": common, "recorder": {"enabled": True}}, {program: own})))
    assert specs[program]["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "core", "disk": "ssd"}
    assert not {"priorityClassName", "hostNetwork"} & set(specs[program])
    others = [specs[name] for name in PROGRAMS if name != program]
    assert all(one["nodeSelector"]["pool"] == "core" and one["priorityClassName"] == "high" for one in others)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ("corePods: {pdb: {maxUnavailable: 0}}", "corePods.pdb.maxUnavailable"),
        ("webhook: {pdb: {maxUnavailable: 0}}", "webhook.pdb.maxUnavailable"),
        ("corePods: {labels: {component: singleuser-server}}", "corePods.labels"),
        ("recorder: {labels: {component: singleuser-server}}", "recorder.labels"),
        ("recorder: {enabled: true}\ncorePods: {extraEnv: [{name: ROOST_DATABASE, value: x}]}", "corePods.extraEnv[0]"),
    ],
)
def test_a_fault_names_the_key_that_says_it(values: str, key: str) -> None:
    assert key in {fault.key for fault in found(values)}
