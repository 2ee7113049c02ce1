"""What cloud providers let one set of their clusters' own scheduler, made of a set of values.

Owns the shape of each provider's request, and refuses what it can't express; talks to no provider.
Sources: docs/any-cloud.md cites the page of each.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

from generator.faults import Fault, ValuesError
from generator.render.manifests import render
from generator.values.merge import merge_maps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from generator.values.release import Release

# All that EKS takes as `type`.
_EKS_TYPES: Final = ("LeastAllocated", "MostAllocated")
_WHERE: Final = "merged values"


def scheduler_request(values: Mapping[str, Any], release: Release, target: str) -> str:
    """The text that `target` (eks, aks or gke) is given, ending in a newline. Raises ValuesError.

    eks: JSON for the AWS CLI's --cli-input-json. aks: a SchedulerConfiguration. gke: a gcloud command.
    """
    profiles = {profile["schedulerName"]: profile for profile in _profiles(values, release)}
    if target == "aks":
        return _for_aks(list(profiles.values()))
    strategy = _users_strategy(values)
    return _for_eks(strategy) if target == "eks" else _for_gke(strategy)


def _profiles(values: Mapping[str, Any], release: Release) -> list[dict[str, Any]]:
    """The profiles that Roost's own scheduler would run with."""
    deployed = merge_maps(values, {"enabled": True, "scheduler": {"target": "deploy"}})
    for manifest in render(deployed, release):
        body: Mapping[str, Any] = manifest.body
        if body["kind"] == "ConfigMap" and "config.yaml" in body["data"]:
            profiles: list[dict[str, Any]] = yaml.safe_load(body["data"]["config.yaml"])["profiles"]
            return profiles
    raise AssertionError("the templates render a configuration for target deploy")


def _users_strategy(values: Mapping[str, Any]) -> dict[str, Any]:
    """`fit` of the strategy that class user's profile names: the one setting that EKS and GKE know of."""
    name = ((values["podClasses"].get("user") or {}).get("profile")) or ""
    profile = values["scheduler"]["profiles"].get(name)
    if not profile:
        raise _refuse(
            "podClasses.user.profile",
            repr(name),
            f"a key of scheduler.profiles ({', '.join(values['scheduler']['profiles'])})",
            "The provider has one setting for all pods: users' profile says which.",
        )
    strategy = values["scheduler"]["strategies"].get(profile.get("strategy") or "")
    if profile.get("pluginConfig") or not strategy:
        raise _refuse(
            f"scheduler.profiles.{name}",
            "pluginConfig of its own" if profile.get("pluginConfig") else "no strategy",
            "a strategy of scheduler.strategies",
            "Name one, like {strategy: pack}.",
        )
    fit: dict[str, Any] = {"key": f"scheduler.strategies.{profile['strategy']}.fit", **strategy["fit"]}
    return fit


def _for_eks(fit: dict[str, Any]) -> str:
    if fit["type"] not in _EKS_TYPES:
        raise _refuse(
            f"{fit['key']}.type",
            fit["type"],
            " or ".join(_EKS_TYPES),
            "EKS takes no other. Give class user's profile a strategy that has one, like pack.",
        )
    # Weights are 1 to 100, in the schema of the values as with EKS.
    resources = [{"name": one["name"], "weight": one["weight"]} for one in fit["resources"]]
    request = {
        "kubeSchedulerConfig": {
            "nodeResourcesFit": {"scoringStrategy": {"type": fit["type"], "resources": resources}},
        }
    }
    return json.dumps(request, indent=2) + "\n"


def _for_gke(fit: dict[str, Any]) -> str:
    profile = "balanced" if fit["type"] == "LeastAllocated" else "optimize-utilization"
    return f"gcloud container clusters update CLUSTER --autoscaling-profile {profile}\n"


def _for_aks(profiles: list[dict[str, Any]]) -> str:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }
    head = (
        "apiVersion: aks.azure.com/v1alpha1\n"
        "kind: SchedulerConfiguration\n"
        "metadata:\n"
        "  # AKS reads this one name, so there is one for the whole cluster.\n"
        "  name: upstream\n"
        "spec:\n"
        "  rawConfig: |\n"
    )
    raw = yaml.safe_dump(config, sort_keys=False, width=1000)
    return head + "".join(f"    {line}\n" for line in raw.splitlines())


def _refuse(key: str, found: str, expected: str, fix: str) -> ValuesError:
    return ValuesError([Fault(_WHERE, 0, key, found, expected, fix)])
