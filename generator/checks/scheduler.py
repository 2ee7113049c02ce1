"""Lint kube-scheduler's configuration: profiles, raw plugins and their arguments.

kube-scheduler rejects some of these faults at start, when the old replica is already gone, and ignores most silently.
Source: kube-scheduler v1.37 (`pkg/scheduler/framework/runtime`, `apis/config/validation`). Which plugins there are:
roost_core/scheduler/plugins.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from generator.checks.contract import Check, LintReport, Phrase, at, listing, mapping, number, text
from generator.checks.feature_gates import gates_of, scheduler_minor
from roost_core.scheduler.plugins import (
    FILTERS_NEED_PRE_FILTER,
    PLUGINS,
    POINTS,
    SCORES_NEED_PRE_SCORE,
    is_on,
    names_at,
)

if TYPE_CHECKING:
    from generator.faults import Path
    from generator.values.release import Release

MAX_WEIGHT: Final = 2**31 - 1
_MAX_TOTAL: Final = 2**63 - 1
_BEST_SCORE: Final = 100

# Default weights of the in-tree score plugins.
DEFAULT_WEIGHTS: Final = {name: plugin.weight for name, plugin in PLUGINS.items() if plugin.weight}
_ARGUMENTS: Final = {
    "NodeResourcesFit": {"ignoredResources", "ignoredResourceGroups", "scoringStrategy"},
    "NodeResourcesBalancedAllocation": {"resources"},
    "InterPodAffinity": {"hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"},
    "NodeAffinity": {"addedAffinity"},
    "PodTopologySpread": {"defaultingType", "defaultConstraints"},
    "DefaultPreemption": {"minCandidateNodesPercentage", "minCandidateNodesAbsolute"},
    "VolumeBinding": {"bindTimeoutSeconds", "shape"},
    "DynamicResources": {"filterTimeout", "bindingTimeout"},
}
_FIT_TYPES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
# client-go's leader election waits up to this many retry periods between tries.
_JITTER: Final = 1.2


def check_scheduler(report: LintReport, release: Release) -> None:
    """Check `scheduler`; with `target: none` nothing of it is used."""
    scheduler = mapping(report.values.get("scheduler"))
    if scheduler.get("target") != "deploy":
        return
    _lint_process(report, scheduler, release)
    minor = scheduler_minor(scheduler, release)
    gates = gates_of(scheduler, release)
    profiles = mapping(scheduler.get("profiles"))
    if not profiles:
        report.error(
            ("scheduler", "profiles"),
            profiles,
            "at least one",
            "Without a profile it would act as the cluster's own scheduler.",
        )
    queue_sorts = {}
    for name, entry in profiles.items():
        profile, path = mapping(entry), ("scheduler", "profiles", name)
        _lint_source(report, path, profile)
        _lint_plugins(report, (*path, "plugins"), mapping(profile.get("plugins")), minor, gates)
        _lint_plugin_config(report, (*path, "pluginConfig"), profile)
        queue_sorts[name] = at(profile, "plugins", "queueSort")
    _lint_queue_sorts(report, queue_sorts)


def seconds(duration: object) -> float:
    """Read a Go duration such as 1m30s, in seconds."""
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _DURATION.findall(text(duration)))


def _lint_process(report: LintReport, scheduler: dict[str, object], release: Release) -> None:
    if number(scheduler.get("replicas")) == 0:
        fix = "Without it pods with a profile stay Pending. Use scheduler.target: none to keep the cluster's scheduler."
        report.error(("scheduler", "replicas"), 0, "at least 1", fix)
    if number(scheduler.get("percentageOfNodesToScore")) < _BEST_SCORE:
        reason = "in clusters of 100 or more nodes the fullest node or a repository's home is often not scored."
        report.warn(("scheduler", "percentageOfNodesToScore"), reason, "Use 100.")
    election = mapping(scheduler.get("leaderElection"))
    lease, renew, retry = (seconds(election.get(key)) for key in ("leaseDuration", "renewDeadline", "retryPeriod"))
    path: Path = ("scheduler", "leaderElection")
    if lease <= renew:
        expected = f"more than renewDeadline ({text(election.get('renewDeadline'))})"
        report.error((*path, "leaseDuration"), election.get("leaseDuration"), expected, "Use 15s, 10s and 2s.")
    if renew <= _JITTER * retry or retry == 0:
        expected = f"more than {_JITTER} times retryPeriod ({text(election.get('retryPeriod'))}), which is above 0"
        report.error((*path, "renewDeadline"), election.get("renewDeadline"), expected, "Use 15s, 10s and 2s.")
    image = mapping(scheduler.get("image"))
    tags = mapping(image.get("tags"))
    if not image.get("tag"):
        if not tags:
            report.refuse(("scheduler", "image"), "neither tag nor tags selects a kube-scheduler.", "Set tag.")
        elif release.kube_minor < min(_minor(tag) for tag in tags):
            oldest = min(tags, key=_minor)
            reason = f"kube-scheduler {tags[oldest]} is newer than the cluster ({release.kube_version})"
            report.warn(("scheduler", "image", "tags"), f"{reason}, which Kubernetes doesn't support.", "Set tag.")


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


# --- where a profile's weights come from -----------------------------------------------------------------------------


def _lint_source(report: LintReport, path: Path, profile: dict[str, object]) -> None:
    if profile.get("strategy") is None and not (profile.get("plugins") and profile.get("pluginConfig")):
        fix = "Or give both plugins and pluginConfig."
        report.error((*path, "strategy"), Phrase("nothing"), "one of imageFirst, pack, spread, sticky", fix)


def _lint_total(report: LintReport, path: Path, weights: Iterator[float]) -> None:
    total = sum(weights) * _BEST_SCORE
    if total > _MAX_TOTAL:
        report.error(
            path, Phrase(f"100 x the weights = {total:.0f}"), f"at most {_MAX_TOTAL} (int64)", "Use smaller ones."
        )


def _lint_fit(report: LintReport, path: Path, fit: dict[str, object]) -> None:
    """Check a NodeResourcesFit scoringStrategy."""
    kind = fit.get("type")
    if kind is None:
        fix = "LeastAllocated is the default only where scoringStrategy is left out whole."
        report.error((*path, "type"), Phrase("nothing"), f"one of {', '.join(_FIT_TYPES)}", fix)
    elif kind not in _FIT_TYPES:
        report.error((*path, "type"), kind, f"one of {', '.join(_FIT_TYPES)}")
    shape_path = (*path, "requestedToCapacityRatio")
    has_shape = fit.get("requestedToCapacityRatio") is not None
    if kind == "RequestedToCapacityRatio" and not has_shape:
        report.error(shape_path, Phrase("nothing"), "a shape, for this type", "Give shape: [{utilization, score}, …].")
    if kind in _FIT_TYPES[:2] and has_shape:
        fix = "Remove it with null."
        report.error(shape_path, Phrase("a shape"), f"nothing, for the type {text(kind)}", fix)
    seen: set[str] = set()
    for index, entry in enumerate(listing(fit.get("resources"))):
        resource = mapping(entry)
        _lint_resource(report, (*path, "resources", index), resource, seen, most=100)
    if has_shape:
        shape = at(fit, "requestedToCapacityRatio", "shape")
        _lint_shape(report, (*shape_path, "shape"), [mapping(point) for point in listing(shape)])


def _lint_resource(report: LintReport, path: Path, resource: dict[str, object], seen: set[str], most: int) -> None:
    name = text(resource.get("name"))
    if not name:
        report.error((*path, "name"), resource.get("name"), "a resource's name")
    if name in seen:
        report.error((*path, "name"), name, "each resource once", "Remove one.")
    seen.add(name)
    weight = resource.get("weight")
    if weight == 0 and most > 1:
        report.error((*path, "weight"), 0, f"an integer from 1 to {most}", "0 means 1 to kube-scheduler.")
    elif weight is not None and not _is_integer(weight, 1, most):
        report.error((*path, "weight"), weight, f"an integer from 1 to {most}" if most > 1 else "1")


def _is_integer(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _lint_shape(report: LintReport, path: Path, shape: list[dict[str, object]]) -> None:
    if not shape:
        report.error(path, shape, "at least one point")
    before = -1.0
    for index, point in enumerate(shape):
        utilization, score = point.get("utilization"), point.get("score")
        if not _is_integer(utilization, 0, 100) or not _is_integer(score, 0, 10):
            report.error((*path, index), point, "utilization from 0 to 100 and score from 0 to 10")
            continue
        if number(utilization) <= before:
            report.error((*path, index, "utilization"), utilization, f"more than {before:.0f}: points in rising order")
        before = number(utilization)
        if score == 0:
            reason = "at this point the resource is left out of the mean: a node with its CPU full and its memory empty"
            report.warn((*path, index, "score"), f"{reason} then scores as if only memory counted.", "Use 1.")


# --- raw plugins ------------------------------------------------------------------------------------------------------


def _lint_name(report: LintReport, path: Path, name: str, point: str, minor: int) -> None:
    """Check an enabled plugin: known to this minor, and of this extension point."""
    if name not in PLUGINS:
        image = text(at(report.values, "scheduler", "image", "name"))
        if image.rpartition("/")[2] == "kube-scheduler":
            fix = "kube-scheduler would not start."
            report.error(path, name, "a plugin of kube-scheduler", f"{fix} {_nearest(name)}".rstrip())
        else:
            report.warn(path, f"{name} is not a plugin of kube-scheduler: {image} must include it.")
    elif minor < PLUGINS[name].since:
        expected = f"a plugin of kube-scheduler 1.{minor}: it came with 1.{PLUGINS[name].since}"
        report.error(path, name, expected, "kube-scheduler would not start.")
    elif point != "multiPoint" and name not in names_at(point, minor):
        report.error(path, name, f"a plugin with the extension point {point}", "kube-scheduler would not start.")


def _nearest(name: str) -> str:
    folded = {plugin.lower(): plugin for plugin in PLUGINS}
    known = folded.get(name.lower())
    return f"Did you mean {known}?" if known else ""


def _warn_unknown(report: LintReport, path: Path, name: str) -> None:
    reason = f"{name} is not a plugin of kube-scheduler, which ignores it silently."
    report.warn(path, reason, _nearest(name))


def _lint_plugins(
    report: LintReport, path: Path, plugins: dict[str, object], minor: int, gates: Mapping[str, bool]
) -> None:
    for point, entry in plugins.items():
        if point not in POINTS:
            report.error((*path, point), Phrase("an unknown key"), f"one of {', '.join(POINTS)}")
            continue
        plugin_set = entry if isinstance(entry, dict) else None
        if plugin_set is None or not plugin_set.keys() <= {"enabled", "disabled"}:
            report.error((*path, point), entry, "a map with enabled and disabled")
            continue
        _lint_enabled(report, (*path, point, "enabled"), point, listing(plugin_set.get("enabled")), minor)
        for index, name in enumerate(_names(plugin_set.get("enabled"))):
            off = [gate for gate in (PLUGINS[name].gates if name in PLUGINS else ()) if not is_on(gate, minor, gates)]
            if off:
                reason = f"{name} is behind the feature gate {off[0]}, which is off."
                report.warn((*path, point, "enabled", index), reason, "Set it in scheduler.featureGates.")
        for index, name in enumerate(_names(plugin_set.get("disabled"))):
            if name != "*" and name not in PLUGINS:
                _warn_unknown(report, (*path, point, "disabled", index), name)
    _lint_combination(report, path, plugins)


def _names(entries: object) -> list[str]:
    return [text(mapping(entry).get("name")) for entry in listing(entries)]


def _lint_enabled(report: LintReport, path: Path, point: str, entries: list[object], minor: int) -> None:
    seen: set[str] = set()
    for index, raw in enumerate(entries):
        entry = mapping(raw)
        name, weight = text(entry.get("name")), entry.get("weight")
        here = (*path, index)
        if not name or not entry.keys() <= {"name", "weight"}:
            report.error(here, raw, "a map with name and weight")
            continue
        if name in seen:
            fix = "kube-scheduler would not start: already registered."
            report.error((*here, "name"), name, "each plugin once in a list", fix)
        seen.add(name)
        _lint_name(report, (*here, "name"), name, point, minor)
        if point not in {"score", "multiPoint"} or (point == "multiPoint" and name not in DEFAULT_WEIGHTS):
            continue
        if weight == 0:
            fix = "0 means 1 to kube-scheduler: list the plugin under score.disabled to switch it off."
            report.error((*here, "weight"), 0, f"an integer from 1 to {MAX_WEIGHT}", fix)
        elif weight is None and DEFAULT_WEIGHTS.get(name, 1) != 1:
            reason = f"without a weight {name} gets 1, not its default {DEFAULT_WEIGHTS[name]}."
            report.warn(here, reason, "Write the weight.")
        elif weight is not None and not _is_integer(weight, 1, MAX_WEIGHT):
            report.error((*here, "weight"), weight, f"an integer from 1 to {MAX_WEIGHT}")
    _lint_total(report, path, (abs(number(mapping(entry).get("weight"))) for entry in entries))


def _lint_combination(report: LintReport, path: Path, plugins: dict[str, object]) -> None:
    def names(point: str, side: str) -> list[str]:
        return _names(at(plugins, point, side))

    scored = _enabled_scores(plugins)
    for index, name in enumerate(names("preScore", "disabled")):
        broken = [plugin for plugin in SCORES_NEED_PRE_SCORE if name in {plugin, "*"} and plugin in scored]
        broken = [plugin for plugin in broken if plugin not in names("preScore", "enabled")]
        if broken:
            verb, fails, whose = ("scores", "fails", "its") if len(broken) == 1 else ("score", "fail", "their")
            reason = f"{', '.join(broken)} still {verb}, and {fails} for every pod without {whose} preScore."
            report.refuse((*path, "preScore", "disabled", index), reason, "Disable it under score instead.")
    for index, name in enumerate(names("preFilter", "disabled")):
        broken = [plugin for plugin in FILTERS_NEED_PRE_FILTER if name in {plugin, "*"}]
        broken = [plugin for plugin in broken if plugin not in names("preFilter", "enabled")]
        broken = [
            plugin
            for plugin in broken
            if not {plugin, "*"} & {*names("filter", "disabled"), *names("multiPoint", "disabled")}
        ]
        if broken:
            reason = f"{', '.join(broken)} still filter, and fail every pod without what preFilter leaves behind."
            report.refuse((*path, "preFilter", "disabled", index), reason, "Disable it under filter too.")
    if "*" in names("multiPoint", "disabled"):
        for point, plugin, what in (("queueSort", "PrioritySort", "queue sort"), ("bind", "DefaultBinder", "bind")):
            if plugin not in names("multiPoint", "enabled") and not names(point, "enabled"):
                reason = f"with all of multiPoint disabled there is no {what} plugin, and kube-scheduler doesn't start."
                report.refuse((*path, "multiPoint", "disabled"), reason, f"Enable {plugin} under multiPoint.")
    if plugins and not scored:
        reason = "no plugin scores: the first node that fits is taken."
        report.warn((*path, "score"), reason, "Enable at least one score plugin.")


def _enabled_scores(plugins: dict[str, object]) -> set[str]:
    """Names of the plugins that score, after kube-scheduler's merge with the defaults."""

    def names(point: str, side: str) -> set[str]:
        return set(_names(at(plugins, point, side)))

    off = names("multiPoint", "disabled")
    spread = (set() if "*" in off else set(DEFAULT_WEIGHTS) - off) | names("multiPoint", "enabled")
    score_off = names("score", "disabled")
    kept = set() if "*" in score_off else spread - score_off
    return {name for name in kept if name in DEFAULT_WEIGHTS} | names("score", "enabled")


