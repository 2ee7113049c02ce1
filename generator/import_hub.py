"""Map zero-to-jupyterhub's values, key by key.

What the file doesn't say has the chart's own default: a user scheduler, no placeholders, 1 GiB a user. What the hub
decides in Python at run time (`hub.config`, `hub.extraConfig`) is named, never guessed.
Source: zero-to-jupyterhub 4.4, templates/scheduling and templates/image-puller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from generator.import_quantities import cpu_quantity, memory_quantity, quantity, spawner_bytes
from generator.import_source import Charts, Path, Section, child, kind_of
from placement.labels import NODE_PURPOSE_LABEL

if TYPE_CHECKING:
    from generator.import_result import Draft

# Traits of KubeSpawner that decide where a pod lands or how much it asks for.
_SPAWNER_TRAITS: Final = (
    "component_label|cpu_guarantee|cpu_limit|enable_user_namespaces|extra_labels|extra_pod_config"
    "|extra_resource_guarantees|extra_resource_limits|group_overrides|image|image_spec|mem_guarantee|mem_limit"
    "|modify_pod_hook|namespace|node_affinity_preferred|node_affinity_required|node_selector|pod_affinity_preferred"
    "|pod_affinity_required|pod_anti_affinity_preferred|pod_anti_affinity_required|priority_class_name|profile_list"
    "|scheduler_name|tolerations|user_namespace_template"
)
# In Python code, `image` and `namespace` alone mean too many things.
_SPAWNER_WORDS: Final = re.compile(rf"\b(?!image\b|namespace\b)(?:{_SPAWNER_TRAITS}|Spawner\.image)\b")
_AT_RUN_TIME: Final = (
    "set in the hub at run time, where Roost can't read it; set {there} too if it is the same for all users"
)
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

# Beside the scheduler; where the scheduler is another's, they are Roost's core pods.
_CORE_PROGRAMS: Final = ("webhook", "controllers", "recorder")
_NO_COUNTERPART: Final = "Roost has no such setting"
_POD_KEEPS_IT: Final = "user pods bring it along and Roost leaves it there; placeholders can't carry it"
_OWN_DEPLOYMENT: Final = "Roost's scheduler is a Deployment of its own, hardened, with its own ServiceAccount"
_HOOK: Final = "of the pods with which the hub's upgrade waits for images; Roost holds no upgrade up"
_PULLER: Final = "Roost's puller is hardened already, and its pause is placeholder.image"
# What has no place in Roost's values, and why. A longer path wins; the first also names any key unknown to us below it.
_UNMAPPED: Final[Mapping[Path, str]] = {
    ("scheduling",): _NO_COUNTERPART,
    ("scheduling", "userScheduler", "containerSecurityContext"): _OWN_DEPLOYMENT,
    ("scheduling", "userScheduler", "extraPodSpec"): _OWN_DEPLOYMENT,
    ("scheduling", "userScheduler", "revisionHistoryLimit"): _OWN_DEPLOYMENT,
    ("scheduling", "userScheduler", "serviceAccount"): _OWN_DEPLOYMENT,
    ("scheduling", "userPlaceholder", "containerSecurityContext"): "Roost's placeholders are hardened already",
    ("scheduling", "userPlaceholder", "extraPodSpec"): _NO_COUNTERPART,
    ("prePuller", "containerSecurityContext"): _PULLER,
    ("prePuller", "pause"): _PULLER,
    ("prePuller", "hook", "nodeSelector"): _HOOK,
    ("prePuller", "hook", "tolerations"): _HOOK,
    ("prePuller", "hook", "resources"): _HOOK,
    ("singleuser", "extraPodAffinity"): _POD_KEEPS_IT,
    ("singleuser", "extraPodAntiAffinity"): _POD_KEEPS_IT,
    ("singleuser", "extraPodConfig"): _POD_KEEPS_IT,
    ("singleuser", "schedulerStrategy"): "a key of old charts; Roost's is scheduler.profiles.user.strategy",
}
_HARDENED: Final[Mapping[Path, object]] = {
    ("runAsNonRoot",): True,
    ("runAsUser",): 65534,
    ("runAsGroup",): 65534,
    ("allowPrivilegeEscalation",): False,
    ("capabilities", "drop"): ["ALL"],
    ("seccompProfile", "type"): "RuntimeDefault",
}
# The chart's own values of keys above: `helm get values --all` prints them, and they ask for nothing.
_CHART_DEFAULTS: Final[Mapping[Path, object]] = {
    ("scheduling", "userScheduler", "serviceAccount", "create"): True,
    ("scheduling", "userScheduler", "logLevel"): 4,
    **{
        ("scheduling", component, "containerSecurityContext", *key): value
        for component in ("userScheduler", "userPlaceholder")
        for key, value in _HARDENED.items()
    },
}
_CHART_PRIORITIES: Final[Mapping[str, int]] = {
    "defaultPriority": 0,
    "userPlaceholderPriority": -10,
    "imagePullerPriority": -5,
}
_CHART_PLUGINS: Final[Mapping[str, object]] = {
    "score": {
        "disabled": [
            {"name": "NodeResourcesBalancedAllocation"},
            {"name": "NodeAffinity"},
            {"name": "InterPodAffinity"},
            {"name": "NodeResourcesFit"},
            {"name": "ImageLocality"},
        ],
        "enabled": [
            {"name": "NodeAffinity", "weight": 14631},
            {"name": "InterPodAffinity", "weight": 1331},
            {"name": "NodeResourcesFit", "weight": 121},
            {"name": "ImageLocality", "weight": 11},
        ],
    }
}
_CHART_PLUGIN_CONFIG: Final[Sequence[object]] = [
    {
        "name": "NodeResourcesFit",
        "args": {
            "scoringStrategy": {
                "type": "MostAllocated",
                "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
            }
        },
    }
]


def map_hub(draft: Draft, charts: Charts) -> None:
    """Map all of the hub's values; what is left unread and placement-related is noted."""
    hub = charts.hub
    _map_scheduler(draft, hub)
    _map_core_pods(draft, hub)
    _map_priorities(draft, hub)
    _map_user_terms(draft, hub)
    user_requests = _map_users(draft, charts)
    _map_placeholders(draft, hub, user_requests)
    _map_images(draft, charts)
    _note_run_time(draft, hub)
    _note_unread(draft, hub)


