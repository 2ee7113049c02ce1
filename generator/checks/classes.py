"""Lint `podClasses`: which pods match, which terms add up, and how the class's scheduler profile
weighs them.
"""

from __future__ import annotations

from itertools import combinations, pairwise, permutations
from typing import Final, NamedTuple

from generator.checks.contract import LintReport, Phrase
from generator.checks.faulty_keys import sound_items
from generator.faults import KeyPath, describe
from generator.values.lookups import child, listing, mapping, number, text
from generator.values.release_name import Release

_Classes = dict[str, dict[str, object]]

# The kubelet's default; the pods of two classes on one node are fewer.
_MAX_PODS_A_NODE: Final = 110
_HEAVY_TERM: Final = 50
_SIDES: Final = ("join", "avoid")


def check(report: LintReport, _release: Release) -> None:
    """Check every class, and each against the others."""
    entries = mapping(report.values.get("podClasses"))
    classes: _Classes = {name: mapping(entry) for name, entry in sound_items(entries)}
    for name, pod_class in classes.items():
        path = ("podClasses", name)
        for lint in (_lint_profile_name, _lint_home, _lint_unread_nodes, _lint_profile):
            with report.part():
                lint(report, path, pod_class)
        for side in _SIDES:
            with report.part():
                _lint_side(report, (*path, side), mapping(pod_class.get(side)), [*entries])
    for lint_all in (_lint_shared_pools, _lint_pairs, _lint_likeness, _lint_placeholder_class):
        with report.part():
            lint_all(report, classes)


def _lint_profile_name(report: LintReport, path: KeyPath, pod_class: dict[str, object]) -> None:
    profile = text(pod_class.get("profile"))
    profiles = mapping(child(report.values, "scheduler", "profiles"))
    if not profile or profile in profiles:
        return
    if child(report.values, "scheduler", "target") == "deploy":
        expected = f"a key of scheduler.profiles ({', '.join(sorted(profiles))})"
        fix = 'Add it there, or set "" to keep the pod\'s scheduler.'
        report.error((*path, "profile"), profile, expected, fix)


def _lint_side(
    report: LintReport, path: KeyPath, weights: dict[str, object], names: list[str]
) -> None:
    """Check that a class joins and avoids classes that there are."""
    for other in weights:
        # The values may have removed a class that a default names.
        if other not in names and not report.is_default((*path, other)):
            found = Phrase(f"the class {describe(other)}")
            expected = f"a key of podClasses ({', '.join(sorted(names))})"
            report.error((*path, other), found, expected, "null deletes it.")


def _lint_home(report: LintReport, path: KeyPath, pod_class: dict[str, object]) -> None:
    home = pod_class.get("home")
    if home is None:
        return
    weights = listing(child(home, "weights"))
    for index, (before, weight) in enumerate(pairwise(weights), start=1):
        if number(weight) >= number(before):
            expected = f"less than the weight before it ({before})"
            fix = "The repository's first node must weigh most: 100, 50, 25."
            report.error((*path, "home", "weights", index), weight, expected, fix)
    if not mapping(pod_class.get("resources")):
        reason = (
            "pods of a class with a home often request nothing, and then no node ever looks full."
        )
        report.warn((*path, "resources"), reason, "Give a default: {cpu: 100m, memory: 1Gi}.")
    for index, term in enumerate(listing(pod_class.get("preferredNodeTerms"))):
        if number(child(term, "weight")) >= _HEAVY_TERM:
            reason = "adds to the home's weights, and can outweigh a repository's first node."
            fix = f"Stay below {_HEAVY_TERM}."
            report.warn((*path, "preferredNodeTerms", index, "weight"), reason, fix)
    if pod_class.get("warm") is not None:
        reason = (
            "the class has a home too: the weights of both add up, and a node that is neither's"
            " best may win."
        )
        report.warn((*path, "warm"), reason, "Keep one of them.")


def _lint_unread_nodes(report: LintReport, path: KeyPath, pod_class: dict[str, object]) -> None:
    if child(report.values, "webhook", "readNodes") is not False:
        return
    if child(report.values, "admission", "mode") != "webhook":
        return
    for key, unread in (("warm", "nodes"), ("resources", "PriorityClasses")):
        if pod_class.get(key) is not None and not report.is_default((*path, key)):
            reason = (
                f"does nothing while the webhook can't read {unread} (webhook.readNodes: false)."
            )
            report.warn((*path, key), reason, f"Set webhook.readNodes to true, or {key} to null.")


def _lint_profile(report: LintReport, path: KeyPath, pod_class: dict[str, object]) -> None:
    """Check the class's terms against its profile's strategy."""
    profile = mapping(child(report.values, "scheduler", "profiles", text(pod_class.get("profile"))))
    if child(report.values, "scheduler", "target") != "deploy":
        return
    if profile.get("plugins") or profile.get("pluginConfig"):
        return
    if mapping(pod_class.get("join")) and profile.get("strategy") == "spread":
        reason = "contradicts the strategy spread, which prefers the emptiest node."
        report.warn((*path, "join"), reason, "Use pack, or set join: null for each class.")


