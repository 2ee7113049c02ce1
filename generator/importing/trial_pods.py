"""Make trial pods: users' pods, one of each kind, as KubeSpawner makes them from the hub's own
values.

Nothing that was imported is read here: imported values are tried on these pods. Source:
zero-to-jupyterhub 4.4, jupyterhub_config.py; KubeSpawner 7.1, `_load_profile`, `_build_pod_labels`,
`make_pod`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from generator.importing import profile_pools
from generator.importing.chart_traits import chart_traits
from generator.importing.hub_traits import traits_of
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
from generator.importing.user_sizes import Traits, own_sizes
from generator.values.lookups import child, listing, mapping, text
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.objects.requests import requested
from roost_core.placement.labels import NAMESPACE_NAME_LABEL

# Fields of a pod that extra_pod_config may set, and that aren't compared with nodes here.
_FIELDS_OF_SIZE: Final = ("overhead", "resources", "containers", "initContainers")
_FIELDS_OF_PRIORITY: Final = ("priority", "priorityClassName")
_FIELDS_OF_PLACE: Final = ("nodeName", "topologySpreadConstraints", "schedulingGates")
# Who schedules a pod doesn't decide where it may go.
_READ_FIELDS: Final = frozenset(POD_KEYS) - {"schedulerName"}


class UserPod(NamedTuple):
    """A user's pod."""

    # A profile and choices; () where there is nothing to choose.
    chosen: tuple[str, ...]
    pod: dict[str, Any]
    namespace_labels: Mapping[str, str]
    # What of it only a run, or the API server, would show -> what sets it.
    unknown: Mapping[str, str] = {}


def user_pods(result: ImportResult, namespace: str = "hub") -> list[UserPod]:
    """A pod of each kind of user of the hub that was imported. namespace: the hub's."""
    if result.hub is None:
        return []
    schedulers = listing(result.values.get("replaceSchedulers")) or [""]
    of_chart = chart_traits(result.hub.data, is_binder=result.is_binder)
    usual = {"scheduler_name": schedulers[0], "namespace": namespace, **of_chart}
    hub_traits = traits_of(result.hub)
    usual |= {name: value for name, (value, _) in hub_traits.traits.items()}
    set_by = {name: keys for name, (_, keys) in hub_traits.traits.items()}
    if hub_traits.any_trait is not None:
        usual |= {ANY: UNKNOWN, "namespace": UNKNOWN}
        set_by[ANY] = hub_traits.any_trait.at
    # Trait -> the key that sets it, with its line.
    where = {
        name: f"{result.hub.show(keys)}{result.line_of((*result.hub.path, *keys))}"
        for name, keys in set_by.items()
    }
    named_groups = groups_of(usual.get("group_overrides"))
    groups: list[profile_pools.Kind] = [(("the others",) if named_groups else (), usual)]
    for name, override in named_groups:
        holder = {"kubespawner_override": override}
        groups.append(((name,), profile_pools.overridden_by(usual, holder)))
    users: list[UserPod] = []
    for group, of_group in groups:
        for chosen, traits in _kinds_of(result, of_group, len(groups)):
            pod = _pod_of(traits)
            unknown = _unknown_of(traits, where)
            users.append(UserPod((*group, *chosen), pod, _namespace_labels(traits), unknown))
    return users


def groups_of(overrides: object) -> list[tuple[str, object]]:
    """The overrides of each entry of `group_overrides`, with the name of its groups."""
    named = []
    for key, entry in sorted(mapping(overrides).items(), key=lambda item: str(item[0])):
        groups = [str(name) for name in listing(child(entry, "groups"))]
        named.append((f"group {' or '.join(groups) or key}", child(entry, "spawner_override")))
    return named


