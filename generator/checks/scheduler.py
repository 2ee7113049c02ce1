"""Lint kube-scheduler's configuration: profiles, raw plugins and their arguments.

kube-scheduler rejects some of these faults at start, when the old replica is already gone, and
ignores most silently. Source: kube-scheduler v1.37 (`pkg/scheduler/framework/runtime`,
`apis/config/validation`). Which plugins there are: roost_core/scheduler/plugins.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generator.checks.contract import LintReport, Phrase, repeated
from generator.checks.faulty_keys import sound_items
from generator.faults import KeyPath
from generator.render.deployed_scheduler import gates_of, scheduler_minor
from generator.render.kube_scheduler import SCHEDULER_TAGS
from generator.values.lookups import child, listing, mapping, number, text
from generator.values.release_name import Release, kube_minor
from roost_core.scheduler.plugins import (
    ARGUMENTS,
    FILTERS_NEED_PRE_FILTER,
    PLUGINS,
    SCORES_NEED_PRE_SCORE,
    is_on,
    names_at,
    unmodelled,
)

# Default weights of the in-tree score plugins.
DEFAULT_WEIGHTS: Final = {name: plugin.weight for name, plugin in PLUGINS.items() if plugin.weight}
# The minors that brought keys of a profile. kube-scheduler doesn't start with one that it doesn't
# know.
_POINTS_SINCE: Final = {"placementGenerate": 36, "placementScore": 36}
_ARGUMENTS_SINCE: Final = {"filterTimeout": 34, "bindingTimeout": 36}
_UNMODELLED: Final = (
    "Roost's model doesn't know it: placeholders with this profile don't move, and nothing is"
    " replayed"
)


def check(report: LintReport, release: Release) -> None:
    """Check `scheduler`; with `target: none` nothing of it is used."""
    scheduler = mapping(report.values.get("scheduler"))
    if scheduler.get("target") != "deploy":
        return
    with report.part():
        _lint_process(report, scheduler, release)
    minor = scheduler_minor(scheduler, release)
    gates = gates_of(scheduler, release)
    profiles = mapping(scheduler.get("profiles"))
    if not profiles:
        fix = "Without a profile it would act as the cluster's own scheduler."
        report.error(("scheduler", "profiles"), profiles, "at least one", fix)
    for name, entry in sound_items(profiles):
        profile = mapping(entry)
        path = ("scheduler", "profiles", name)
        with report.part():
            _lint_strategy(report, path, profile)
        with report.part():
            _lint_plugins(report, (*path, "plugins"), mapping(profile.get("plugins")), minor, gates)
        with report.part():
            _lint_plugin_config(report, (*path, "pluginConfig"), profile, minor)
    with report.part():
        queue_sorts = {
            name: child(entry, "plugins", "queueSort") for name, entry in sound_items(profiles)
        }
        _lint_queue_sorts(report, queue_sorts)


def _lint_strategy(report: LintReport, path: KeyPath, profile: dict[str, object]) -> None:
    has_plugins = bool(profile.get("plugins") and profile.get("pluginConfig"))
    if profile.get("strategy") is None and not has_plugins:
        expected = "one of imageFirst, pack, spread, sticky"
        fix = "Or give both plugins and pluginConfig."
        report.error((*path, "strategy"), Phrase("nothing"), expected, fix)


def _lint_process(report: LintReport, scheduler: dict[str, object], release: Release) -> None:
    if number(scheduler.get("replicas")) == 0:
        fix = (
            "Without it pods with a profile stay Pending. Use scheduler.target: none to keep the"
            " cluster's scheduler."
        )
        report.error(("scheduler", "replicas"), 0, "at least 1", fix)
    oldest = min(SCHEDULER_TAGS, key=kube_minor)
    if not child(scheduler, "image", "tag") and release.kube_minor < kube_minor(oldest):
        reason = (
            f"kube-scheduler {SCHEDULER_TAGS[oldest]} is newer than the cluster"
            f" ({release.kube_version}), which Kubernetes doesn't support."
        )
        report.warn(("scheduler", "image", "tag"), reason, "Set it.")


def _lint_fit(report: LintReport, path: KeyPath, fit: dict[str, object]) -> None:
    """Check a NodeResourcesFit scoringStrategy."""
    _lint_resources(report, path, fit)
    if fit.get("type") == "RequestedToCapacityRatio":
        report.warn((*path, "type"), f"{_UNMODELLED}.", "Use MostAllocated or LeastAllocated.")
    before = -1.0
    for index, entry in enumerate(listing(child(fit, "requestedToCapacityRatio", "shape"))):
        here = (*path, "requestedToCapacityRatio", "shape", index)
        utilization = number(child(entry, "utilization"))
        if utilization <= before:
            expected = f"more than {before:.0f}: points in rising order"
            report.error((*here, "utilization"), child(entry, "utilization"), expected)
        before = utilization


def _lint_resources(report: LintReport, path: KeyPath, holder: dict[str, object]) -> None:
    for index, name in repeated(_names(holder.get("resources"))):
        report.error((*path, "resources", index, "name"), name, "each resource once", "Remove one.")


def _lint_name(report: LintReport, path: KeyPath, name: str, point: str, minor: int) -> None:
    """Check an enabled plugin: this minor knows it, and it has this extension point."""
    if name not in PLUGINS:
        image = text(child(report.values, "scheduler", "image", "name"))
        if image.rpartition("/")[2] == "kube-scheduler":
            fix = f"kube-scheduler would not start. {_nearest(name)}".rstrip()
            report.error(path, name, "a plugin of kube-scheduler", fix)
        else:
            report.warn(path, f"{name} is not a plugin of kube-scheduler: {image} must include it.")
    elif minor < PLUGINS[name].since:
        expected = f"a plugin of kube-scheduler 1.{minor}: it came with 1.{PLUGINS[name].since}"
        report.error(path, name, expected, "kube-scheduler would not start.")
    elif point != "multiPoint" and name not in names_at(point, minor):
        expected = f"a plugin with the extension point {point}"
        report.error(path, name, expected, "kube-scheduler would not start.")


def _lint_since(
    report: LintReport, path: KeyPath, key: str, since: Mapping[str, int], minor: int
) -> None:
    if key in since and minor < since[key]:
        expected = f"nothing, for kube-scheduler 1.{minor}: it came with 1.{since[key]}"
        report.error(path, Phrase(key), expected, "kube-scheduler would not start, or ignore it.")


def _nearest(name: str) -> str:
    folded = {plugin.lower(): plugin for plugin in PLUGINS}
    known = folded.get(name.lower())
    return f"Did you mean {known}?" if known else ""


def _warn_unknown(report: LintReport, path: KeyPath, name: str) -> None:
    reason = f"{name} is not a plugin of kube-scheduler, which ignores it silently."
    report.warn(path, reason, _nearest(name))


def _lint_plugins(
    report: LintReport,
    path: KeyPath,
    plugins: dict[str, object],
    minor: int,
    gates: Mapping[str, bool],
) -> None:
    for point, entry in plugins.items():
        plugin_set = mapping(entry)
        _lint_since(report, (*path, point), point, _POINTS_SINCE, minor)
        enabled_path = (*path, point, "enabled")
        _lint_enabled(report, enabled_path, point, listing(plugin_set.get("enabled")), minor)
        for index, name in enumerate(_names(plugin_set.get("enabled"))):
            if name not in PLUGINS:
                continue
            closed = [gate for gate in PLUGINS[name].gates if not is_on(gate, minor, gates)]
            if closed:
                reason = f"{name} is behind the feature gate {closed[0]}, which is off."
                fix = "Set it in scheduler.featureGates."
                report.warn((*enabled_path, index), reason, fix)
        for index, name in enumerate(_names(plugin_set.get("disabled"))):
            if name != "*" and name not in PLUGINS:
                _warn_unknown(report, (*path, point, "disabled", index), name)
    _lint_combination(report, path, plugins)


def _names(entries: object, *path: str) -> list[str]:
    return [text(child(entry, "name")) for entry in listing(child(entries, *path))]


def _lint_enabled(
    report: LintReport, path: KeyPath, point: str, entries: list[object], minor: int
) -> None:
    for index, name in repeated(_names(entries)):
        fix = "kube-scheduler would not start: already registered."
        report.error((*path, index, "name"), name, "each plugin once in a list", fix)
    for index, raw in enumerate(entries):
        entry = mapping(raw)
        name = text(entry.get("name"))
        weight = entry.get("weight")
        here = (*path, index)
        _lint_name(report, (*here, "name"), name, point, minor)
        has_default = name in DEFAULT_WEIGHTS
        takes_weight = point == "score" or (point == "multiPoint" and has_default)
        if not takes_weight:
            continue
        if weight == 0:
            fix = (
                "0 means 1 to kube-scheduler: list the plugin under score.disabled to switch it"
                " off."
            )
            report.error((*here, "weight"), 0, "an integer from 1 on", fix)
        elif weight is None and has_default and DEFAULT_WEIGHTS[name] != 1:
            reason = f"without a weight {name} gets 1, not its default {DEFAULT_WEIGHTS[name]}."
            report.warn(here, reason, "Write the weight.")


def _lint_combination(report: LintReport, path: KeyPath, plugins: dict[str, object]) -> None:
    """Check what plugins of one extension point need of another point."""
    scored = _enabled_scores(plugins)
    _lint_pre_score(report, path, plugins, scored)
    _lint_pre_filter(report, path, plugins)
    if "*" in _names(plugins, "multiPoint", "disabled"):
        _lint_without_multi_point(report, path, plugins)
    if plugins and not scored:
        reason = "no plugin scores: the first node that fits is taken."
        report.warn((*path, "score"), reason, "Enable at least one score plugin.")


def _lint_pre_score(
    report: LintReport, path: KeyPath, plugins: dict[str, object], scored: set[str]
) -> None:
    """Check that no plugin scores whose preScore is disabled."""
    kept = _names(plugins, "preScore", "enabled")
    scoring = [plugin for plugin in SCORES_NEED_PRE_SCORE if plugin in scored]
    for index, name in enumerate(_names(plugins, "preScore", "disabled")):
        broken = [plugin for plugin in scoring if name in {plugin, "*"} and plugin not in kept]
        if not broken:
            continue
        if len(broken) == 1:
            fault = "still scores, and fails for every pod without its preScore."
        else:
            fault = "still score, and fail for every pod without their preScore."
        reason = f"{', '.join(broken)} {fault}"
        fix = "Disable it under score instead."
        report.refuse((*path, "preScore", "disabled", index), reason, fix)


def _lint_pre_filter(report: LintReport, path: KeyPath, plugins: dict[str, object]) -> None:
    """Check that no plugin filters whose preFilter is disabled."""
    kept = _names(plugins, "preFilter", "enabled")
    off = {*_names(plugins, "filter", "disabled"), *_names(plugins, "multiPoint", "disabled")}
    filtering = [plugin for plugin in FILTERS_NEED_PRE_FILTER if not {plugin, "*"} & off]
    for index, name in enumerate(_names(plugins, "preFilter", "disabled")):
        broken = [plugin for plugin in filtering if name in {plugin, "*"} and plugin not in kept]
        if broken:
            reason = (
                f"{', '.join(broken)} still filter, and fail every pod without what preFilter"
                " leaves behind."
            )
            fix = "Disable it under filter too."
            report.refuse((*path, "preFilter", "disabled", index), reason, fix)


def _lint_without_multi_point(
    report: LintReport, path: KeyPath, plugins: dict[str, object]
) -> None:
    """Check that the plugins are there without which kube-scheduler doesn't start."""
    for point, plugin, kind in (
        ("queueSort", "PrioritySort", "queue sort"),
        ("bind", "DefaultBinder", "bind"),
    ):
        is_there = plugin in _names(plugins, "multiPoint", "enabled")
        if is_there or _names(plugins, point, "enabled"):
            continue
        reason = (
            f"with all of multiPoint disabled there is no {kind} plugin, and kube-scheduler"
            " doesn't start."
        )
        fix = f"Enable {plugin} under multiPoint."
        report.refuse((*path, "multiPoint", "disabled"), reason, fix)


