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
from generator.importing.chart_traits import chart_traits
from generator.importing.class_match import traits_of
from generator.importing.python_settings import ANY
from generator.importing.result import ImportResult
from generator.importing.source import UNKNOWN
from generator.importing.traits import (
    BESIDE,
    DECIDED_BY,
    POD_KEYS,
    PRIORITY,
    PROFILES,
    SIZE,
    WHERE,
    camel_case,
    entries_of,
    is_known,
)
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.placement.labels import NAMESPACE_NAME_LABEL


class UserPod(NamedTuple):
    """A user's pod, the labels of its namespace, and what its user chose: a profile and choices, ()
    where none is.
    """

    chosen: tuple[str, ...]
    pod: dict[str, Any]
    namespace_labels: Mapping[str, str]
    # What only a run, or the API server, would show of it, and by what.
    unknown: Mapping[str, str] = {}


def user_pods(result: ImportResult, namespace: str = "hub") -> list[UserPod]:
    """A pod of each profile with each of its choices, of the hub that was imported. namespace: the
    hub's.
    """
    if result.hub is None:
        return []
    names = listing(result.values.get("replaceSchedulers")) or [""]
    of_chart = chart_traits(result.hub.data, is_binder=result.is_binder)
    usual = {"scheduler_name": names[0], "namespace": namespace, **of_chart}
    hub_traits = traits_of(result.hub)
    usual |= {name: value for name, (value, _) in hub_traits.traits.items()}
    set_by = {name: keys for name, (_, keys) in hub_traits.traits.items()}
    if hub_traits.any_trait is not None:
        usual |= {ANY: UNKNOWN, "namespace": UNKNOWN}
        set_by[ANY] = hub_traits.any_trait.keys
    where = {
        name: f"{result.hub.show(keys)}{result.line_of((*result.hub.path, *keys))}"
        for name, keys in set_by.items()
    }
    groups: list[profile_pools.Kind] = [((), usual)]
    for name, override in groups_of(usual.get("group_overrides")):
        holder = {"kubespawner_override": override}
        groups[0] = (("the others",), usual)
        groups.append(((name,), profile_pools.overridden_by(usual, holder)))
    found: list[UserPod] = []
    for chosen, traits in groups:
        found += [
            UserPod(
                (*chosen, *more), _pod_of(made), _namespace_labels(made), _unknown_of(made, where)
            )
            for more, made in _kinds_of(result, traits, len(groups))
        ]
    return found


def groups_of(overrides: object) -> list[tuple[str, object]]:
    """The overrides of each entry of `group_overrides`, with the name of its groups."""
    found = []
    for key, entry in sorted(mapping(overrides).items(), key=lambda item: str(item[0])):
        groups = [str(name) for name in listing(at(entry, "groups"))]
        found.append((f"group {' or '.join(groups) or key}", at(entry, "spawner_override")))
    return found


def _unknown_of(traits: profile_pools.Traits, where: Mapping[str, str]) -> dict[str, str]:
    """What isn't known of a pod of these traits, each with what sets it."""
    found: dict[str, str] = {}
    if traits.get("profile_list") == UNKNOWN:
        found[PROFILES] = where.get("profile_list", "")
    if ANY in traits or traits.get("group_overrides") == UNKNOWN:
        by = where.get(ANY) or where.get("group_overrides", "")
        found |= {WHERE: f"by {by}", SIZE: f"by {by}"}
    for part, names in DECIDED_BY.items():
        for name in names:
            value = traits.get(name)
            # What a priority is worth, and which pods are where, only the cluster knows.
            if not is_known(value) or (part in (BESIDE, PRIORITY) and value):
                found.setdefault(part, f"by {where.get(name, name)}")
    own = mapping(traits.get("extra_pod_config"))
    by = f"by {where.get('extra_pod_config', 'extra_pod_config')}"
    for key, value in own.items():
        steers = key in ("nodeName", "topologySpreadConstraints", "schedulingGates") and value
        is_unknown = key in POD_KEYS and key != "schedulerName" and not is_known(value)
        if key in ("overhead", "resources", "containers", "initContainers") and value:
            found.setdefault(SIZE, by)
        elif key in ("priority", "priorityClassName") and value:
            found.setdefault(PRIORITY, by)
        elif steers or is_unknown or key == ANY:
            found.setdefault(WHERE, by)
    if name := text(own.get("runtimeClassName")):
        found[WHERE] = f"by the RuntimeClass {name}"
    affinity = at(own, "affinity")
    if any(at(affinity, kind, REQUIRED) for kind in ("podAffinity", "podAntiAffinity")):
        found.setdefault(BESIDE, by)
    return found


def _kinds_of(
    result: ImportResult, usual: profile_pools.Traits, groups: int
) -> list[profile_pools.Kind]:
    """The kinds of these users who take a profile and choices."""
    taken: set[str] = set()
    kinds: list[profile_pools.Kind] = []
    profiles = list(profile_pools.named_profiles(usual.get("profile_list")))
    for place, (name, profile) in enumerate(profiles, start=1):
        each = max(1, profile_pools.MOST_KINDS // len(profiles) // groups)
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
    return kinds


def _as_made(traits: profile_pools.Traits) -> tuple[str, str]:
    return repr((_pod_of(traits), _namespace_labels(traits), _unknown_of(traits, {}))), ""


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
    # The API server defaults requests to limits, too.
    sizes["requests"] = {**sizes["limits"], **sizes["requests"]}
    image = text(traits.get("image")) or text(traits.get("image_spec"))
    notebook = {"name": "notebook", "image": image, "resources": sizes}
    node_affinity: dict[str, object] = {
        PREFERRED: entries_of(traits.get("node_affinity_preferred"))
    }
    if required := entries_of(traits.get("node_affinity_required")):
        node_affinity[REQUIRED] = {"nodeSelectorTerms": required}
    spec: dict[str, object] = {
        "containers": [notebook, *_containers(traits.get("extra_containers"))],
        "initContainers": _containers(traits.get("init_containers")),
        "nodeSelector": mapping(traits.get("node_selector")),
        "tolerations": entries_of(traits.get("tolerations")),
        "affinity": {"nodeAffinity": node_affinity},
        "schedulerName": traits.get("scheduler_name") or "default-scheduler",
    }
    if traits.get("priority"):
        spec["priority"] = traits["priority"]
    for key, value in mapping(traits.get("extra_pod_config")).items():
        if key != ANY and (is_known(value) or key == "schedulerName"):
            spec[camel_case(str(key))] = value
    # Whatever extra_labels says of `component`, this one stands.
    labels = {
        **mapping(traits.get("extra_labels")),
        "component": traits.get("component_label") or "singleuser-server",
    }
    metadata = {"name": "jupyter-user", "namespace": _namespace(traits), "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _containers(value: object) -> list[object]:
    """A list, or a mapping in the order of its keys; each has a name."""
    return [
        {"name": f"container-{place}", **mapping(container)}
        for place, container in enumerate(entries_of(value))
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
