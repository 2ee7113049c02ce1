"""Map zero-to-jupyterhub's values, key by key.

What the file doesn't say has the chart's own default: a user scheduler, no placeholders, 1 GiB a
user. What the hub decides in Python at run time (`hub.config`, `hub.extraConfig`) is named, never
guessed. Source: zero-to-jupyterhub 4.4, templates/scheduling and templates/image-puller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from generator.importing.chart_resources import kubernetes_resources
from generator.importing.class_match import map_class_match
from generator.importing.culling import note_culling
from generator.importing.hub_traits import traits_of
from generator.importing.images import map_images
from generator.importing.not_carried_over import CHART_DEFAULTS, note_run_time, note_unread
from generator.importing.object_names import is_of_an_old_chart, object_name
from generator.importing.pull_secrets import map_pull_secrets
from generator.importing.result import Draft
from generator.importing.seating import has_seating, map_seating
from generator.importing.server_starts import map_limits, note_cpu
from generator.importing.source import Charts, HubPath, HubSection
from generator.importing.users import map_placeholders, map_user_terms, map_users, match_purpose
from generator.values.lookups import child, listing
from generator.values.merge import coalesce
from roost_core.objects.requests import requested
from roost_core.placement.labels import NODE_PURPOSE_LABEL, USER_CLASS

# Roost's core pods but the scheduler: with `scheduler.target: none`, Roost has no scheduler.
_CORE_PROGRAMS: Final = ("webhook", "controllers", "recorder")

_CHART_PRIORITIES: Final = {
    "defaultPriority": 0,
    "userPlaceholderPriority": -10,
    "imagePullerPriority": -5,
}

_CHART_SCORES: Final = {
    "NodeAffinity": 14631,
    "InterPodAffinity": 1331,
    "NodeResourcesFit": 121,
    "ImageLocality": 11,
}
_CHART_PLUGINS: Final[Mapping[str, object]] = {
    "score": {
        "disabled": [
            {"name": name} for name in ("NodeResourcesBalancedAllocation", *_CHART_SCORES)
        ],
        "enabled": [{"name": name, "weight": weight} for name, weight in _CHART_SCORES.items()],
    }
}
_CHART_RESOURCES: Final = [{"name": name, "weight": 1} for name in ("cpu", "memory")]
_CHART_STRATEGY: Final = {"type": "MostAllocated", "resources": _CHART_RESOURCES}
_CHART_PLUGIN_CONFIG: Final = [
    {"name": "NodeResourcesFit", "args": {"scoringStrategy": _CHART_STRATEGY}}
]
_NO_SPREADING: Final = {
    "name": "PodTopologySpread",
    "args": {"defaultingType": "List", "defaultConstraints": []},
}


def map_hub(draft: Draft, charts: Charts) -> None:
    """Map all of the hub's values; what is left unread and placement-related is noted."""
    hub = charts.hub
    _map_scheduler(draft, hub)
    _map_core_pods(draft, hub)
    _map_priorities(draft, hub)
    traits = traits_of(hub).traits
    map_limits(draft, hub, traits)
    note_culling(draft, hub)
    map_seating(draft, hub)
    note_cpu(draft, hub)
    map_user_terms(draft, hub)
    sizes = map_users(draft, charts, traits)
    profiles = hub.get("singleuser.profileList", "any")
    if "profile_list" in traits:
        # The hub's Python has the last word.
        profiles = traits["profile_list"].value
    map_placeholders(draft, hub, sizes, profiles, traits)
    map_images(draft, charts, traits)
    unmet, followed = map_class_match(draft, hub)
    draft.places_users_once = unmet
    note_run_time(draft, hub, followed)
    note_unread(draft, hub)


def _map_scheduler(draft: Draft, hub: HubSection) -> None:
    at = ("scheduling", "userScheduler")
    source = (*hub.path, *at)
    # `object_name` reads it, and no Roost value follows from it.
    hub.tick_off("fullnameOverride")
    if not hub.switch("scheduling.userScheduler.enabled", default=True):
        _map_absent_scheduler(draft, (*source, "enabled"))
        hub.tick_off("scheduling.userScheduler")
        return
    name = object_name(hub, draft.release, "user-scheduler", in_namespace=False)
    why = (
        "The hub's own scheduler, for pods that still name it. The hub's Helm release is taken to"
        f" be {draft.release}."
    )
    draft.put("replaceSchedulers", [name], source, why)
    draft.replace_part("scheduler", f"{hub.show((*at, 'enabled'))}: false")
    for key in ("replicas", "logLevel"):
        value = hub.get(f"scheduling.userScheduler.{key}", "integer")
        if value is not None and value != CHART_DEFAULTS.get((*at, key)):
            draft.put(f"scheduler.{key}", value, (*source, key))
    for key in ("nodeSelector", "labels", "annotations"):
        entries = hub.mapping(f"scheduling.userScheduler.{key}")
        draft.put(f"scheduler.{key}", entries, (*source, key))
    resources = hub.mapping("scheduling.userScheduler.resources")
    amounts = kubernetes_resources(draft, hub, (*at, "resources"), resources)
    # Roost's default request could be above a limit that stands alone.
    draft.put_each("scheduler.resources.requests", requested(amounts), (*source, "resources"))
    draft.put_each("scheduler.resources.limits", amounts.get("limits", {}), (*source, "resources"))
    _map_disruption(draft, hub)
    _map_scheduler_image(draft, hub)
    _map_plugins(draft, hub)


