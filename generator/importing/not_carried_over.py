"""Name what of a hub's values is about placement and has no place in Roost's: keys, and what Python
sets at run time.

Nothing is guessed of Python code; it is named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from generator.importing.hub_python import python_elsewhere, python_of, without_comments
from generator.importing.profile_filters import only_leaves_out
from generator.importing.result import Draft
from generator.importing.source import HubPath, HubSection, kind_of
from generator.importing.traits import camel_case, is_trait, nearest_trait
from generator.values.lookups import child, mapping, text
from roost_core.objects.pod import REQUIRED

# Traits of KubeSpawner that decide where a pod runs or how much it requests, as a regular
# expression.
SPAWNER_TRAITS_PATTERN: Final = (
    "component_label|cpu_guarantee|cpu_limit|enable_user_namespaces|extra_labels|extra_pod_config"
    "|extra_resource_guarantees|extra_resource_limits|group_overrides|image|image_spec|mem_guarantee|mem_limit"
    "|modify_pod_hook|namespace|node_affinity_preferred|node_affinity_required|node_selector|pod_affinity_preferred"
    "|pod_affinity_required|pod_anti_affinity_preferred|pod_anti_affinity_required|priority_class_name|profile_list"
    "|scheduler_name|tolerations|user_namespace_template"
)
# Keys of extra_pod_config that decide where a pod runs. KubeSpawner takes either spelling.
_PLACES: Final = re.compile(
    "affinity|node_affinity|nodeName|node_name|nodeSelector|node_selector|priorityClassName|priority_class_name"
    "|runtimeClassName|runtime_class_name|schedulerName|scheduler_name|tolerations"
    "|topologySpreadConstraints|topology_spread_constraints"
)
# In Python code, `image` and `namespace` alone mean too many things.
_SPAWNER_WORDS: Final = re.compile(
    rf"\b(?!image\b|namespace\b)(?:{SPAWNER_TRAITS_PATTERN}|\w*[Ss]pawner\.image)\b"
)
_CLASS: Final = "spawner_class"
_POD_CONFIG: Final[HubPath] = ("singleuser", "extraPodConfig")
_ROOST_KEYS_OF_TRAITS: Final = {
    "component_label": "podClasses.user.match.labels.component",
    "enable_user_namespaces": "podClasses.user.match.namespaceSelector: {}",
    "image": "singleuser.image",
    "image_spec": "singleuser.image",
    "profile_list": "singleuser.profileList",
    "node_selector": "placeholders[].nodeSelector",
    "tolerations": "placeholders[].tolerations",
    "node_affinity_required": "placeholders[].requiredNodeTerms",
    "cpu_guarantee": "singleuser.cpu.guarantee and placeholders[].resources",
    "mem_guarantee": "singleuser.memory.guarantee and placeholders[].resources",
    "scheduler_name": "replaceSchedulers",
}
_NO_COUNTERPART: Final = "Roost has no such setting"
POD_KEEPS_IT: Final = (
    "user pods bring it along and Roost leaves it there; placeholders can't carry it"
)
_OWN_DEPLOYMENT: Final = (
    "Roost's scheduler is a Deployment of its own, hardened, with its own ServiceAccount"
)
_OLD_KEY: Final = "a key of old charts; Roost's is scheduler.profiles.user.strategy"
_HOOK: Final = (
    "of the pods with which the hub's upgrade waits for images; Roost holds no upgrade up"
)

# What has no place in Roost's values, and why. Keys of zero-to-jupyterhub's chart only: BinderHub's
# are in builds.py. A longer path wins: ("scheduling",) is for any key below `scheduling` that isn't
# known here.
_UNMAPPED: Final[Mapping[HubPath, str]] = {
    ("scheduling",): _NO_COUNTERPART,
    ("scheduling", "userScheduler", "extraPodSpec"): _OWN_DEPLOYMENT,
    ("scheduling", "userScheduler", "revisionHistoryLimit"): _OWN_DEPLOYMENT,
    ("scheduling", "userScheduler", "serviceAccount"): _OWN_DEPLOYMENT,
    ("scheduling", "userPlaceholder", "extraPodSpec"): _NO_COUNTERPART,
    ("prePuller", "pause"): "Roost's is placeholder.image",
    ("prePuller", "hook", "nodeSelector"): _HOOK,
    ("prePuller", "hook", "tolerations"): _HOOK,
    ("prePuller", "hook", "resources"): _HOOK,
    ("singleuser", "extraPodAffinity"): POD_KEEPS_IT,
    ("singleuser", "extraPodAntiAffinity"): POD_KEEPS_IT,
    _POD_CONFIG: POD_KEEPS_IT,
    ("singleuser", "schedulerStrategy"): _OLD_KEY,
}

# The chart's own values of keys above: `helm get values --all` prints them, and they ask for
# nothing.
CHART_DEFAULTS: Final[Mapping[HubPath, object]] = {
    ("scheduling", "userScheduler", "serviceAccount", "create"): True,
    ("scheduling", "userScheduler", "logLevel"): 4,
}


def places_pods(trait: str, value: object) -> bool:
    """Whether a trait may decide about placement: extra_pod_config does by what it holds."""
    if trait == "extra_pod_config" and isinstance(value, Mapping):
        return any(_PLACES.fullmatch(str(key)) for key in value)
    return True


def no_trait_reason(name: str) -> str:
    """What KubeSpawner does with a name that is no trait of it, and which trait may be meant."""
    near = nearest_trait(name)
    meant = f"; {near} is one" if near else ""
    return f"KubeSpawner has no trait of this name and ignores it{meant}"


def runtime_class_reason(name: str) -> str:
    """What a RuntimeClass may do to users' pods, and what to set."""
    return (
        "a RuntimeClass may add overhead, a nodeSelector and tolerations to users' pods: set"
        " placeholder.defaults and placeholders[].resources as kubectl get runtimeclass"
        f" {name} -o yaml says"
    )