def _lint_pairs(report: LintReport, classes: _Classes) -> None:
    """Both directions of a pair add up in kube-scheduler: only one side should set it, with a small
    enough weight.
    """
    for first, second in combinations(sorted(classes), 2):
        with report.part():
            _lint_sum(report, classes, first, second)
    for name in classes:
        with report.part():
            _lint_self(report, classes, name)
    for name, other in permutations(classes, 2):
        with report.part():
            _lint_repelled(report, classes, name, other)


class _Preference(NamedTuple):
    """What a class says of another: `podClasses.NAME.SIDE.OTHER`."""

    name: str
    # One of _SIDES.
    side: str
    other: str

    @property
    def key(self) -> str:
        return f"{self.name}.{self.side}.{self.other}"

    @property
    def path(self) -> KeyPath:
        return ("podClasses", *self)

    def weight(self, report: LintReport, classes: _Classes) -> float:
        """The weight that somebody chose; 0: none."""
        # Roost's default `avoid` only breaks ties, so it contradicts nothing.
        if self.side == "avoid" and report.is_default(self.path):
            return 0
        return number(mapping(classes[self.name].get(self.side)).get(self.other))


def _lint_sum(report: LintReport, classes: _Classes, first: str, second: str) -> None:
    preferences = [
        _Preference(name, side, other)
        for name, other in ((first, second), (second, first))
        for side in _SIDES
    ]
    chosen = [preference for preference in preferences if preference.weight(report, classes) > 0]
    if len(chosen) < 2:
        return
    kept, *_, last = chosen
    reason = f"{kept.key} and {last.key} are both set, and their weights add up."
    report.warn(last.path, reason, "Keep one of them.")


def _lint_self(report: LintReport, classes: _Classes, name: str) -> None:
    joins = _Preference(name, "join", name)
    avoids = _Preference(name, "avoid", name)
    if joins.weight(report, classes) and avoids.weight(report, classes):
        report.refuse(avoids.path, f"{name} joins and avoids itself.", "Keep one of them.")


def _lint_repelled(report: LintReport, classes: _Classes, name: str, other: str) -> None:
    """Check that pods of another class don't repel more than pods of the class itself attract."""
    # The new pod and each one there have the term, and kube-scheduler adds both weights.
    attracts = 2 * _Preference(name, "join", name).weight(report, classes)
    if not attracts:
        return
    own_side = _Preference(name, "avoid", other)
    other_side = _Preference(other, "avoid", name)
    own_weight = own_side.weight(report, classes)
    repels = own_weight + other_side.weight(report, classes)
    if not repels:
        return
    # The smallest number n with n * repels > attracts.
    enough = int(attracts // repels) + 1
    if enough > _MAX_PODS_A_NODE:
        return
    pods = "pod" if enough == 1 else "pods"
    reason = (
        f"from {enough} {other} {pods} on, a node repels a {name} more than one {name} there"
        " attracts it."
    )
    cause = own_side if own_weight else other_side
    report.warn(cause.path, reason, f"Use 1, or raise podClasses.{name}.join.{name}.")


def _lint_shared_pools(report: LintReport, classes: _Classes) -> None:
    path = ("sharedPools", "namespaceSelector")
    shared = child(report.values, *path)
    # {} selects all namespaces.
    if shared is None or shared == {}:
        return
    for name, pod_class in classes.items():
        own = child(pod_class, "match", "namespaceSelector")
        if own is not None and own != shared:
            reason = f"replaces podClasses.{name}.match.namespaceSelector in every join and avoid."
            fix = f"It must select the namespaces of podClasses.{name} as well."
            report.warn(path, reason, fix)


def _lint_likeness(report: LintReport, classes: _Classes) -> None:
    for first, second in combinations(sorted(classes), 2):
        with report.part():
            earlier = mapping(classes[first].get("match"))
            later = mapping(classes[second].get("match"))
            if all(earlier.get(key) == later.get(key) for key in ("labels", "namespaceSelector")):
                reason = (
                    f"matches the same pods as podClasses.{first}, which comes first by name: this"
                    " class never gets a pod."
                )
                fix = "Match another label, or delete one with null."
                report.refuse(("podClasses", second, "match"), reason, fix)


def _lint_placeholder_class(report: LintReport, classes: _Classes) -> None:
    name = "placeholder"
    sets = listing(report.values.get("placeholders"))
    if not sets:
        return
    if name not in mapping(report.values.get("podClasses")):
        fix = "Keep the class, or set placeholders: []."
        report.error(("podClasses", name), None, "a class, which placeholders belong to", fix)
        return
    own = mapping(report.values["podClasses"])[name]
    with report.part():
        requires_label = child(report.values, "imageGate", "mode") == "requireLabel"
        if requires_label and child(own, "imageGate") is True:
            reason = "a placeholder that waits for an image doesn't trigger a scale-up."
            report.warn(("podClasses", name, "imageGate"), reason, "Set it to false.")
    labels = mapping(child(own, "match", "labels"))
    labels_of_pods = {**mapping(report.values.get("commonLabels")), **labels}
    for other in classes.keys() - {name}:
        with report.part():
            class_labels = mapping(child(classes[other], "match", "labels"))
            # Of the classes that match a pod, it has the one with the most labels.
            if len(class_labels) > len(labels) and class_labels.items() <= labels_of_pods.items():
                reason = f"with these, placeholders belong to podClasses.{other}, not to {name}."
                fix = f"Remove one of {', '.join(class_labels)}."
                report.refuse(("commonLabels",), reason, fix)