def _map_absent_scheduler(draft: Draft, source: HubPath) -> None:
    """Leave users to the cluster's scheduler, as in the hub. source: the switch."""
    draft.put(
        "scheduler.target",
        "none",
        source,
        "The user scheduler was off: pods keep the cluster's. For Roost's, which packs users,"
        " remove this line and the nulls of join and warm below.",
    )
    why = "The hub's users didn't gather on few nodes, so they don't here."
    draft.put("podClasses.user.join.user", None, source, why)
    draft.put("podClasses.user.warm", None, source)


def _map_disruption(draft: Draft, hub: HubSection) -> None:
    at = ("scheduling", "userScheduler", "pdb")
    enabled = hub.switch("scheduling.userScheduler.pdb.enabled", default=True)
    draft.put("scheduler.pdb.enabled", enabled, (*hub.path, *at, "enabled"))
    most = hub.get("scheduling.userScheduler.pdb.maxUnavailable", "any")
    least = hub.get("scheduling.userScheduler.pdb.minAvailable", "any")
    reason = "Roost's budget lets one pod go at a time"
    if least is not None and enabled:
        draft.reject(hub, (*at, "minAvailable"), reason)
    if most not in (None, 1) and enabled:
        draft.reject(hub, (*at, "maxUnavailable"), reason)


def _map_scheduler_image(draft: Draft, hub: HubSection) -> None:
    at = ("scheduling", "userScheduler", "image")
    source = (*hub.path, *at)
    name = hub.text("scheduling.userScheduler.image.name")
    tag = hub.text("scheduling.userScheduler.image.tag")
    policy = hub.text("scheduling.userScheduler.image.pullPolicy")
    if name and not is_of_an_old_chart(name):
        draft.put("scheduler.image.name", name, (*source, "name"))
    if policy:
        reason = "image.pullPolicy holds for every image that Roost runs"
        draft.reject(hub, (*at, "pullPolicy"), reason)
    if tag:
        reason = (
            "Roost takes the kube-scheduler of the cluster's minor; scheduler.image.tag would"
            " pin one"
        )
        draft.reject(hub, (*at, "tag"), reason)
    map_pull_secrets(draft, hub, "scheduling.userScheduler.image.pullSecrets")


def _map_plugins(draft: Draft, hub: HubSection) -> None:
    at = ("scheduling", "userScheduler")
    plugins = hub.get("scheduling.userScheduler.plugins", "mapping")
    config = hub.get("scheduling.userScheduler.pluginConfig", "list")
    # Helm merges mappings, as `plugins`, and replaces lists, as `pluginConfig`: what the file
    # leaves out is the chart's.
    merged = coalesce(plugins, _CHART_PLUGINS) if isinstance(plugins, Mapping) else _CHART_PLUGINS
    settings = config if isinstance(config, list) else _CHART_PLUGIN_CONFIG
    if merged == _CHART_PLUGINS and settings == _CHART_PLUGIN_CONFIG:
        return
    # PodTopologySpread's default works against packing. So Roost takes it away, unless the hub says
    # how to spread, or has no settings.
    keeps_default_spreading = bool(settings) and all(
        child(plugin, "name") != "PodTopologySpread" for plugin in settings
    )
    changed = "unchanged"
    if keeps_default_spreading:
        settings = [*settings, _NO_SPREADING]
        changed = "unchanged; default spreading, which works against packing, is off"
    draft.put(
        "scheduler.profiles.user",
        {"plugins": merged, "pluginConfig": settings},
        (*hub.path, *at, "plugins" if plugins else "pluginConfig"),
        f"The hub's own plugins, {changed}.",
        "Without this, users get the strategy `pack`.",
    )


def _map_core_pods(draft: Draft, hub: HubSection) -> None:
    """Roost's programs are core pods as zero-to-jupyterhub's are."""
    at = ("scheduling", "corePods")
    source = (*hub.path, *at)
    tolerations = hub.items("scheduling.corePods.tolerations")
    if tolerations is None:
        tolerations = listing(child(draft.defaults, "corePods", "tolerations"))
    draft.put("corePods.tolerations", tolerations, (*source, "tolerations"))
    of_scheduler = hub.items("scheduling.userScheduler.tolerations")
    if of_scheduler:
        of_scheduler_key = (*hub.path, "scheduling", "userScheduler", "tolerations")
        positions = (*range(len(tolerations)), *range(len(of_scheduler)))
        both = [*tolerations, *of_scheduler]
        draft.put("scheduler.tolerations", both, of_scheduler_key, positions=positions)
    _map_core_affinity(draft, hub)
    _map_nodes(draft, hub, tolerations)


