"""Lint the puller: how it pulls, and what profiles, images and their choices make of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from generator.checks.contract import MOST_PULLERS, LintReport
from generator.checks.faulty_keys import sound_entries, sound_items
from generator.checks.tolerations_and_terms import lint_required_term, lint_toleration
from generator.faults import KeyPath, describe
from generator.render.go_json import to_json
from generator.render.managed_images import MOST_BYTES, are_too_many, puller_groups
from generator.values.lookups import child, listing, mapping
from generator.values.merge import Values
from generator.values.profile_overrides import overrides_by_place
from generator.values.release_name import Release
from roost_core.objects.image_references import is_reference
from roost_core.release.image_gate import IMAGE_VOLUME_MINOR

# Each is a pod on every node it selects.
_MANY_PULLERS: Final = 20
_LABEL_KEY: Final = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
    re.ASCII,
)
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_PROFILES: Final[KeyPath] = ("singleuser", "profileList")
IMAGE: Final = (
    "an image's name in lower case, like quay.io/jupyter/base-notebook:2026-01-05, or NAME@sha256:"
    " and 64 hex digits"
)


def check(report: LintReport, release: Release) -> None:
    """Check each part by itself: a faulty key ends its own part alone."""
    with report.part():
        _lint_method(report, release)
    for lint in (_lint_choices, _lint_references, _lint_profiles):
        with report.part():
            lint(report)


def _lint_method(report: LintReport, release: Release) -> None:
    puller = mapping(report.values.get("prePuller"))
    is_on = puller.get("enabled") is True
    whose = child(report.values, "imageGate", "pullerPods")
    mounts_images = puller.get("method") == "imageVolume"
    if mounts_images and release.kube_minor < IMAGE_VOLUME_MINOR and is_on:
        reason = (
            f"image volumes are off in Kubernetes {release.kube_version}, unless its feature gate"
            " was set."
        )
        report.warn(("prePuller", "method"), reason, "Use auto or noop.")
    if is_on and whose == "zeroToJupyterHub":
        reason = "the gate follows zero-to-jupyterhub's puller, and Roost's pulls the same images."
        fix = "Set it to false, or imageGate.pullerPods to roost."
        report.warn(("prePuller", "enabled"), reason, fix)


def _lint_choices(report: LintReport) -> None:
    """Refuse choices of profiles that multiply each other, as does the chart's
    `roost.refuse_too_many`.
    """
    # Pullers exist, so the choices weren't too many: those make no puller. Asking is slow.
    if report.pullers:
        return
    if not are_too_many(report.values.get("singleuser"), report.values.get("prePuller")):
        return
    path = _PROFILES
    if not child(report.values, "singleuser", "profileList"):
        path = ("prePuller", "extraImages")
    reason = (
        "its images, each with all that its users have, come to more than"
        f" {MOST_BYTES // 2**20} MiB."
    )
    fix = (
        "Give fewer choices or images, or fewer tolerations, terms, labels and containers to"
        " all users."
    )
    report.refuse(path, reason, fix)


def _lint_profiles(report: LintReport) -> None:
    """Find profiles that no DaemonSet can serve, and labels that are ignored."""
    singleuser = report.values.get("singleuser")
    puller = report.values.get("prePuller")
    if not mapping(singleuser).get("profileList") and not mapping(puller).get("extraImages"):
        return
    for index, profile in enumerate(listing(child(singleuser, "profileList"))):
        for place, override in overrides_by_place(profile):
            for key, value in mapping(override.get("node_selector")).items():
                # KubeSpawner would send it, and the API server refuse the pod.
                if value is not None and not isinstance(value, str):
                    where = (*_PROFILES, index, *place, "node_selector", key)
                    reason = f"{value!r} is not a string, so no pod can select it."
                    report.warn(where, reason, "Write it in quotes.")
    # What keys for all users say is checked by the schema. Here it is what profiles add.
    of_all_users = (
        child(puller, "tolerations"),
        child(singleuser, "extraTolerations"),
        child(singleuser, "extraNodeAffinity", "required"),
    )
    checked = {to_json(entry) for entries in of_all_users for entry in listing(entries)}
    for group in report.pullers:
        _lint_entries(report, group.tolerations, lint_toleration, checked)
        _lint_entries(report, group.required_terms, lint_required_term, checked)
    count = len(report.pullers)
    fix = "Give profiles fewer different node_selector values."
    if count > MOST_PULLERS:
        reason = f"its node selectors make more than {MOST_PULLERS} DaemonSets of the puller."
        report.refuse(_PROFILES, reason, fix)
    elif count > _MANY_PULLERS:
        reason = f"its node selectors make {count} DaemonSets of the puller."
        report.warn(_PROFILES, reason, fix)
    labels = {pair for group in report.pullers for pair in group.node_selector.items()}
    for key, value in sorted(labels):
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            report.error(_PROFILES, {key: value}, "a node's label and its value")


def _lint_entries(
    report: LintReport,
    entries: Iterable[object],
    why_wrong: Callable[[object], str],
    checked: set[str],
) -> None:
    """Refuse tolerations or terms of profiles that no pod can have.

    checked: entries, as JSON, that aren't checked again. Those of this call are added.
    """
    for entry in entries:
        written = to_json(entry)
        if written in checked:
            continue
        checked.add(written)
        wrong = why_wrong(entry)
        if wrong:
            reason = f"a profile's {describe(entry)} {wrong}, and the API server rejects such pods."
            report.refuse(_PROFILES, reason, "Correct it in the profile.")


def _lint_references(report: LintReport) -> None:
    """Find what no kubelet can pull: it would hold the puller up before all other images."""
    singleuser = report.values.get("singleuser")
    puller = report.values.get("prePuller")
    for key in ("image", "networkTools", "initContainers", "extraContainers"):
        with report.part():
            _lint_images(report, ("singleuser", key), {key: child(singleuser, key)}, {})
    for index, profile in sound_entries(child(singleuser, "profileList")):
        with report.part():
            pulls = {"pullProfileListImages": child(puller, "pullProfileListImages")}
            _lint_images(report, (*_PROFILES, index), {"profileList": [profile]}, pulls)
    for name, image in sound_items(child(puller, "extraImages")):
        with report.part():
            path = ("prePuller", "extraImages", name)
            _lint_images(report, path, {}, {"extraImages": {name: image}})


def _lint_images(report: LintReport, path: KeyPath, singleuser: Values, puller: Values) -> None:
    groups = puller_groups(singleuser, puller)
    for image in sorted({image for group in groups for image in group.images}):
        if not is_reference(image):
            report.error(path, image, IMAGE)