def user_scheduler_name(hub: Section, release: str) -> str:
    """The schedulerName that zero-to-jupyterhub gives its user pods."""
    override = child(hub.data, "fullnameOverride")
    if "fullnameOverride" not in hub.data or isinstance(override, str):
        # By default, objects that have no namespace are prefixed with the release.
        return f"{override or release}-user-scheduler"
    name = child(hub.data, "nameOverride")
    name = name if isinstance(name, str) and name else "jupyterhub"
    return f"{release}-user-scheduler" if name in release else f"{release}-{name}-user-scheduler"


def _map_scheduler(draft: Draft, hub: Section) -> None:
    at = ("scheduling", "userScheduler")
    source = (*hub.path, *at)
    hub.get("fullnameOverride", "any")
    if not hub.switch("scheduling.userScheduler.enabled", default=True):
        draft.put(
            "scheduler.target",
            "none",
            (*source, "enabled"),
            "The user scheduler was off: pods keep the cluster's. Remove this line for Roost's, which packs users.",
        )
        hub.read.add(at)
        return
    name = user_scheduler_name(hub, draft.release)
    draft.put(
        "replaceSchedulers",
        [name],
        source,
        f"The hub's own scheduler, for pods that still name it. The hub's Helm release is taken to be {draft.release}.",
    )
    draft.switch_off.append(f"{hub.show((*at, 'enabled'))}: false")
    for key, target in (("replicas", "replicas"), ("logLevel", "logLevel")):
        value = hub.get(f"scheduling.userScheduler.{key}", "integer")
        if value is not None and value != _CHART_DEFAULTS.get((*at, key)):
            draft.put(f"scheduler.{target}", value, (*source, key))
    for key in ("nodeSelector", "labels", "annotations"):
        draft.put(f"scheduler.{key}", hub.mapping(f"scheduling.userScheduler.{key}"), (*source, key))
    resources = hub.mapping("scheduling.userScheduler.resources")
    found = kubernetes_resources(draft, hub, (*at, "resources"), resources)
    requests, limits = found.get("requests", {}), found.get("limits", {})
    for name, most in limits.items():
        # Kubernetes takes the limit for a request that isn't there; Roost's default request could be above it.
        requests.setdefault(name, most)
    draft.put_each("scheduler.resources.requests", requests, (*source, "resources"))
    draft.put_each("scheduler.resources.limits", limits, (*source, "resources"))
    _map_disruption(draft, hub)
    _map_scheduler_image(draft, hub)
    _map_plugins(draft, hub)


