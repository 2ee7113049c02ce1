"""KubeSpawner's traits: which of them decide where users' pods go, how large they are and what they
run. One list, which all of the import reads.

Source: KubeSpawner 7.1 and JupyterHub 5.5, traits of KubeSpawner; `_sorted_dict_values`,
`recursive_update`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from generator.importing.source import UNKNOWN, HubPath
from generator.render.managed_images import CONTAINER_TRAITS
from generator.values.profile_overrides import by_key


class SetTrait(NamedTuple):
    """What the hub sets a trait to, beside the chart's keys."""

    value: object
    # The key below the hub's values that sets it; (): none does.
    at: HubPath


# By the trait's name.
SetTraits = Mapping[str, SetTrait]
# A trait that nobody sets.
UNSET: Final = SetTrait(None, ())

# To which nodes a user's pod may go.
NODES: Final = ("node_selector", "tolerations", "node_affinity_required")
# Traits that say beside which pods it must or mustn't be.
POD_AFFINITIES: Final = ("pod_affinity_required", "pod_anti_affinity_required")
# Traits that say how large it is.
SIZE_TRAITS: Final = (
    "cpu_guarantee",
    "cpu_limit",
    "mem_guarantee",
    "mem_limit",
    "extra_resource_guarantees",
    "extra_resource_limits",
)
# What placeholders are made by: where users go, and how large they are.
PLACEHOLDER_TRAITS: Final = (*NODES, *SIZE_TRAITS)
# What isn't known of a user's pod, if traits aren't.
PROFILES: Final = "profiles"
WHERE: Final = "where"
SIZE: Final = "size"
BESIDE: Final = "beside"
PRIORITY: Final = "priority"
# What isn't known of a pod -> the traits that decide it. A new group of traits is added here.
DECIDED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    WHERE: NODES,
    SIZE: (*SIZE_TRAITS, *CONTAINER_TRAITS),
    BESIDE: POD_AFFINITIES,
    PRIORITY: ("priority_class_name",),
}
# Traits that are followed in the hub's Python to where they are written out, and UNKNOWN where
# they aren't.
STRICT: Final = frozenset(trait for traits in DECIDED_BY.values() for trait in traits)
# Lists, each of which may be written as a mapping, too: its entries by name, in the order of names.
LISTS: Final = frozenset(
    {
        "tolerations",
        "node_affinity_preferred",
        "node_affinity_required",
        "pod_affinity_preferred",
        "pod_affinity_required",
        "pod_anti_affinity_preferred",
        "pod_anti_affinity_required",
        "init_containers",
        "extra_containers",
        "volumes",
        "volume_mounts",
        "profile_list",
    }
)
# Keys of extra_pod_config that the API server or the scheduler reads of a pod's place and size.
POD_KEYS: Final = (
    "affinity",
    "containers",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "overhead",
    "priority",
    "priorityClassName",
    "resources",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
)
# All that KubeSpawner can be told.
NAMES: Final = frozenset(
    [
        "additional_profile_form_template_paths",
        "after_pod_created_hook",
        "allow_privilege_escalation",
        "apply_user_options",
        "args",
        "auth_state_hook",
        "automount_service_account_token",
        "cmd",
        "common_labels",
        "component_label",
        "consecutive_failure_limit",
        "container_security_context",
        "cpu_guarantee",
        "cpu_limit",
        "debug",
        "default_url",
        "delete_grace_period",
        "delete_pvc",
        "delete_stopped_pods",
        "disable_user_config",
        "dns_name_template",
        "enable_user_namespaces",
        "env_keep",
        "environment",
        "events_enabled",
        "extra_annotations",
        "extra_container_config",
        "extra_containers",
        "extra_labels",
        "extra_pod_config",
        "extra_resource_guarantees",
        "extra_resource_limits",
        "fs_gid",
        "get_pod_url",
        "gid",
        "group_overrides",
        "handle_legacy_names",
        "http_timeout",
        "hub_connect_ip",
        "hub_connect_port",
        "hub_connect_url",
        "image",
        "image_pull_policy",
        "image_pull_secrets",
        "init_containers",
        "ip",
        "k8s_api_host",
        "k8s_api_request_retry_timeout",
        "k8s_api_request_timeout",
        "k8s_api_ssl_ca_cert",
        "k8s_api_threadpool_workers",
        "k8s_api_verify_ssl",
        "lifecycle_hooks",
        "mem_guarantee",
        "mem_limit",
        "modify_pod_hook",
        "namespace",
        "node_affinity_preferred",
        "node_affinity_required",
        "node_selector",
        "notebook_dir",
        "oauth_client_allowed_scopes",
        "oauth_roles",
        "options_form",
        "options_from_form",
        "pod_affinity_preferred",
        "pod_affinity_required",
        "pod_anti_affinity_preferred",
        "pod_anti_affinity_required",
        "pod_connect_ip",
        "pod_name_template",
        "pod_security_context",
        "poll_interval",
        "poll_jitter",
        "port",
        "post_stop_hook",
        "pre_spawn_hook",
        "priority_class_name",
        "privileged",
        "profile_form_template",
        "profile_list",
        "progress_ready_hook",
        "pvc_name_template",
        "remember_pvc_name",
        "scheduler_name",
        "secret_mount_path",
        "secret_name_template",
        "server_token_scopes",
        "service_account",
        "services_enabled",
        "slow_spawn_message",
        "slow_spawn_message_frequency",
        "slow_spawn_message_threshold",
        "slug_scheme",
        "ssl_alt_names",
        "ssl_alt_names_include_local",
        "start_timeout",
        "storage_access_modes",
        "storage_capacity",
        "storage_class",
        "storage_extra_annotations",
        "storage_extra_labels",
        "storage_pvc_ensure",
        "storage_selector",
        "supplemental_gids",
        "tolerations",
        "uid",
        "user_namespace_annotations",
        "user_namespace_labels",
        "user_namespace_template",
        "volume_mounts",
        "volumes",
        "working_dir",
    ]
)
# Names of older versions, which an override still takes.
OLD_NAMES: Final[Mapping[str, str]] = {
    "image_spec": "image",
    "singleuser_image_spec": "image",
    **{
        f"singleuser_{name}": name
        for name in [
            "extra_annotations",
            "extra_container_config",
            "extra_containers",
            "extra_labels",
            "extra_pod_config",
            "fs_gid",
            "image_pull_policy",
            "image_pull_secrets",
            "init_containers",
            "node_selector",
            "privileged",
            "service_account",
            "supplemental_gids",
            "uid",
            "working_dir",
        ]
    },
    **{
        f"user_storage_{name}": f"storage_{name}"
        for name in ("access_modes", "capacity", "class", "extra_labels", "pvc_ensure")
    },
}
# What people write for a trait that has another name: keys of the chart, of pods.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "affinity": "node_affinity_required",
    "cpu": "cpu_guarantee",
    "cpu_request": "cpu_guarantee",
    "extra_node_affinity": "node_affinity_required",
    "extra_pod_affinity": "pod_affinity_required",
    "extra_pod_anti_affinity": "pod_anti_affinity_required",
    "extra_resource": "extra_resource_limits",
    "extra_tolerations": "tolerations",
    "labels": "extra_labels",
    "mem_request": "mem_guarantee",
    "memory": "mem_guarantee",
    "memory_guarantee": "mem_guarantee",
    "memory_limit": "mem_limit",
    "node_affinity": "node_affinity_required",
    "pod_affinity": "pod_affinity_required",
    "pod_anti_affinity": "pod_anti_affinity_required",
    "priority_class": "priority_class_name",
    "resources": "mem_guarantee",
    "runtime_class_name": "extra_pod_config",
    "image_name": "image",
    "image_tag": "image",
    "env": "environment",
    "extra_env": "environment",
}
_CAMEL: Final = re.compile("(?<=[a-z0-9])([A-Z])")
_CLOSE: Final = 0.6


