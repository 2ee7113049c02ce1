"""What EKS, AKS and GKE are given: what each accepts, and a fault for what it doesn't."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from generator.faults import ValuesError
from generator.render.manifests import render
from generator.render.provider_schedulers import scheduler_request
from generator.values.release import Release
from tests.unit.generator.linted import merged

RELEASE = Release("hub", "jhub", "v1.37.2")


def requested(target: str, text: str = "") -> str:
    return scheduler_request(merged(text).values, RELEASE, target)


def test_eks_is_given_the_users_strategy_and_nothing_else() -> None:
    strategy = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }
    assert json.loads(requested("eks")) == {"kubeSchedulerConfig": {"nodeResourcesFit": {"scoringStrategy": strategy}}}
    spread = json.loads(requested("eks", "scheduler: {profiles: {user: {strategy: spread}}}"))
    assert spread["kubeSchedulerConfig"]["nodeResourcesFit"]["scoringStrategy"]["type"] == "LeastAllocated"


@pytest.mark.parametrize(
    ("text", "key", "found"),
    [
        (
            "scheduler: {profiles: {user: {strategy: packTo}}}",
            "scheduler.strategies.packTo.fit.type",
            "RequestedToCapacityRatio",
        ),
        ("podClasses: {user: {profile: ''}}", "podClasses.user.profile", "''"),
        (
            "scheduler: {profiles: {user: {plugins: {score: {}}, pluginConfig: [{name: NodeResourcesFit}]}}}",
            "scheduler.profiles.user",
            "pluginConfig of its own",
        ),
    ],
)
def test_what_eks_cannot_express_is_refused_by_key(text: str, key: str, found: str) -> None:
    with pytest.raises(ValuesError) as refused:
        requested("eks", text)
    (fault,) = refused.value.faults
    assert (fault.key, fault.found) == (key, found)
    assert fault.expected
    assert fault.fix


def test_aks_is_given_the_profiles_that_roosts_own_scheduler_would_have() -> None:
    bodies: list[Any] = [manifest.body for manifest in render(merged("").values, RELEASE)]
    deployed = [
        yaml.safe_load(body["data"]["config.yaml"])["profiles"]
        for body in bodies
        if body["kind"] == "ConfigMap" and "config.yaml" in body["data"]
    ]
    for text in ("", "scheduler: {target: aks}"):
        document = yaml.safe_load(requested("aks", text))
        assert (document["apiVersion"], document["kind"]) == ("aks.azure.com/v1alpha1", "SchedulerConfiguration")
        assert document["metadata"] == {"name": "upstream"}
        raw = yaml.safe_load(document["spec"]["rawConfig"])
        assert [raw["profiles"]] == deployed
        assert set(raw) == {"apiVersion", "kind", "profiles"}, "leader election and connection are the provider's"


def test_gke_is_asked_for_its_profile_that_packs_or_for_its_default() -> None:
    assert requested("gke").endswith("--autoscaling-profile optimize-utilization\n")
    assert requested("gke", "scheduler: {profiles: {user: {strategy: spread}}}").endswith("balanced\n")


@pytest.mark.parametrize("target", ["eks", "aks", "gke"])
def test_a_providers_scheduler_changes_the_same_objects_as_none(target: str) -> None:
    def objects(name: str) -> list[object]:
        return [manifest.body for manifest in render(merged(f"scheduler: {{target: {name}}}").values, RELEASE)]

    assert objects(target) == objects("none")