def _map_disruption(draft: Draft, hub: Section) -> None:
    at = ("scheduling", "userScheduler", "pdb")
    enabled = hub.switch("scheduling.userScheduler.pdb.enabled", default=True)
    draft.put("scheduler.pdb.enabled", enabled, (*hub.path, *at, "enabled"))
    most = hub.get("scheduling.userScheduler.pdb.maxUnavailable", "any")
    least = hub.get("scheduling.userScheduler.pdb.minAvailable", "any")
    if least is not None and enabled:
        draft.reject(hub, (*at, "minAvailable"), "Roost's budget has scheduler.pdb.maxUnavailable only")
    if most is not None:
        draft.put("scheduler.pdb.maxUnavailable", most, (*hub.path, *at, "maxUnavailable"))


def _map_scheduler_image(draft: Draft, hub: Section) -> None:
    at = ("scheduling", "userScheduler", "image")
    source = (*hub.path, *at)
    name = hub.text("scheduling.userScheduler.image.name")
    tag = hub.text("scheduling.userScheduler.image.tag")
    policy = hub.text("scheduling.userScheduler.image.pullPolicy")
    if name:
        draft.put("scheduler.image.name", name, (*source, "name"))
    if policy:
        draft.put("scheduler.image.pullPolicy", policy, (*source, "pullPolicy"))
    if tag:
        draft.reject(
            hub,
            (*at, "tag"),
            "Roost takes the kube-scheduler of the cluster's minor; scheduler.image.tag would pin one",
        )
    _map_pull_secrets(draft, hub, "scheduling.userScheduler.image.pullSecrets")


def _map_pull_secrets(draft: Draft, hub: Section, dotted: str) -> None:
    """Roost has one list for all of its pods."""
    names: list[object] = []
    for item in hub.items(dotted) or []:
        name = child(item, "name") if isinstance(item, Mapping) else item
        if isinstance(name, str) and name:
            names.append(name)
    known = next((piece.value for piece in draft.pieces if piece.path == ("imagePullSecrets",)), [])
    known = known if isinstance(known, list) else []
    draft.pieces = [piece for piece in draft.pieces if piece.path != ("imagePullSecrets",)]
    draft.put(
        "imagePullSecrets", [*known, *(name for name in names if name not in known)], (*hub.path, *dotted.split("."))
    )


def _map_plugins(draft: Draft, hub: Section) -> None:
    at = ("scheduling", "userScheduler")
    plugins = hub.get("scheduling.userScheduler.plugins", "mapping")
    config = hub.get("scheduling.userScheduler.pluginConfig", "list")
    # Helm merges mappings and replaces lists: what the file leaves out is the chart's.
    merged = overlay(_CHART_PLUGINS, plugins) if isinstance(plugins, Mapping) else _CHART_PLUGINS
    settings = config if isinstance(config, list) else _CHART_PLUGIN_CONFIG
    if merged == _CHART_PLUGINS and settings == _CHART_PLUGIN_CONFIG:
        return
    draft.put(
        "scheduler.profiles.user",
        {"plugins": merged, "pluginConfig": settings},
        (*hub.path, *at, "plugins" if plugins else "pluginConfig"),
        "The hub's own plugins, as they stand. Without this, users get the strategy `pack`.",
    )