def _classes_of(trait: str) -> tuple[str, ...]:
    """The classes by which the chart sets a trait: KubeSpawner itself, but for a few traits."""
    return ("KubeSpawner", "Spawner") if trait == "group_overrides" else ("KubeSpawner",)


def _has_more(pod_config: object) -> bool:
    """Whether an extra_pod_config places pods by more than what is mapped of it."""
    placing = {
        camel_case(str(key)): value
        for key, value in mapping(pod_config).items()
        if value and _PLACES.fullmatch(str(key))
    }
    affinity = mapping(placing.pop("affinity", None))
    node_affinity = mapping(affinity.get("nodeAffinity"))
    more = {
        *(placing.keys() - {"nodeSelector", "tolerations", "schedulerName"}),
        *(affinity.keys() - {"nodeAffinity"}),
        *(node_affinity.keys() - {REQUIRED}),
    }
    return bool(more)


def _is_unmapped(trait: str, value: object, *, is_followed: bool) -> bool:
    """Whether Roost's values lack something that a trait of placement says.

    is_followed: its value was mapped.
    """
    if trait == "extra_pod_config" and _has_more(value):
        return True
    is_empty = value in (None, "", [], {})
    return bool(re.fullmatch(SPAWNER_TRAITS_PATTERN, trait)) and not is_empty and not is_followed


def note_run_time(draft: Draft, hub: HubSection, followed: Collection[str]) -> None:
    """Name what the hub sets by traits or in Python, where it is about placement. followed: traits
    that are mapped.
    """
    _note_traits(draft, hub, followed)
    spawner = hub.text("hub.config.JupyterHub.spawner_class")
    _note_spawner_class(draft, hub, spawner, "config", "JupyterHub", _CLASS)
    codes = python_of(hub)
    for at, code in codes:
        _note_code(draft, hub, at, code, followed)
    if codes:
        first, _ = codes[0]
        draft.notes.append(
            f"{hub.show(first[:2])} is Python that may change pods at run time: what it sets was"
            " read where it is written out."
        )
    _note_what_is_elsewhere(draft, hub)


def _note_what_is_elsewhere(draft: Draft, hub: HubSection) -> None:
    """Name what the hub gets from elsewhere, and what can't be read here."""
    elsewhere = python_elsewhere(hub)
    if elsewhere is not None:
        at, words = elsewhere
        reason = f"Python that isn't read ({words}): it may set anything of users' pods"
        draft.reject(hub, at, reason)
    for name, code in mapping(child(hub.data, "hub", "extraConfig")).items():
        if code is None:
            draft.notes.append(
                f"{hub.show(('hub', 'extraConfig', name))} is empty here: if Helm gets it by"
                " --set-file, give what Helm made of all."
            )
    secret = hub.text("hub.existingSecret")
    if secret:
        draft.notes.append(
            f"{hub.show('hub.existingSecret')}: if the Secret {secret} has a key values.yaml, the"
            " hub obeys it over this file, and it isn't read here."
        )