def _lint_queue_sorts(report: LintReport, queue_sorts: dict[str, object]) -> None:
    first = next(iter(queue_sorts.values()), None)
    for name, queue_sort in queue_sorts.items():
        if queue_sort != first:
            path = ("scheduler", "profiles", name, "plugins", "queueSort")
            other = next(iter(queue_sorts))
            reason = f"differs from profile {other}'s; one scheduler has one queue."
            report.refuse(path, reason, "Use the same list in every profile.")


def _lint_plugin_config(report: LintReport, path: Path, profile: dict[str, object]) -> None:
    entries = listing(profile.get("pluginConfig"))
    seen: set[str] = set()
    for index, raw in enumerate(entries):
        entry = mapping(raw)
        name, arguments = text(entry.get("name")), mapping(entry.get("args"))
        here = (*path, index)
        if name in seen:
            report.error((*here, "name"), name, "each plugin once", "kube-scheduler would not start.")
        seen.add(name)
        if name not in PLUGINS:
            _warn_unknown(report, (*here, "name"), name)
            continue
        known = {*_ARGUMENTS.get(name, ()), "apiVersion", "kind"}
        for key in arguments:
            if key not in known:
                accepted = ", ".join(sorted(_ARGUMENTS.get(name, ()))) or "none: it takes no arguments"
                report.error((*here, "args", key), Phrase("an unknown argument"), accepted)
        _lint_arguments(report, (*here, "args"), name, arguments)
    if entries and "PodTopologySpread" not in seen:
        reason = (
            "kube-scheduler's default spreading then works against packing, for placeholders and pods of a Service."
        )
        fix = "Add {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}."
        report.warn(path, reason, fix)