def _map_core_pods(draft: Draft, hub: Section) -> None:
    """Roost's scheduler, webhook, controllers and recorder are core pods as zero-to-jupyterhub's are."""
    at = ("scheduling", "corePods")
    source = (*hub.path, *at)
    core = hub.items("scheduling.corePods.tolerations")
    own = hub.items("scheduling.userScheduler.tolerations") or []
    default = child(draft.defaults, "scheduler", "tolerations")
    default = default if isinstance(default, list) else []
    tolerations = core if core is not None else default
    draft.put("scheduler.tolerations", [*tolerations, *own], (*source, "tolerations"))
    purpose = _match_purpose(hub, "corePods")
    term = {"matchExpressions": [{"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["core"]}]}
    affinities: Mapping[str, Mapping[str, object]] = {
        # A list, which replaces Roost's own; null would not do in a parent chart.
        "ignore": {"preferredDuringSchedulingIgnoredDuringExecution": []},
        "require": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
        "prefer": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]},
    }
    if purpose is not None and purpose in affinities:
        for part in ("scheduler", *_CORE_PROGRAMS):
            source_key = (*source, "nodeAffinity", "matchNodePurpose")
            draft.put(f"{part}.affinity", {"nodeAffinity": dict(affinities[purpose])}, source_key)
    elif purpose is not None:
        draft.reject(hub, (*at, "nodeAffinity", "matchNodePurpose"), "expected ignore, prefer or require")
    for part in _CORE_PROGRAMS:
        _map_nodes(draft, hub, part, tolerations)


def _map_nodes(draft: Draft, hub: Section, target: str, core: Sequence[object]) -> None:
    """A program goes to the core pods' nodes; a selector comes with the tolerations that its nodes ask for."""
    own = {part: hub.items(f"{part}.tolerations") or [] for part in ("scheduling.userScheduler", "hub")}
    chosen = next((part for part in own if hub.mapping(f"{part}.nodeSelector")), None)
    if chosen is not None:
        key = (*hub.path, *chosen.split("."), "nodeSelector")
        selector = hub.mapping(f"{chosen}.nodeSelector")
        draft.put(f"{target}.nodeSelector", dict(selector), key, "Where the hub's core pods run.")
        source = (*hub.path, *chosen.split("."), "tolerations")
        draft.put(f"{target}.tolerations", [*core, *own[chosen]], source)
    else:
        draft.put(f"{target}.tolerations", core, (*hub.path, "scheduling", "corePods", "tolerations"))
    if own["hub"] and chosen != "hub" and target == "webhook":
        reason = "the hub's pod keeps it; webhook.tolerations takes it too, if Roost's webhook shall share those nodes"
        draft.reject(hub, ("hub", "tolerations"), reason)


def _map_priorities(draft: Draft, hub: Section) -> None:
    at = ("scheduling", "podPriority")
    source = (*hub.path, *at)
    if not hub.switch("scheduling.podPriority.enabled", default=False):
        # Nobody's pods had priorities; Roost's placeholders need theirs to give way, which changes no other pod.
        hub.read.add(at)
        return
    for key, target in (("defaultPriority", "user"), ("userPlaceholderPriority", "placeholder")):
        value = hub.get(f"scheduling.podPriority.{key}", "integer")
        if value is not None:
            draft.put(f"priorityClasses.{target}", value, (*source, key))
    _map_puller_priority(draft, hub, source)
    if hub.switch("scheduling.podPriority.globalDefault", default=False):
        draft.put("priorityClasses.globalDefault", True, (*source, "globalDefault"))
        draft.switch_off.append(
            f"{hub.show((*at, 'globalDefault'))}: false    # before installing Roost: a cluster has one default class"
        )
        return
    # Roost names no class in user pods, so users have the hub's class, or 0.
    priority = hub.get("scheduling.podPriority.defaultPriority", "integer") or 0
    verb = "can" if priority == 0 else f"must (its users have priority {priority} through it)"
    draft.notes.append(f"{hub.show((*at, 'enabled'))}: true {verb} stay; Roost's numbers are the same.")


def _map_puller_priority(draft: Draft, hub: Section, source: Path) -> None:
    """The chart lets a puller rank with users or above them; Roost's makes room among seats only."""

    def priority(key: str) -> int:
        given = hub.get(f"scheduling.podPriority.{key}", "integer")
        return given if isinstance(given, int) else _CHART_PRIORITIES[key]

    puller, user, seat = map(priority, ("imagePullerPriority", "defaultPriority", "userPlaceholderPriority"))
    comments = []
    if not seat < puller < user:
        comments.append(f"Between placeholders and users; {puller} is not.")
        puller = user - 1
    draft.put("priorityClasses.puller", puller, (*source, "imagePullerPriority"), *comments)


def _map_user_terms(draft: Draft, hub: Section) -> None:
    """The users' own node terms come with the pods; placeholders must carry the same, or they keep the wrong seats."""
    at = ("scheduling", "userPods", "nodeAffinity", "matchNodePurpose")
    purpose = _match_purpose(hub, "userPods")
    if purpose not in (None, "ignore", "prefer", "require"):
        draft.reject(hub, at, "expected ignore, prefer or require")
    if purpose == "ignore":
        why = "The hub's pods don't look for user nodes."
        draft.put("podClasses.user.preferredNodeTerms", [], (*hub.path, *at), why)
    preferred: list[object] = []
    if purpose in (None, "prefer"):  # the chart's default
        preferred.append({"weight": 100, "preference": _purpose_term()})
    for item in hub.items("singleuser.extraNodeAffinity.preferred") or []:
        if isinstance(item, Mapping):
            preferred.append(dict(item))
            weight = item.get("weight")
            if isinstance(weight, int) and weight >= 50:
                draft.notes.append(
                    f"{hub.show('singleuser.extraNodeAffinity.preferred')}: a term of weight {weight} is as strong "
                    "as Roost's own (100): among nodes that differ in it, it can decide alone."
                )
    draft.put(
        "podClasses.placeholder.preferredNodeTerms",
        preferred,
        (*hub.path, *at),
        "What the hub's users prefer, so that seats are kept where users go.",
    )


def _match_purpose(hub: Section, pods: str) -> str | None:
    """None: the chart's default, prefer. A null deletes that, and no term is left."""
    dotted = f"scheduling.{pods}.nodeAffinity.matchNodePurpose"
    return "ignore" if hub.is_deleted(dotted) else hub.text(dotted)


def _purpose_term() -> dict[str, object]:
    return {"matchExpressions": [{"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["user"]}]}


def _map_users(draft: Draft, charts: Charts) -> dict[str, dict[str, str]]:
    """A user's size: as the hub writes it for `roost validate`, and (returned) in Kubernetes quantities."""
    hub = charts.hub
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for kind in ("cpu", "memory"):
        for part, sizes in (("guarantee", requests), ("limit", limits)):
            dotted = f"singleuser.{kind}.{part}"
            value = hub.get(dotted, "any")
            has_default = (kind, part) == ("memory", "guarantee") and charts.binder is None
            if value is None and has_default and not hub.is_deleted(dotted):
                # The chart's default; BinderHub's chart takes it away.
                value = "1G"
            if value in (None, 0, "", "0"):
                continue
            size = cpu_quantity(value) if kind == "cpu" else _memory(value)
            if size is None:
                draft.reject(hub, tuple(dotted.split(".")), _size_reason(kind))
                continue
            sizes[kind] = size
            draft.put(dotted, _amount(value, size), (*hub.path, *dotted.split(".")))
    for part, sizes in (("guarantees", requests), ("limits", limits)):
        for name, value in hub.mapping(f"singleuser.extraResource.{part}").items():
            if quantity(value) is not None:
                sizes[name] = str(value)
    # Kubernetes takes a limit for the request of an extended resource.
    for name, value in limits.items():
        if "/" in name:
            requests.setdefault(name, value)
    for name, least in requests.items():
        if name in limits and (quantity(limits[name]) or 0) < (quantity(least) or 0):
            del limits[name]
    return {"requests": requests, "limits": limits}


def _amount(value: object, quantity: str) -> object:
    """`value` as zero-to-jupyterhub writes it; `quantity` says the same, should the hub have written it otherwise."""
    if not isinstance(value, str) or re.fullmatch(r"[0-9]+(\.[0-9]+)?[KMGT]?", value):
        return value
    return int(quantity[:-1]) / 1000 if quantity.endswith("m") else quantity.removesuffix("i")


def _memory(value: object) -> str | None:
    size_bytes = spawner_bytes(value)
    return None if size_bytes is None else memory_quantity(size_bytes)


def _size_reason(kind: str) -> str:
    return "expected a number of CPUs" if kind == "cpu" else "expected bytes, or a number with K, M, G or T"


def _map_placeholders(draft: Draft, hub: Section, user: Mapping[str, Mapping[str, str]]) -> None:
    at = ("scheduling", "userPlaceholder")
    source = (*hub.path, *at)
    replicas = hub.get("scheduling.userPlaceholder.replicas", "integer") or 0
    image = {key: hub.text(f"scheduling.userPlaceholder.image.{key}") for key in ("name", "tag", "pullPolicy")}
    for key, value in image.items():
        if value:
            draft.put(f"placeholder.image.{key}", value, (*source, "image", key))
    _map_pull_secrets(draft, hub, "scheduling.userPlaceholder.image.pullSecrets")
    given = hub.mapping("scheduling.userPlaceholder.resources")
    resources = kubernetes_resources(draft, hub, (*at, "resources"), given) if given else {}
    comments = ["Seats as zero-to-jupyterhub kept them: no more than there."]
    if resources:
        comments += _raise_to_user(resources, user)
    elif any(user.values()):
        resources = {part: dict(sizes) for part, sizes in user.items()}
        comments.append("One is as large as one user. KubeSpawner's K, M, G are powers of 1024, so 1G is 1Gi here.")
    resources = {part: sizes for part, sizes in resources.items() if sizes}
    entry: dict[str, object] = {"name": "default", "replicas": replicas}
    if resources:
        entry["resources"] = resources
    _map_placeholder_nodes(draft, hub)
    if not hub.switch("scheduling.userPlaceholder.enabled", default=True):
        draft.put("placeholders", [], (*source, "enabled"), "Placeholders were off.")
        return
    for key in ("labels", "annotations"):
        own = dict(hub.mapping(f"scheduling.userPlaceholder.{key}"))
        draft.put(f"placeholder.defaults.{key}", own, (*source, key))
    draft.put("placeholders", [entry], source, *comments)
    if replicas != 0:
        draft.switch_off.append(f"{hub.show((*at, 'replicas'))}: 0")


def _map_placeholder_nodes(draft: Draft, hub: Section) -> None:
    """Placeholders may go where users may; as defaults, which further sets inherit."""
    why = ("Where users may go, for every set of placeholders.",)
    at = (*hub.path, "scheduling", "userPods", "tolerations")
    tolerations = hub.items("scheduling.userPods.tolerations")
    if tolerations is None:
        default = child(draft.defaults, "placeholder", "defaults", "tolerations")
        tolerations = default if isinstance(default, list) else []
    tolerations = [*tolerations, *(hub.items("singleuser.extraTolerations") or [])]
    draft.put("placeholder.defaults.tolerations", tolerations, at, *why)
    selector = dict(hub.mapping("singleuser.nodeSelector"))
    draft.put("placeholder.defaults.nodeSelector", selector, (*hub.path, "singleuser", "nodeSelector"))
    terms = _required_terms(draft, hub)
    draft.put("placeholder.defaults.requiredNodeTerms", terms, (*hub.path, "scheduling", "userPods", "nodeAffinity"))


def _required_terms(draft: Draft, hub: Section) -> list[object]:
    """As the users' pods have them. The chart adds node-purpose as one more term, and terms are ORed."""
    terms: list[object] = []
    if _match_purpose(hub, "userPods") == "require":
        terms.append(_purpose_term())
    own = [
        item for item in hub.items("singleuser.extraNodeAffinity.required") or [] if isinstance(item, Mapping) and item
    ]
    if terms and own:
        draft.notes.append(
            f"{hub.show('singleuser.extraNodeAffinity.required')} and matchNodePurpose: require are ORed by "
            "Kubernetes: users may go to nodes that meet either. Placeholders were given the same terms."
        )
    return [*terms, *own]


def _raise_to_user(resources: dict[str, dict[str, str]], user: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Make a given seat at least one user's size; say what was raised."""
    requests, limits = resources.setdefault("requests", {}), resources.setdefault("limits", {})
    for name, value in limits.items():
        requests.setdefault(name, value)
    raised: list[str] = []
    for name, least in user["requests"].items():
        if (quantity(requests.get(name, 0)) or 0) < (quantity(least) or 0):
            if name in requests:
                raised.append(
                    f"{name} raised from {requests[name]} to {least}, what one user asks for (K, M, G: powers of 1024)."
                )
            requests[name] = least
        if name in limits and (quantity(limits[name]) or 0) < (quantity(requests[name]) or 0):
            limits[name] = requests[name]
    return raised


def kubernetes_resources(
    draft: Draft, section: Section, at: Path, resources: Mapping[str, object]
) -> dict[str, dict[str, str]]:
    """A pod's resources with every quantity as text; what is no quantity is noted and left out."""
    found: dict[str, dict[str, str]] = {}
    for part in ("requests", "limits"):
        quantities = resources.get(part)
        if not isinstance(quantities, Mapping):
            continue
        found[part] = {}
        for name, value in quantities.items():
            amount = quantity(value)
            if amount is None or amount < 0:
                if value is not None:
                    draft.reject(section, (*at, part, name), "expected a Kubernetes quantity")
                continue
            is_text = isinstance(value, str)
            found[part][name] = (
                str(value).strip() if is_text else cpu_quantity(value) or "0" if name == "cpu" else f"{int(amount)}"
            )
    return found


def _map_images(draft: Draft, charts: Charts) -> None:
    hub = charts.hub
    image = {"name": hub.text("singleuser.image.name"), "tag": _tag(hub)}
    for key, value in image.items():
        if value:
            draft.put(f"singleuser.image.{key}", value, (*hub.path, "singleuser", "image", key))
    if image["name"] is None and charts.binder is None:
        draft.notes.append(
            f"{hub.show('singleuser.image.name')} is not in this file: the image gate holds users back for images "
            "that singleuser.image, singleuser.profileList and prePuller.extraImages name, for no others."
        )
    profiles = hub.get("singleuser.profileList", "any")
    if isinstance(profiles, list):
        kept = [profile for profile in map(profile_images, profiles) if profile]
        draft.put(
            "singleuser.profileList",
            kept,
            (*hub.path, "singleuser", "profileList"),
            "Profiles that name an image or nodes: the puller brings the one to the other.",
        )
        _note_profiles(draft, hub, profiles)
    elif profiles is not None:
        draft.reject(hub, ("singleuser", "profileList"), "expected a list of profiles")
    selector = hub.mapping("singleuser.nodeSelector")
    draft.put("singleuser.nodeSelector", dict(selector), (*hub.path, "singleuser", "nodeSelector"))
    _map_pullers(draft, charts)


def _tag(hub: Section) -> str | None:
    """A tag is text to the chart; an unquoted number (2024) is what an older chart took."""
    tag = hub.get("singleuser.image.tag", "any")
    if isinstance(tag, int) and not isinstance(tag, bool):
        return str(tag)
    if isinstance(tag, str):
        return tag or None
    if tag is not None:
        hub.misfits[("singleuser", "image", "tag")] = (tag, "string")
    return None


def profile_images(profile: object) -> dict[str, object]:
    """What Roost reads of a profile: its names, images and node selectors, also of its choices. {} when it has none."""
    found: dict[str, object] = _override(profile)
    options: dict[str, object] = {}
    option_list = child(profile, "profile_options")
    for option_name, option in option_list.items() if isinstance(option_list, Mapping) else ():
        choice_list = child(option, "choices")
        choices = {
            name: _override(choice)
            for name, choice in (choice_list.items() if isinstance(choice_list, Mapping) else ())
        }
        if any(choices.values()):
            options[option_name] = {"choices": choices}
            if child(option, "unlisted_choice", "enabled") is True:
                unlisted = child(option, "unlisted_choice")
                options[option_name] = {"choices": choices, "unlisted_choice": {"enabled": True, **_override(unlisted)}}
    if options:
        found["profile_options"] = options
    if not found:
        return {}
    names = {key: child(profile, key) for key in ("display_name", "slug")}
    return {**{key: name for key, name in names.items() if isinstance(name, str)}, **found}


def _override(holder: object) -> dict[str, object]:
    """`kubespawner_override` as far as it names an image or nodes; {} when it names neither."""
    found: dict[str, object] = {}
    for key in ("image", "image_spec"):
        image = child(holder, "kubespawner_override", key)
        if isinstance(image, str) and image:
            found.setdefault("image", image)
    selector = child(holder, "kubespawner_override", "node_selector")
    if isinstance(selector, Mapping) and selector:
        found["node_selector"] = dict(selector)
    return {"kubespawner_override": found} if found else {}


def _note_profiles(draft: Draft, hub: Section, profiles: Sequence[object]) -> None:
    """Profiles may ask for nodes and sizes that the one set of placeholders does not stand for."""
    steering = {
        "node_selector",
        "tolerations",
        "node_affinity_required",
        "extra_resource_limits",
        "mem_guarantee",
        "cpu_guarantee",
    }
    count = sum(bool(steering & set(override)) for profile in profiles for override in _overrides(profile))
    if count:
        draft.notes.append(
            f"{hub.show('singleuser.profileList')}: {count} profiles or choices ask for nodes or sizes of their own. "
            "Their pods keep them; the imported placeholders stand for the default user. Add one entry of "
            "`placeholders` for each node pool that needs spare seats."
        )
    if any(child(option, "unlisted_choice", "enabled") is True for profile in profiles for option in _options(profile)):
        draft.notes.append(
            f"{hub.show('singleuser.profileList')}: users may type an image (unlisted_choice); no puller knows it, so "
            "the gate doesn't hold them back."
        )


def _options(profile: object) -> Iterator[object]:
    options = child(profile, "profile_options")
    yield from options.values() if isinstance(options, Mapping) else ()


def _overrides(profile: object) -> Iterator[Mapping[str, object]]:
    choices = [child(option, "choices") for option in _options(profile)]
    for holder in (profile, *(choice for group in choices if isinstance(group, Mapping) for choice in group.values())):
        override = child(holder, "kubespawner_override")
        if isinstance(override, Mapping):
            yield override


def _map_pullers(draft: Draft, charts: Charts) -> None:
    hub = charts.hub
    pulls_profiles = hub.switch("prePuller.pullProfileListImages", default=True)
    draft.put("prePuller.pullProfileListImages", pulls_profiles, (*hub.path, "prePuller", "pullProfileListImages"))
    for name, image in hub.mapping("prePuller.extraImages").items():
        parts = {key: child(image, key) for key in ("name", "tag")}
        at = ("prePuller", "extraImages", name)
        if all(isinstance(part, str) and part for part in parts.values()):
            draft.put_each("prePuller.extraImages", {name: parts}, (*hub.path, *at))
        elif image is not None:
            draft.reject(hub, at, "expected name and tag")
    # BinderHub's chart has both pullers off: images are built on demand.
    default = charts.binder is None
    hook = hub.switch("prePuller.hook.enabled", default=default)
    continuous = hub.switch("prePuller.continuous.enabled", default=default)
    if not hook and not continuous:
        why = "Both pullers were off: no node gets images ahead of users, so there is nothing to wait for."
        draft.put("imageGate.mode", "off", (*hub.path, "prePuller"), why)
        draft.put("prePuller.enabled", False, (*hub.path, "prePuller"))
        return
    _map_puller_pods(draft, hub)
    if continuous:
        draft.switch_off.append(f"{hub.show('prePuller.continuous.enabled')}: false    # Roost's puller does this")
    if hook:
        draft.notes.append(
            f"{hub.show('prePuller.hook.enabled')} can stay: it makes an upgrade of the hub wait until nodes hold the "
            "new images. Roost's puller brings them too, and holds no upgrade up. To keep both of the hub's pullers "
            "instead, set Roost's prePuller.enabled: false and imageGate.pullerPods: zeroToJupyterHub."
        )


def _map_puller_pods(draft: Draft, hub: Section) -> None:
    """The chart's pullers go where users go, and where `extraTolerations` lets them."""
    users = hub.items("scheduling.userPods.tolerations")
    default = child(draft.defaults, "prePuller", "tolerations")
    tolerations = [*(users if users is not None else default if isinstance(default, list) else [])]
    tolerations += hub.items("singleuser.extraTolerations") or []
    tolerations += hub.items("prePuller.extraTolerations") or []
    draft.put("prePuller.tolerations", tolerations, (*hub.path, "prePuller", "extraTolerations"))
    for key in ("labels", "annotations"):
        draft.put(f"prePuller.{key}", dict(hub.mapping(f"prePuller.{key}")), (*hub.path, "prePuller", key))
    resources = kubernetes_resources(draft, hub, ("prePuller", "resources"), hub.mapping("prePuller.resources"))
    if any(resources.values()):
        for part, sizes in resources.items():
            draft.put(f"prePuller.resources.{part}", sizes, (*hub.path, "prePuller", "resources"))


def _note_run_time(draft: Draft, hub: Section) -> None:
    config = hub.get("hub.config", "any")
    for class_name, traits in config.items() if isinstance(config, Mapping) else ():
        if not class_name.endswith("Spawner") or not isinstance(traits, Mapping):
            continue
        for trait in traits:
            if re.fullmatch(_SPAWNER_TRAITS, trait) and traits[trait] is not None:
                key = _ROOST_KEYS_OF_TRAITS.get(trait)
                reason = (
                    _AT_RUN_TIME.format(there=key) if key else "set in the hub at run time, where Roost can't read it"
                )
                draft.reject(hub, ("hub", "config", class_name, trait), reason)
    extra = hub.get("hub.extraConfig", "any")
    entries = dict(extra) if isinstance(extra, Mapping) else {"": extra} if isinstance(extra, str) and extra else {}
    for name, code in entries.items():
        words = sorted(set(_SPAWNER_WORDS.findall(code))) if isinstance(code, str) else []
        if words:
            at = ("hub", "extraConfig", name) if name else ("hub", "extraConfig")
            draft.reject(
                hub,
                at,
                f"Python that speaks of {', '.join(words)}: it runs in the hub, and Roost doesn't guess what it does",
            )
    if entries:
        draft.notes.append(
            f"{hub.show('hub.extraConfig')} is Python that may change pods at run time; it was not read."
        )


def _note_unread(draft: Draft, hub: Section) -> None:
    """Name what is placement-related and was not mapped, each group once."""
    groups: dict[Path, str] = {}
    for top in dict.fromkeys(path[:1] if path[0] == "scheduling" else path for path in _UNMAPPED):
        for leaf, value in hub.unread(top):
            if _CHART_DEFAULTS.get(leaf) == value:
                continue
            known = max((path for path in _UNMAPPED if leaf[: len(path)] == path), key=len)
            groups.setdefault(known if len(known) > 1 else leaf, _UNMAPPED[known])
    for path, reason in groups.items():
        draft.reject(hub, path, reason)
    for path, (value, kind) in hub.misfits.items():
        draft.reject(hub, path, f"expected {'an' if kind == 'integer' else 'a'} {kind}, found a {kind_of(value)}")


def overlay(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Helm's merge: mappings merge, anything else replaces, null deletes."""
    merged: dict[str, object] = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = overlay(below, value)
        else:
            merged[key] = value
    return merged
