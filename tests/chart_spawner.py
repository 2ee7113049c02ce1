"""Users' pods as the real KubeSpawner makes them from a hub's values: what zero-to-jupyterhub's
jupyterhub_config.py tells it by the chart's keys, then `hub.config`, then the hub's own Python.
"""

import asyncio
import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, cast
from unittest.mock import patch

from jupyterhub.objects import Hub
from kubespawner import KubeSpawner
from traitlets.config import Config

from generator.importing.trial_pods import UserPod
from generator.values.lookups import child, listing, mapping
from generator.values.merge import coalesce
from generator.values.release_name import Release
from roost_core.placement.labels import NAMESPACE_NAME_LABEL
from tests.e2e.spawned import KUBECONFIG, NOWHERE, SpawnedUser

PURPOSE: dict[str, Any] = {
    "matchExpressions": [
        {"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}
    ]
}
_DEDICATED = [
    {"key": f"hub.jupyter.org{mark}dedicated", "operator": "Equal", "value": "user"}
    | {"effect": "NoSchedule"}
    for mark in "/_"
]
_CHART: dict[str, Any] = {
    "scheduling": {
        "userPods": {"tolerations": _DEDICATED, "nodeAffinity": {"matchNodePurpose": "prefer"}}
    },
    "singleuser": {
        "nodeSelector": {},
        "extraTolerations": [],
        "extraNodeAffinity": {"required": [], "preferred": []},
        "extraPodAffinity": {"required": [], "preferred": []},
        "extraPodAntiAffinity": {"required": [], "preferred": []},
        "initContainers": [],
        "extraContainers": [],
        "extraLabels": {},
        "extraPodConfig": {},
        "memory": {"guarantee": "1G"},
        "profileList": [],
    },
}
_KEYS = {
    "node_selector": "nodeSelector",
    "node_affinity_required": "extraNodeAffinity.required",
    "node_affinity_preferred": "extraNodeAffinity.preferred",
    "pod_affinity_required": "extraPodAffinity.required",
    "pod_affinity_preferred": "extraPodAffinity.preferred",
    "pod_anti_affinity_required": "extraPodAntiAffinity.required",
    "pod_anti_affinity_preferred": "extraPodAntiAffinity.preferred",
    "extra_labels": "extraLabels",
    "init_containers": "initContainers",
    "extra_containers": "extraContainers",
    "mem_limit": "memory.limit",
    "mem_guarantee": "memory.guarantee",
    "cpu_limit": "cpu.limit",
    "cpu_guarantee": "cpu.guarantee",
    "extra_resource_limits": "extraResource.limits",
    "extra_resource_guarantees": "extraResource.guarantees",
    "profile_list": "profileList",
    "extra_pod_config": "extraPodConfig",
}


def spawner_config(hub: dict[str, Any], scheduler: str, namespace: str) -> Config:
    """The hub's configuration, when all of its code has run. hub: its values."""
    values = coalesce(hub, _CHART)
    c = Config()
    c.KubeSpawner.namespace = namespace
    for trait, key in _KEYS.items():
        value = child(values, "singleuser", *key.split("."))
        if value is not None:
            c.KubeSpawner[trait] = copy.deepcopy(value)
    name = child(values, "singleuser", "image", "name")
    tag = child(values, "singleuser", "image", "tag")
    if name:
        c.KubeSpawner.image = f"{name}:{tag}" if tag else name
    if child(values, "scheduling", "userScheduler", "enabled") is not False:
        c.KubeSpawner.scheduler_name = scheduler
    purpose = child(values, "scheduling", "userPods", "nodeAffinity", "matchNodePurpose")
    if purpose == "prefer":
        c.KubeSpawner.node_affinity_preferred.append({"weight": 100, "preference": PURPOSE})
    elif purpose == "require":
        c.KubeSpawner.node_affinity_required.append(PURPOSE)
    tolerations = listing(child(values, "scheduling", "userPods", "tolerations"))
    tolerations = tolerations + listing(child(values, "singleuser", "extraTolerations"))
    if tolerations:
        c.KubeSpawner.tolerations = copy.deepcopy(tolerations)
    for section, traits in mapping(child(values, "hub", "config")).items():
        c[section].update(copy.deepcopy(traits))
    scope: dict[str, Any] = {"c": c, "get_config": lambda *_: c}
    for _, code in sorted(mapping(child(values, "hub", "extraConfig")).items()):
        exec(cast("str", code), scope)  # noqa: S102 - of the tests' own hubs
    return c


def real_pods(hub: dict[str, Any], scheduler: str) -> Iterator[UserPod]:
    """A pod of each profile, with its default choices; hub: the hub's values."""
    namespace = Release().namespace
    count = len(listing(child(hub, "singleuser", "profileList")) or mapping(_profiles_of(hub))) or 1
    for place in range(count):
        config = spawner_config(hub, scheduler, namespace)
        pod, chosen, own = _spawned(config, place)
        labels = {**own, NAMESPACE_NAME_LABEL: pod["metadata"].get("namespace", namespace)}
        yield UserPod(chosen, pod, labels)


def _profiles_of(hub: dict[str, Any]) -> object:
    return child(hub, "singleuser", "profileList")


@cache
def kubeconfig() -> Path:
    """Of a cluster that is never spoken to."""
    path = Path(mkdtemp()) / "kubeconfig"
    path.write_text(NOWHERE)
    return path


def _spawned(config: Config, place: int) -> tuple[dict[str, Any], tuple[str, ...], dict[str, str]]:
    """The body that KubeSpawner posts for who takes a profile, what that one is called, and the
    labels of a namespace that is made for a user.
    """

    async def make() -> tuple[dict[str, Any], tuple[str, ...], dict[str, str]]:
        spawner = KubeSpawner(hub=Hub(), user=SpawnedUser("ada"), config=config, _mock=True)
        spawner.api_token = "made-up"
        await spawner.apply_group_overrides()
        if spawner.pre_spawn_hook:
            made = spawner.pre_spawn_hook(spawner)
            if made is not None:
                await made
        profiles = spawner.profile_list
        if callable(profiles):
            profiles = (
                await profiles(spawner)
                if asyncio.iscoroutinefunction(profiles)
                else (profiles(spawner))
            )
        listed = spawner._sorted_dict_values(profiles)
        listed = spawner._get_initialized_profile_list(listed)
        chosen: tuple[str, ...] = ()
        if listed:
            profile = listed[min(place, len(listed) - 1)]
            spawner.user_options = {"profile": profile["slug"]}
            chosen = (str(profile.get("display_name")),)
        await spawner.load_user_options()
        pod = await spawner.get_pod_manifest()
        if spawner.modify_pod_hook:
            changed = spawner.modify_pod_hook(spawner, pod)
            pod = await changed if asyncio.iscoroutine(changed) else changed
        body = cast("dict[str, Any]", spawner.api.api_client.sanitize_for_serialization(pod))
        await spawner.api.api_client.close()
        body["metadata"].setdefault("namespace", spawner.namespace)
        for container in body["spec"]["containers"]:
            # As the API server defaults them.
            sizes = container.setdefault("resources", {})
            sizes["requests"] = {**sizes.get("limits", {}), **sizes.get("requests", {})}
        own = spawner.user_namespace_labels if spawner.enable_user_namespaces else {}
        return body, chosen, dict(own)

    with patch(KUBECONFIG, str(kubeconfig())):
        return asyncio.run(make())