def _enabled_scores(plugins: dict[str, object]) -> set[str]:
    """Names of the plugins that score, after kube-scheduler's merge with the defaults."""
    multi_off = set(_names(plugins, "multiPoint", "disabled"))
    multi_on = set(_names(plugins, "multiPoint", "enabled"))
    score_off = set(_names(plugins, "score", "disabled"))
    score_on = set(_names(plugins, "score", "enabled"))
    from_multi_point = multi_on
    if "*" not in multi_off:
        from_multi_point = (DEFAULT_WEIGHTS.keys() - multi_off) | multi_on
    kept: set[str] = set()
    if "*" not in score_off:
        # multiPoint may also enable plugins that don't score.
        kept = (from_multi_point & DEFAULT_WEIGHTS.keys()) - score_off
    return kept | score_on


def _lint_queue_sorts(report: LintReport, queue_sorts: dict[str, object]) -> None:
    first = next(iter(queue_sorts.values()), None)
    for name, queue_sort in queue_sorts.items():
        if queue_sort != first:
            path = ("scheduler", "profiles", name, "plugins", "queueSort")
            other = next(iter(queue_sorts))
            reason = f"differs from profile {other}'s; one scheduler has one queue."
            report.refuse(path, reason, "Use the same list in every profile.")


def _lint_plugin_config(
    report: LintReport, path: KeyPath, profile: dict[str, object], minor: int
) -> None:
    entries = listing(profile.get("pluginConfig"))
    names = _names(entries)
    for index, name in repeated(names):
        fix = "kube-scheduler would not start."
        report.error((*path, index, "name"), name, "each plugin once", fix)
    for index, name in enumerate(names):
        here = (*path, index)
        if name not in PLUGINS:
            _warn_unknown(report, (*here, "name"), name)
            continue
        arguments = mapping(child(entries[index], "args"))
        _lint_keys(report, (*here, "args"), name, arguments, minor)
        _lint_arguments(report, (*here, "args"), name, arguments)
    if entries and "PodTopologySpread" not in names:
        reason = (
            "kube-scheduler's default spreading then works against packing, for placeholders and"
            " pods of a Service."
        )
        fix = "Add {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}."
        report.warn(path, reason, fix)


