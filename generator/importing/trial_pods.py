"""Make trial pods: users' pods, one of each kind, as KubeSpawner makes them from the hub's own
values.

Nothing that was imported is read here: imported values are tried on these pods. Source:
zero-to-jupyterhub 4.4, jupyterhub_config.py; KubeSpawner 7.1, `_load_profile`, `_build_pod_labels`,
`make_pod`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from generator.checks.contract import at, listing, mapping, text
from generator.importing import profile_pools
from generator.importing.reach import ANY, traits_of
from generator.importing.result import ImportResult
from generator.importing.source import UNKNOWN, HubSection
from generator.importing.users import PURPOSE_TERM
from generator.values.files import read_defaults
from generator.values.merge import coalesce
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.placement.labels import NAMESPACE_NAME_LABEL


class UserPod(NamedTuple):
    """A user's pod, the labels of its namespace, and what its user chose: a profile and choices, ()
    where none is.
    """

    chosen: tuple[str, ...]
    pod: dict[str, Any]
    namespace_labels: Mapping[str, str]


def user_pods(result: ImportResult, namespace: str = "hub") -> list[UserPod]:
    """A pod of each profile with each of its choices, of the hub that was imported. namespace: the
    hub's.
    """
    if result.hub is None:
        return []
    names = listing(result.values.get("replaceSchedulers")) or [""]
    of_chart = _chart_traits(result.hub, is_binder=result.is_binder)
    usual = {"scheduler_name": names[0], "namespace": namespace, **of_chart}
    usual |= {name: value for name, (value, _) in traits_of(result.hub).items()}
    if ANY in usual:
        usual["namespace"] = UNKNOWN
    if usual.get("profile_list") == UNKNOWN:
        # Only the hub's Python knows where their users go.
        usual["node_selector"] = {UNKNOWN: ""}
    taken: set[str] = set()
    kinds: list[profile_pools.Kind] = []
    profiles = list(profile_pools.named_profiles(usual.get("profile_list")))
    for place, (name, profile) in enumerate(profiles, start=1):
        each = profile_pools.MOST_KINDS // len(profiles)
        kinds += profile_pools.kinds_of(
            usual, profile, f"{name} (profile {place})" if name in taken else name, _as_made, each
        )
        taken.add(name)
    if not kinds and not result.is_binder:
        kinds = [(("the hub's own image",) if result.has_builds else (), usual)]
    if result.has_builds:
        kinds.append(
            (
                (profile_pools.UNLISTED,) if kinds else (),
                {**usual, "image": profile_pools.UNKNOWN_IMAGE},
            )
        )
    return [UserPod(chosen, _pod_of(traits), _namespace_labels(traits)) for chosen, traits in kinds]


def _as_made(traits: profile_pools.Traits) -> tuple[str, str]:
    return repr((_pod_of(traits), _namespace_labels(traits))), ""


def _chart_traits(hub: HubSection, *, is_binder: bool) -> profile_pools.Traits:
    """What the chart sets by its values."""
    tolerations = at(read_defaults().values, "placeholder", "defaults", "tolerations")
    user_pods = {"tolerations": tolerations, "nodeAffinity": {"matchNodePurpose": "prefer"}}
    memory = {"guarantee": None if is_binder else "1G"}
    data = coalesce(
        hub.data, {"scheduling": {"userPods": user_pods}, "singleuser": {"memory": memory}}
    )
    single = mapping(data.get("singleuser"))
    user_pods = mapping(at(data, "scheduling", "userPods"))
    purpose = at(user_pods, "nodeAffinity", "matchNodePurpose")
    priorities = at(data, "scheduling", "podPriority")
    has_priority = at(priorities, "enabled") is True
    priority = at(priorities, "defaultPriority") if has_priority else None
    extra = mapping(single.get("extraNodeAffinity"))
    network = at(single, "networkTools", "image")
    guard = {"name": "block-cloud-metadata", "image": _reference(network)}
    is_guarded = guard["image"] and at(single, "cloudMetadata", "blockWithIptables") is not False
    guards = [guard] if is_guarded else []
    required = [PURPOSE_TERM] if purpose == "require" else []
    preferred = [{"weight": 100, "preference": PURPOSE_TERM}] if purpose == "prefer" else []
    return {
        "image": _reference(at(hub.data, "singleuser", "image")),
        "node_selector": single.get("nodeSelector"),
        "tolerations": listing(user_pods.get("tolerations"))
        + listing(single.get("extraTolerations")),
        "node_affinity_required": required + listing(extra.get("required")),
        "node_affinity_preferred": preferred + listing(extra.get("preferred")),
        "init_containers": guards + listing(single.get("initContainers")),
        "extra_containers": listing(single.get("extraContainers")),
        "extra_labels": single.get("extraLabels"),
        "priority": priority,
        "profile_list": single.get("profileList"),
        **profile_pools.size_traits(single),
    }


def _reference(image: object) -> str:
    """An image's name and tag; "" where the tag isn't known."""
    name = at(image, "name")
    tag = at(image, "tag")
    if name and tag:
        return f"{name}:{tag}"
    # `tag: null` takes the chart's tag away. Without the key, the chart's own tag counts, which
    # isn't known here.
    return text(name) if "tag" in mapping(image) else ""


def _pod_of(traits: profile_pools.Traits) -> dict[str, Any]:
    sizes = profile_pools.own_sizes(traits)
    for part, key in (
        ("requests", "extra_resource_guarantees"),
        ("limits", "extra_resource_limits"),
    ):
        sizes[part] |= {
            name: str(amount)
            for name, amount in mapping(traits.get(key)).items()
            if amount is not None
        }
    # As the API server's defaults are.
    sizes["requests"] = {**sizes["limits"], **sizes["requests"]}
    image = text(traits.get("image")) or text(traits.get("image_spec"))
    notebook = {"name": "notebook", "image": image, "resources": sizes}
    node_affinity: dict[str, object] = {PREFERRED: listing(traits.get("node_affinity_preferred"))}
    if required := listing(traits.get("node_affinity_required")):
        node_affinity[REQUIRED] = {"nodeSelectorTerms": required}
    spec: dict[str, object] = {
        "containers": [notebook, *_containers(traits.get("extra_containers"))],
        "initContainers": _containers(traits.get("init_containers")),
        "nodeSelector": mapping(traits.get("node_selector")),
        "tolerations": listing(traits.get("tolerations")),
        "affinity": {"nodeAffinity": node_affinity},
        "schedulerName": traits.get("scheduler_name") or "default-scheduler",
    }
    if traits.get("priority"):
        spec["priority"] = traits["priority"]
    for key, value in mapping(traits.get("extra_pod_config")).items():
        spec[re.sub(r"_([a-z])", lambda found: found[1].upper(), key)] = value
    # Whatever extra_labels says of `component`, this one stands.
    labels = {
        **mapping(traits.get("extra_labels")),
        "component": traits.get("component_label") or "singleuser-server",
    }
    metadata = {"name": "jupyter-user", "namespace": _namespace(traits), "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _containers(value: object) -> list[object]:
    """A list, or a mapping in the order of its keys; each has a name."""
    listed = [value[key] for key in sorted(value)] if isinstance(value, dict) else listing(value)
    return [
        {"name": f"container-{place}", **mapping(container)}
        for place, container in enumerate(listed)
    ]


def _namespace(traits: profile_pools.Traits) -> str:
    template = text(traits.get("user_namespace_template")) or "{hubnamespace}-{username}"
    named = (
        re.sub(r"\{.*?\}", "user", template) if traits.get("enable_user_namespaces") is True else ""
    )
    return named or text(traits.get("namespace"))


def _namespace_labels(traits: profile_pools.Traits) -> Mapping[str, str]:
    own = (
        mapping(traits.get("user_namespace_labels"))
        if traits.get("enable_user_namespaces") is True
        else {}
    )
    return {
        **{key: str(value) for key, value in own.items()},
        NAMESPACE_NAME_LABEL: _namespace(traits),
    }
