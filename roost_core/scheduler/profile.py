"""Read a KubeSchedulerConfiguration into the profiles that the model runs.

A profile says which plugins run, in which order, and with which weights. Here a configuration is
merged with kube-scheduler's defaults. It must be a configuration that kube-scheduler accepts. What
the model can't follow is refused by name: extenders, unknown plugins, a score without its preScore.
Source: kube-scheduler's runtime.expandMultiPointPlugins, v1.33 to v1.37.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from roost_core.objects.pod import SpreadConstraint
from roost_core.objects.pod_reader import read_spread_constraint
from roost_core.objects.requests import CPU, MEMORY
from roost_core.scheduler.plugins import (
    FILTERS_NEED_PRE_FILTER,
    NEWEST_MINOR,
    NODE_RESOURCES_FIT,
    OLDEST_MINOR,
    PLUGINS,
    POD_TOPOLOGY_SPREAD,
    SCORES_NEED_PRE_SCORE,
    VOLUME_BINDING,
    default_plugins,
    is_on,
    names_at,
    unmodelled,
)

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
# The extension points that decide where a pod goes.
_POINTS: Final = ("preFilter", "filter", "postFilter", "preScore", "score")


class ProfileError(ValueError):
    """The model can't run the configuration. The message names profile, key and value."""


@dataclass(frozen=True, slots=True)
class FitScore:
    """NodeResourcesFit's `scoringStrategy`."""

    strategy: str = LEAST_ALLOCATED
    # Resources, each with its weight in the mean.
    resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))