def _lint_keys(
    report: LintReport, path: KeyPath, name: str, arguments: dict[str, object], minor: int
) -> None:
    """Check that a plugin of this minor takes these arguments."""
    if name in ARGUMENTS:
        for key in unmodelled(name, arguments):
            report.warn((*path, key), f"{_UNMODELLED}.", "Leave it out, unless users need it.")
    for key in arguments:
        _lint_since(report, (*path, key), key, _ARGUMENTS_SINCE, minor)
    if name not in ARGUMENTS:
        for key in arguments.keys() - {"apiVersion", "kind"}:
            found = Phrase("an unknown argument")
            report.error((*path, key), found, "none: it takes no arguments")


def _lint_arguments(
    report: LintReport, path: KeyPath, name: str, arguments: dict[str, object]
) -> None:
    if name == "NodeResourcesFit":
        _lint_fit(report, (*path, "scoringStrategy"), mapping(arguments.get("scoringStrategy")))
    elif name == "NodeResourcesBalancedAllocation":
        _lint_resources(report, path, arguments)
    elif name == "PodTopologySpread":
        constraints = listing(arguments.get("defaultConstraints"))
        pairs = [
            (text(child(constraint, "topologyKey")), text(child(constraint, "whenUnsatisfiable")))
            for constraint in constraints
        ]
        for index, pair in repeated(pairs):
            expected = "each topologyKey and whenUnsatisfiable once"
            report.error((*path, "defaultConstraints", index), pair, expected)