def _unknown_of(traits: Traits, where: Mapping[str, str]) -> dict[str, str]:
    """What isn't known of a pod of these traits, each with what sets it.

    where: the key and line that sets a trait.
    """
    unknown: dict[str, str] = {}
    if traits.get("profile_list") == UNKNOWN:
        unknown[PROFILES] = where.get("profile_list", "")
    if ANY in traits or traits.get("group_overrides") == UNKNOWN:
        by = f"by {where.get(ANY) or where.get('group_overrides', '')}"
        unknown |= {WHERE: by, SIZE: by}
    for part, names in DECIDED_BY.items():
        for name in names:
            value = traits.get(name)
            # What a priority is worth, and which pods are where, only the cluster knows.
            if not is_known(value) or (part in (BESIDE, PRIORITY) and value):
                unknown.setdefault(part, f"by {where.get(name, name)}")
    own = mapping(traits.get("extra_pod_config"))
    by = f"by {where.get('extra_pod_config', 'extra_pod_config')}"
    for key, value in own.items():
        is_unread = key == ANY or (key in _READ_FIELDS and not is_known(value))
        if key in _FIELDS_OF_SIZE and value:
            unknown.setdefault(SIZE, by)
        elif key in _FIELDS_OF_PRIORITY and value:
            unknown.setdefault(PRIORITY, by)
        elif is_unread or (key in _FIELDS_OF_PLACE and value):
            unknown.setdefault(WHERE, by)
    runtime_class = text(own.get("runtimeClassName"))
    if runtime_class:
        unknown[WHERE] = f"by the RuntimeClass {runtime_class}"
    affinity = child(own, "affinity")
    if any(child(affinity, kind, REQUIRED) for kind in ("podAffinity", "podAntiAffinity")):
        unknown.setdefault(BESIDE, by)
    return unknown


def _kinds_of(result: ImportResult, usual: Traits, groups: int) -> list[profile_pools.Kind]:
    """The kinds of users of one group, by what they choose.

    usual: the traits of who chooses nothing. groups: how many there are.
    """
    taken: set[str] = set()
    kinds: list[profile_pools.Kind] = []
    profiles = list(profile_pools.named_profiles(usual.get("profile_list")))
    for place, (name, profile) in enumerate(profiles, start=1):
        title = f"{name} (profile {place})" if name in taken else name
        most = max(1, profile_pools.MOST_KINDS // len(profiles) // groups)
        kinds += profile_pools.kinds_of(usual, profile, title, _as_made, most)
        taken.add(name)
    if not kinds and not result.is_binder:
        kinds.append((("the hub's own image",) if result.has_builds else (), usual))
    if result.has_builds:
        built = {**usual, "image": profile_pools.UNKNOWN_IMAGE}
        kinds.append(((profile_pools.UNLISTED,) if kinds else (), built))
    return kinds


def _as_made(traits: Traits) -> profile_pools.KindKey:
    """By which trial pods are told apart: each is named by every choice that changes it."""
    made = (_pod_of(traits), _namespace_labels(traits), _unknown_of(traits, {}))
    return profile_pools.KindKey(repr(made))


def _pod_of(traits: Traits) -> dict[str, Any]:
    sizes = own_sizes(traits)
    for part, key in (
        ("requests", "extra_resource_guarantees"),
        ("limits", "extra_resource_limits"),
    ):
        for name, amount in mapping(traits.get(key)).items():
            if amount is not None:
                sizes[part][name] = str(amount)
    sizes["requests"] = requested(sizes)
    image = text(traits.get("image")) or text(traits.get("image_spec"))
    notebook = {"name": "notebook", "image": image, "resources": sizes}
    node_affinity: dict[str, object] = {
        PREFERRED: entries_of(traits.get("node_affinity_preferred"))
    }
    required = entries_of(traits.get("node_affinity_required"))
    if required:
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
    """A list, or a mapping in the order of its keys; each has a name, and KubeSpawner takes either
    spelling of a key.
    """
    return [
        {
            "name": f"container-{place}",
            **{camel_case(str(key)): field for key, field in mapping(container).items()},
        }
        for place, container in enumerate(entries_of(value))
    ]


def _namespace(traits: Traits) -> str:
    template = text(traits.get("user_namespace_template")) or "{hubnamespace}-{username}"
    namespace = ""
    if traits.get("enable_user_namespaces") is True:
        namespace = re.sub(r"\{.*?\}", "user", template)
    return namespace or text(traits.get("namespace"))


def _namespace_labels(traits: Traits) -> Mapping[str, str]:
    own: Mapping[str, object] = {}
    if traits.get("enable_user_namespaces") is True:
        own = mapping(traits.get("user_namespace_labels"))
    return {
        **{key: str(value) for key, value in own.items()},
        NAMESPACE_NAME_LABEL: _namespace(traits),
    }