# kube-scheduler's own default constraints for spreading.
SYSTEM_SPREAD: Final = (
    SpreadConstraint("kubernetes.io/hostname", 3, False, None, 1, True, False, ()),
    SpreadConstraint("topology.kubernetes.io/zone", 5, False, None, 1, True, False, ()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A scheduler profile, merged with the defaults. Plugins are in kube-scheduler's order."""

    scheduler_name: str = "default-scheduler"
    # Kubernetes' minor: 36 is 1.36.
    minor: int
    filters: tuple[str, ...]
    post_filters: tuple[str, ...]
    # Plugins, each with its weight.
    scores: tuple[tuple[str, int], ...]
    fit: FitScore = FitScore()
    default_spread: tuple[SpreadConstraint, ...] = SYSTEM_SPREAD
    spread_is_system_default: bool = True
    # In percent; 0: fewer percent for more nodes, from 100 nodes on.
    percentage_of_nodes_to_score: int = 0


def default_profile(minor: int) -> Profile:
    """Return kube-scheduler's default profile. minor: as for `read_profiles`."""
    return read_profiles({}, minor)["default-scheduler"]


def read_profiles(configuration: Mapping[str, Any], minor: int) -> dict[str, Profile]:
    """All profiles of a KubeSchedulerConfiguration v1, by schedulerName.

    configuration: as parsed from YAML. minor: of the kube-scheduler that runs them, 33 or newer. A
    minor that Roost doesn't know yet counts as the newest that it knows. Raises ProfileError.
    """
    profiles, faults = read_each_profile(configuration, minor)
    if faults:
        raise next(iter(faults.values()))
    return profiles


def read_each_profile(
    configuration: Mapping[str, Any], minor: int
) -> tuple[dict[str, Profile], dict[str, ProfileError]]:
    """The profiles that the model can run, and why it can't run the others; both by schedulerName.

    Raises ProfileError for what concerns all profiles.
    """
    if minor < OLDEST_MINOR:
        raise ProfileError(f"found Kubernetes 1.{minor}, expected 1.{OLDEST_MINOR} or newer")
    for extender in configuration.get("extenders") or ():
        is_readable = isinstance(extender, Mapping)
        if not is_readable or extender.get("filterVerb") or extender.get("prioritizeVerb"):
            raise ProfileError(
                "extenders: found one that filters or scores, which only a running scheduler"
                " can ask"
            )
    common_percentage = configuration.get("percentageOfNodesToScore") or 0
    bodies = configuration.get("profiles") or [{}]
    profiles: dict[str, Profile] = {}
    faults: dict[str, ProfileError] = {}
    for index, body in enumerate(bodies):
        where = f"profiles[{index}]"
        if not isinstance(body, Mapping):
            raise ProfileError(f"{where}: found {body!r}, expected an object")
        name = body.get("schedulerName") or ("default-scheduler" if len(bodies) == 1 else "")
        if not isinstance(name, str) or not name:
            raise ProfileError(
                f"{where}.schedulerName: found none, expected a name, as there are several profiles"
            )
        if name in profiles or name in faults:
            raise ProfileError(
                f"{where}.schedulerName: found {name!r} twice, expected each name once"
            )
        percentage = body.get("percentageOfNodesToScore")
        if percentage is None:
            percentage = common_percentage
        try:
            profiles[name] = _read_profile(body, name, minor, percentage)
        except ProfileError as error:
            faults[name] = error
        except (TypeError, AttributeError, KeyError) as error:
            faults[name] = ProfileError(
                f"profile {name}: it isn't shaped as KubeSchedulerConfiguration says ({error})"
            )
    return profiles, faults


class _PluginSet(NamedTuple):
    """What a profile's `plugins` says of one extension point, or of multiPoint."""

    # Names with weights; 0: none is given.
    enabled: tuple[tuple[str, int], ...]
    disabled: frozenset[str]


def _read_profile(body: Mapping[str, Any], name: str, minor: int, percentage: int) -> Profile:
    where = f"profile {name}"
    plugins = body.get("plugins") or {}
    minor = min(minor, NEWEST_MINOR)
    defaults = _PluginSet(tuple(default_plugins(minor)), frozenset())
    multi_point = _merged(defaults, _plugin_set(plugins, "multiPoint", minor, where))
    sets = {point: _plugin_set(plugins, point, minor, where) for point in _POINTS}
    expanded = {
        point: _expanded(multi_point, sets[point], names_at(point, minor)) for point in _POINTS
    }
    for point, point_before, plugins_with_both in (
        ("score", "preScore", SCORES_NEED_PRE_SCORE),
        ("filter", "preFilter", FILTERS_NEED_PRE_FILTER),
    ):
        for plugin in plugins_with_both:
            if plugin in expanded[point] and plugin not in expanded[point_before]:
                raise ProfileError(
                    f"{where}: plugins.{point_before}: {plugin} is off, but {point} has it: every"
                    f" pod would fail. Disable it under {point} too."
                )
    weights: dict[str, int] = {}
    for plugin, weight in (*sets["score"].enabled, *multi_point.enabled):
        weights.setdefault(plugin, weight or 1)
    arguments = _arguments_by_plugin(body, where)
    # This feature is on by default from 1.37 on. It has no effect on pods whose claims are bound.
    scores_volumes = is_on("StorageCapacityScoring", minor, {})
    return Profile(
        scheduler_name=name,
        minor=minor,
        filters=tuple(expanded["filter"]),
        post_filters=tuple(expanded["postFilter"]),
        scores=tuple(
            (plugin, weights[plugin])
            for plugin in expanded["score"]
            if plugin != VOLUME_BINDING or scores_volumes
        ),
        percentage_of_nodes_to_score=percentage,
        **_read_arguments(arguments, where),
    )


def _plugin_set(plugins: Mapping[str, Any], point: str, minor: int, where: str) -> _PluginSet:
    body = plugins.get(point) or {}
    enabled = tuple(
        (entry["name"], entry.get("weight") or 0) for entry in body.get("enabled") or ()
    )
    known = names_at(point, minor) if point in _POINTS else PLUGINS
    for name, _ in enabled:
        if name not in known:
            raise ProfileError(
                f"{where}: plugins.{point}.enabled: found {name!r}, expected an in-tree plugin of"
                f" {point}"
            )
    return _PluginSet(enabled, frozenset(entry["name"] for entry in body.get("disabled") or ()))


def _merged(defaults: _PluginSet, custom: _PluginSet) -> _PluginSet:
    """The defaults that aren't disabled, then the other plugins of `custom`.

    A default that `custom` enables again keeps its place, with the weight of `custom`.
    """
    enabled = dict(custom.enabled)
    kept: dict[str, int] = {}
    for name, weight in defaults.enabled:
        if "*" not in custom.disabled and name not in custom.disabled:
            kept[name] = enabled.pop(name, weight)
    return _PluginSet((*kept.items(), *enabled.items()), custom.disabled)


def _expanded(
    multi_point: _PluginSet, at_point: _PluginSet, implementers: frozenset[str]
) -> list[str]:
    """The plugins at an extension point, in their order.

    First come those that multiPoint and the point enable, in the point's order. Then come those
    that only multiPoint enables, then those that only the point enables. implementers: the plugins
    that have this extension point.
    """
    of_point = [name for name, _ in at_point.enabled]
    if "*" in at_point.disabled:
        return of_point
    of_multi_point = [
        name
        for name, _ in multi_point.enabled
        if name in implementers and name not in at_point.disabled
    ]
    of_both = [name for name in of_point if name in of_multi_point]
    return list(dict.fromkeys([*of_both, *of_multi_point, *of_point]))


def _arguments_by_plugin(body: Mapping[str, Any], where: str) -> dict[str, Mapping[str, Any]]:
    """`pluginConfig` of a profile. Raises ProfileError for arguments that aren't modelled."""
    arguments: dict[str, Mapping[str, Any]] = {}
    for config in body.get("pluginConfig") or ():
        plugin = config["name"]
        if plugin in arguments:
            raise ProfileError(
                f"{where}: pluginConfig: found {plugin!r} twice, expected each plugin once"
            )
        arguments[plugin] = config.get("args") or {}
        unknown = unmodelled(plugin, arguments[plugin])
        if unknown:
            raise ProfileError(
                f"{where}: pluginConfig: {plugin}: found {unknown[0]}, which Roost doesn't model."
                " Leave it out."
            )
    return arguments


def _read_arguments(arguments: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, Any]:
    """Fields of `Profile` that plugins' arguments set."""
    fields: dict[str, Any] = {}
    fit = arguments.get(NODE_RESOURCES_FIT, {})
    if fit.get("scoringStrategy") is not None:
        fields["fit"] = _read_strategy(fit["scoringStrategy"], where)
    spread = arguments.get(POD_TOPOLOGY_SPREAD, {})
    if spread.get("defaultingType") == "List":
        fields["default_spread"] = tuple(
            read_spread_constraint(constraint)
            for constraint in spread.get("defaultConstraints") or ()
        )
        fields["spread_is_system_default"] = False
    return fields


def _read_strategy(strategy: Mapping[str, Any], where: str) -> FitScore:
    kind = strategy.get("type")
    if kind not in (LEAST_ALLOCATED, MOST_ALLOCATED):
        raise ProfileError(
            f"{where}: pluginConfig: NodeResourcesFit scoringStrategy.type: found {kind!r},"
            f" expected {LEAST_ALLOCATED} or {MOST_ALLOCATED}"
        )
    resources = tuple(
        (resource["name"], resource.get("weight") or 1)
        for resource in strategy.get("resources") or ()
    )
    return FitScore(kind, resources or FitScore().resources)