def _lint_arguments(report: LintReport, path: Path, name: str, arguments: dict[str, object]) -> None:
    if name == "NodeResourcesFit" and arguments.get("scoringStrategy") is not None:
        _lint_fit(report, (*path, "scoringStrategy"), mapping(arguments.get("scoringStrategy")))
    elif name == "NodeResourcesBalancedAllocation":
        seen: set[str] = set()
        for index, entry in enumerate(listing(arguments.get("resources"))):
            _lint_resource(report, (*path, "resources", index), mapping(entry), seen, most=1)
    elif name == "InterPodAffinity":
        weight = arguments.get("hardPodAffinityWeight", 0)
        if not _is_integer(weight, 0, 100):
            report.error((*path, "hardPodAffinityWeight"), weight, "an integer from 0 to 100")
    elif name == "PodTopologySpread":
        _lint_spread(report, path, arguments)
    elif name == "DefaultPreemption":
        share, count = arguments.get("minCandidateNodesPercentage", 10), arguments.get("minCandidateNodesAbsolute", 100)
        if not _is_integer(share, 0, 100):
            report.error((*path, "minCandidateNodesPercentage"), share, "an integer from 0 to 100")
        if not _is_integer(count, 0, MAX_WEIGHT):
            report.error((*path, "minCandidateNodesAbsolute"), count, "an integer of at least 0")
        if share == 0 and count == 0:
            report.refuse(path, "both minCandidateNodes are 0: no node would be considered.", "Set one above 0.")


def _lint_spread(report: LintReport, path: Path, arguments: dict[str, object]) -> None:
    kind = arguments.get("defaultingType")
    constraints = listing(arguments.get("defaultConstraints"))
    if kind is not None and kind not in {"System", "List"}:
        report.error((*path, "defaultingType"), kind, "System or List")
    if constraints and kind != "List":
        report.error((*path, "defaultConstraints"), constraints, "nothing, unless defaultingType is List")
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(constraints):
        constraint = mapping(entry)
        if constraint.get("labelSelector") is not None:
            fix = "kube-scheduler deduces it from the pod's Services and owner."
            report.error((*path, "defaultConstraints", index, "labelSelector"), Phrase("a selector"), "none", fix)
        pair = (text(constraint.get("topologyKey")), text(constraint.get("whenUnsatisfiable")))
        if pair in seen:
            report.error((*path, "defaultConstraints", index), pair, "each topologyKey and whenUnsatisfiable once")
        seen.add(pair)


CHECK: Final[Check] = check_scheduler