def _map_core_affinity(draft: Draft, hub: HubSection) -> None:
    """Whether core pods go to nodes that are marked for them."""
    at = ("scheduling", "corePods", "nodeAffinity", "matchNodePurpose")
    purpose = match_purpose(hub, "corePods")
    if purpose is None:
        return
    term = {"matchExpressions": [{"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["core"]}]}
    affinities: Mapping[str, Mapping[str, object]] = {
        # A list, which replaces Roost's own; null would not do in a parent chart.
        "ignore": {"preferredDuringSchedulingIgnoredDuringExecution": []},
        "require": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        },
        "prefer": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]
        },
    }
    if purpose in affinities:
        affinity = {"nodeAffinity": dict(affinities[purpose])}
        draft.put("corePods.affinity", affinity, (*hub.path, *at))
    else:
        draft.reject(hub, at, "expected ignore, prefer or require")


def _map_nodes(draft: Draft, hub: HubSection, core_tolerations: Sequence[object]) -> None:
    """Roost's programs run on the nodes that the hub's user scheduler selects, else on those of the
    hub's own pod. A selector is kept with the tolerations that its nodes need.
    """
    pods = ("scheduling.userScheduler", "hub")
    own_tolerations = {pod: hub.items(f"{pod}.tolerations") or [] for pod in pods}
    with_selector = [pod for pod in pods if hub.mapping(f"{pod}.nodeSelector")]
    chosen = with_selector[0] if with_selector else None
    if chosen is not None:
        selector = dict(hub.mapping(f"{chosen}.nodeSelector"))
        tolerations = [*core_tolerations, *own_tolerations[chosen]]
        source = (*hub.path, *chosen.split("."))
        why = "Where the hub's core pods run."
        programs = [*_CORE_PROGRAMS, "seating"] if has_seating(hub) else _CORE_PROGRAMS
        for program in programs:
            draft.put(f"{program}.nodeSelector", selector, (*source, "nodeSelector"), why)
            draft.put(f"{program}.tolerations", tolerations, (*source, "tolerations"))
    if own_tolerations["hub"] and chosen != "hub":
        reason = (
            "the hub's pod keeps it; webhook.tolerations takes it too, if Roost's webhook shall"
            " share those nodes"
        )
        draft.reject(hub, ("hub", "tolerations"), reason)


def _map_priorities(draft: Draft, hub: HubSection) -> None:
    at = ("scheduling", "podPriority")
    source = (*hub.path, *at)
    if not hub.switch("scheduling.podPriority.enabled", default=False):
        # Nobody's pods had priorities; Roost's placeholders need theirs to give way, which changes
        # no other pod.
        hub.tick_off("scheduling.podPriority")
        return
    for key, target in (
        ("defaultPriority", USER_CLASS),
        ("userPlaceholderPriority", "placeholder"),
    ):
        value = hub.get(f"scheduling.podPriority.{key}", "integer")
        if value is not None:
            draft.put(f"priorityClasses.{target}", value, (*source, key))
    _map_puller_priority(draft, hub, source)
    if hub.switch("scheduling.podPriority.globalDefault", default=False):
        draft.put("priorityClasses.globalDefault", True, (*source, "globalDefault"))
        draft.switch_off.append(
            f"{hub.show((*at, 'globalDefault'))}: false    # before installing Roost: a cluster has"
            " one default class"
        )
        return
    # Roost names no class in user pods, so users have the hub's class, or 0.
    priority = hub.get("scheduling.podPriority.defaultPriority", "integer") or 0
    verb = "can" if priority == 0 else f"must (its users have priority {priority} through it)"
    draft.notes.append(
        f"{hub.show((*at, 'enabled'))}: true {verb} stay; Roost's numbers are the same."
    )


def _map_puller_priority(draft: Draft, hub: HubSection, source: HubPath) -> None:
    """The chart's puller can have the users' priority or a higher one; Roost's displaces
    placeholders only.
    """

    def priority(key: str) -> int:
        own = hub.get(f"scheduling.podPriority.{key}", "integer")
        return own if isinstance(own, int) else _CHART_PRIORITIES[key]

    puller = priority("imagePullerPriority")
    user = priority("defaultPriority")
    placeholder = priority("userPlaceholderPriority")
    comments = []
    if not placeholder < puller < user:
        comments.append(f"Between placeholders and users; {puller} is not.")
        puller = user - 1
    draft.put("priorityClasses.puller", puller, (*source, "imagePullerPriority"), *comments)