def known_of(traits: SetTraits, trait: str) -> SetTrait | None:
    """What a trait is set to, and where; None: it isn't, or only a run would show to what."""
    set_trait = traits.get(trait)
    if set_trait is None or not is_known(set_trait.value):
        return None
    return set_trait


def is_known(value: object) -> bool:
    """Whether no part of a value is UNKNOWN."""
    return UNKNOWN not in str(value)


def pod_config_of(traits: SetTraits) -> dict[str, object]:
    """The known entries of extra_pod_config, each of which takes the place of a pod's field."""
    pod_config = traits.get("extra_pod_config")
    if pod_config is None or not isinstance(pod_config.value, Mapping):
        return {}
    return {
        camel_case(str(key)): item
        for key, item in pod_config.value.items()
        if is_known(item) and item is not None
    }


def is_unfilled(value: object) -> bool:
    """Whether a text is a tool's template, `${image}` or `{{ image }}`. KubeSpawner's own have one
    brace: `{username}`.
    """
    return isinstance(value, str) and ("${" in value or "{{" in value)


def is_trait(name: str) -> bool:
    """Whether KubeSpawner knows a trait of this name."""
    return name in NAMES or name in OLD_NAMES


def nearest_trait(name: str) -> str:
    """The trait that a wrong name most likely means; "": none is near."""
    snake = snake_case(name)
    if snake in NAMES:
        return snake
    if snake in _OTHER_NAMES:
        return _OTHER_NAMES[snake]
    close = difflib.get_close_matches(snake, [*sorted(NAMES), *_OTHER_NAMES], 1, _CLOSE)
    return _OTHER_NAMES.get(close[0], close[0]) if close else ""


def snake_case(name: str) -> str:
    """A name as traits have it: nodeSelector is node_selector."""
    return _CAMEL.sub(r"_\1", name).replace("-", "_").lower()


def camel_case(name: str) -> str:
    """A name as pods have it: node_selector is nodeSelector."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def entries(value: object) -> list[object] | None:
    """What a list trait holds: a list, or a mapping of named entries in the order of their names.
    None: neither.
    """
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping) and all(
        item is None or isinstance(item, Mapping) for item in value.values()
    ):
        return [item for item in by_key(value) if item is not None]
    return None


def entries_of(value: object) -> list[object]:
    """`entries`; [] for what has none."""
    return entries(value) or []


def overridden(before: object, value: object) -> object:
    """What a trait is after an override: mappings are merged, null takes a key away, and anything
    else replaces what was there.
    """
    if before == UNKNOWN and isinstance(value, Mapping):
        return UNKNOWN
    if not isinstance(before, Mapping) or not isinstance(value, Mapping):
        return value
    merged = dict(before)
    for key, item in value.items():
        if item is None:
            merged.pop(key, None)
        elif isinstance(item, Mapping):
            old = merged.get(key)
            merged[key] = overridden(old if isinstance(old, Mapping) else {}, item)
        else:
            merged[key] = item
    return merged