def _note_traits(draft: Draft, hub: HubSection, followed: Collection[str]) -> None:
    """Name what `hub.config` tells spawners about placement."""
    for class_name, traits in mapping(hub.get("hub.config", "any")).items():
        if not class_name.endswith("Spawner") or not isinstance(traits, Mapping):
            continue
        for trait, value in traits.items():
            at: HubPath = ("hub", "config", class_name, trait)
            if class_name == "KubeSpawner" and not is_trait(str(trait)):
                draft.reject(hub, at, no_trait_reason(str(trait)))
                continue
            name = text(child(value, "runtimeClassName") or child(value, "runtime_class_name"))
            if name:
                draft.reject(hub, at, runtime_class_reason(name))
                continue
            if not places_pods(trait, value):
                continue
            is_followed = trait in followed and class_name in _classes_of(trait)
            if _is_unmapped(trait, value, is_followed=is_followed):
                key = _ROOST_KEYS_OF_TRAITS.get(trait)
                reason = f"set {key} too, if it is the same for all users" if key else POD_KEEPS_IT
                draft.reject(hub, at, reason)


def _note_code(
    draft: Draft, hub: HubSection, at: HubPath, code: str, followed: Collection[str]
) -> None:
    """Name what a piece of the hub's Python speaks of and wasn't followed."""
    for spawner in re.findall(rf"\b{_CLASS}\s*=\s*[\"']?([\w.]+)", code):
        _note_spawner_class(draft, hub, spawner, *at[1:])
    spoken_of = sorted({*_SPAWNER_WORDS.findall(without_comments(code, followed))})
    words = [word for word in spoken_of if word.rpartition(".")[2] not in followed]
    if "profile_list" in words and only_leaves_out(code):
        words.remove("profile_list")
        draft.notes.append(
            f"{hub.show(at)} leaves profiles out for some users: those that the file lists stand."
        )
    if words:
        reason = (
            f"Python that speaks of {', '.join(words)}: it runs in the hub, and Roost doesn't guess"
            " what it does"
        )
        draft.reject(hub, at, reason)


def _note_spawner_class(draft: Draft, hub: HubSection, name: str | None, *below: str) -> None:
    if name and not name.lower().startswith("kubespawner"):
        reason = (
            f"a spawner class of the hub's own, {name}: its pods are placed if"
            " podClasses.user.match has their labels"
        )
        draft.reject(hub, ("hub", *below), reason)


def _group_of(leaf: HubPath) -> tuple[HubPath, str]:
    """The key that names an unread leaf in the report, perhaps with others, and why it has no
    place.
    """
    if leaf[:2] == _POD_CONFIG:
        return leaf[:3], POD_KEEPS_IT
    known = max((path for path in _UNMAPPED if leaf[: len(path)] == path), key=len)
    is_whole_section = len(known) == 1
    return leaf if is_whole_section else known, _UNMAPPED[known]


def note_unread(draft: Draft, hub: HubSection) -> None:
    """Name what is placement-related and was not mapped, each group once."""
    # Key -> why it has no place.
    groups: dict[HubPath, str] = {}
    # Of `scheduling`, every key is about placement. Elsewhere, only the keys of the table are.
    sections = dict.fromkeys(path[:1] if path[0] == "scheduling" else path for path in _UNMAPPED)
    for section in sections:
        for leaf, value in hub.unread(section):
            # Roost's containers are hardened by themselves.
            if CHART_DEFAULTS.get(leaf) == value or "containerSecurityContext" in leaf:
                continue
            if leaf[:2] == _POD_CONFIG:
                # What isn't about placement is nobody's loss, and some of it is mapped.
                if leaf[2] in ("runtimeClassName", "runtime_class_name"):
                    groups[leaf] = runtime_class_reason(str(value))
                    continue
                if not places_pods("extra_pod_config", dict.fromkeys(leaf[2:3])):
                    continue
            group, reason = _group_of(leaf)
            groups.setdefault(group, reason)
    for path, reason in groups.items():
        draft.reject(hub, path, reason)
    for path, (value, kind) in hub.misfits.items():
        article = "an" if kind == "integer" else "a"
        reason = f"expected {article} {kind}, found a {kind_of(value)}"
        if kind == "mapping":
            reason += "; nothing below it was read. Write its keys below it, or take it away"
        draft.reject(hub, path, reason)
