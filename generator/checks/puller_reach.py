"""Lint whether images are pulled to the nodes that users can use: by which puller, with which
Secrets, on which nodes.

On a node that no puller reaches users start cold: their image is pulled while they wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from generator.checks.contract import LintReport
from generator.checks.placeholders import ListedSet, is_wanted, placeholder_sets, show_toleration
from generator.render.managed_images import RESOURCE_TRAITS, managed_images
from generator.values.lookups import child, listing, mapping, secret_names, text
from generator.values.merge import Values
from generator.values.profile_overrides import overrides
from generator.values.release_name import Release
from roost_core.objects.image_references import normalise_reference

_COLD: Final = "never get the images in advance: users there start cold"
# The key of a toleration that tolerates every taint.
_ANY_KEY: Final = ""
# Keys of a profile that send its users to nodes that a single puller for all users doesn't reach.
_STEERING: Final = ("node_selector", "tolerations", "node_affinity_required", *RESOURCE_TRAITS)


def check(report: LintReport, _release: Release) -> None:
    """Check the puller against the nodes that users and placeholders can use."""
    singleuser = report.values.get("singleuser")
    puller = report.values.get("prePuller")
    if not _has_images(mapping(singleuser), mapping(puller)):
        return
    with report.part():
        _lint_puller_pods(report)
    if child(puller, "enabled") is not True:
        return
    for lint in (_lint_narrower, _lint_unpulled_profiles, _lint_secrets):
        with report.part():
            lint(report)
    tolerated = {
        group.component: {
            text(toleration.get("key") or _ANY_KEY) for toleration in group.tolerations
        }
        for group in report.pullers
    }
    for placeholder_set in placeholder_sets(report):
        with report.part():
            if report.pullers and is_wanted(placeholder_set):
                _lint_set(report, placeholder_set, tolerated)


def _has_images(singleuser: Values, puller: Values) -> bool:
    """Whether there can be an image to pull; cheap, because most renders have none."""
    sources = (
        child(singleuser, "image", "name"),
        singleuser.get("profileList"),
        puller.get("extraImages"),
        singleuser.get("initContainers"),
        singleuser.get("extraContainers"),
        child(singleuser, "networkTools", "image", "name"),
    )
    return any(sources)


def _lint_puller_pods(report: LintReport) -> None:
    """Check imageGate.pullerPods: that some puller runs, on which the gate depends, and that the
    hub's single puller reaches the nodes of every profile.
    """
    mode = child(report.values, "imageGate", "mode")
    whose = child(report.values, "imageGate", "pullerPods")
    is_on = child(report.values, "prePuller", "enabled")
    if mode == "off":
        return
    if whose == "roost" and is_on is not True:
        reason = (
            "false with imageGate.pullerPods: roost: nothing pulls images to nodes, so new nodes"
            f" {_COLD}."
        )
        fix = (
            "Set it to true; or imageGate.pullerPods to zeroToJupyterHub where that chart's pullers"
            " run, or imageGate.mode to off."
        )
        report.warn(("prePuller", "enabled"), reason, fix)
    if whose != "zeroToJupyterHub":
        return
    for index, profile in enumerate(listing(child(report.values, "singleuser", "profileList"))):
        named = {key for override in overrides(profile) for key in override if override[key]}
        names = [key for key in _STEERING if key in named]
        if names:
            reason = (
                f"{' and '.join(names)}: zero-to-jupyterhub has one puller for all users, so nodes"
                f" that only this profile's users may use {_COLD}."
            )
            fix = (
                "Set prePuller.enabled to true and imageGate.pullerPods to roost: Roost's puller"
                " runs there."
            )
            report.warn(("singleuser", "profileList", index), reason, fix)


def _lint_narrower(report: LintReport) -> None:
    """`prePuller.nodeSelector` restricts the puller, not the users."""
    users = mapping(child(report.values, "singleuser", "nodeSelector"))
    for key, value in mapping(child(report.values, "prePuller", "nodeSelector")).items():
        if users.get(key) != value:
            reason = f"users may use nodes without {key}={value}, and these {_COLD}."
            fix = (
                "Name it in singleuser.nodeSelector, if users are kept to such nodes; or remove it"
                " here."
            )
            report.warn(("prePuller", "nodeSelector", key), reason, fix)


def _lint_unpulled_profiles(report: LintReport) -> None:
    if child(report.values, "prePuller", "pullProfileListImages") is not False:
        return
    brought = managed_images(report.values.get("singleuser"), report.values.get("prePuller"))
    count = 0
    for profile in listing(child(report.values, "singleuser", "profileList")):
        images = [override.get("image") for override in overrides(profile)]
        references = {normalise_reference(text(image)) for image in images if image}
        count += not references <= brought
    if count:
        reason = (
            f"false: the images of {count} profile(s) are not pulled to any node: their users start"
            " cold."
        )
        fix = "Set it to true, or name them in extraImages."
        report.warn(("prePuller", "pullProfileListImages"), reason, fix)


def _lint_secrets(report: LintReport) -> None:
    """The users of a profile can have pull Secrets of their own, which the puller needs, too."""
    known = {
        *secret_names(report.values.get("imagePullSecrets")),
        *secret_names(child(report.values, "singleuser", "image", "pullSecrets")),
    }
    for index, profile in enumerate(listing(child(report.values, "singleuser", "profileList"))):
        named: list[str] = []
        for override in overrides(profile):
            named += secret_names(override.get("image_pull_secrets"))
        for name in dict.fromkeys(named):
            if name not in known:
                reason = (
                    f"its users pull with the Secret {name}, which the puller doesn't have: its"
                    f" nodes {_COLD}."
                )
                fix = "Name it in singleuser.image.pullSecrets."
                report.warn(("singleuser", "profileList", index), reason, fix)


def _contradict(selector: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether no node can have the labels of both: one names another value of the same label."""
    return any(selector[label] != other[label] for label in selector.keys() & other.keys())


def _lint_set(
    report: LintReport, placeholder_set: ListedSet, tolerated: Mapping[str, Set[object]]
) -> None:
    """A puller should run wherever placeholders can: otherwise the user who takes their room waits
    for a pull.

    tolerated: by the puller's component, the keys of its tolerations.
    """
    selector = mapping(placeholder_set.value("nodeSelector"))
    groups = report.pullers
    pullers = [group for group in groups if not _contradict(selector, group.node_selector)]
    path = ("placeholders", placeholder_set.position)
    if not pullers:
        labels = ", ".join(f"{key}={value}" for key, value in selector.items())
        reason = f"no puller runs on nodes with {labels}: these {_COLD}."
        fix = (
            "Give the profile of its users this node_selector, or name the labels in"
            " singleuser.nodeSelector."
        )
        report.warn(path, reason, fix)
        return
    tolerations = [
        mapping(toleration)
        for toleration in listing(placeholder_set.value("tolerations"))
        if child(toleration, "key")
    ]
    # Keys alone are compared: which value a taint of that key has isn't known here.
    missing: dict[str, list[str]] = {}
    for group in pullers:
        keys = tolerated[group.component]
        missing[group.component] = [
            show_toleration(toleration)
            for toleration in tolerations
            if _ANY_KEY not in keys and text(toleration["key"]) not in keys
        ]
    is_reached = any(not lacking for lacking in missing.values())
    if not is_reached:
        least = min(missing.values(), key=len)
        reason = (
            f"no puller tolerates {' and '.join(least)}, as these placeholders do: nodes with that"
            f" taint {_COLD}."
        )
        fix = (
            "Name it in prePuller.tolerations, or as a toleration of the profile whose users go"
            " there."
        )
        report.warn(path, reason, fix)
