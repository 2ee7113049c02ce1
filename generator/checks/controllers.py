"""Lint the controllers' switch and the image gate's patience, the puller with its profiles and
images, and popular images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from generator.checks.contract import MOST_PULLERS, LintReport
from generator.checks.faulty_keys import sound_entries, sound_items
from generator.checks.placeholders import placeholder_sets
from generator.checks.tolerations_and_terms import lint_required_term, lint_toleration
from generator.faults import KeyPath, describe
from generator.render.functions import complete_placeholder_set
from generator.render.go_json import to_json
from generator.render.managed_images import MOST_BYTES, are_too_many, puller_groups
from generator.values.lookups import child, listing, mapping, number
from generator.values.merge import Values
from generator.values.release_name import Release
from roost_core.objects.image_references import is_reference
from roost_core.placement.labels import USER_CLASS
from roost_core.release.image_gate import IMAGE_VOLUME_MINOR

# Each is a pod on every node it selects.
_MANY_PULLERS: Final = 20
# The largest release.json. Its ConfigMap has it indented, and Kubernetes takes 1 MiB.
_MOST_BYTES: Final = 2**19
# A user waits twice as long where the first node that is opened is the wrong one.
_PATIENT_SECONDS: Final = 15
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
    for lint in (
        _lint_program,
        _lint_gate,
        _lint_choices,
        _lint_release_size,
        _lint_references,
        _lint_popular,
    ):
        with report.part():
            lint(report)
    with report.part():
        _lint_puller(report, release)
    with report.part():
        _lint_profiles(report)


def _is_on(report: LintReport) -> bool:
    return child(report.values, "controllers", "enabled") is True


def _lint_program(report: LintReport) -> None:
    controllers = mapping(report.values.get("controllers"))
    mode = child(report.values, "imageGate", "mode")
    if not _is_on(report):
        path = ("controllers", "enabled")
        if mode == "startupTaint":
            reason = "with startupTaint nothing removes the taint: new nodes never accept users."
            report.refuse(path, reason, "Set it to true, or use another imageGate.mode.")
        elif mode == "requireLabel":
            reason = (
                "nobody labels nodes, so requireLabel only prefers; what controllers wrote before"
                " stays on nodes."
            )
            fix = (
                "Set it to true, or imageGate.mode to off; take what was written away with `roost"
                " cleanup`."
            )
            report.warn(path, reason, fix)
        return
    if number(controllers.get("replicas")) == 0:
        reason = "with 0 nobody labels nodes or moves placeholders, and requireLabel only prefers."
        report.warn(("controllers", "replicas"), reason, "Use 2, or controllers.enabled: false.")
    if report.values.get("clusterResources") is False:
        reason = (
            "false: somebody else must let the controllers patch nodes, or nothing labels them."
        )
        report.warn(
            ("clusterResources",),
            reason,
            "Set controllers.enabled to false where that isn't granted.",
        )


def _lint_gate(report: LintReport) -> None:
    """Warn of what makes users wait longer than they would without Roost."""
    gate = mapping(report.values.get("imageGate"))
    # In all other cases the gate requires nothing.
    if (
        gate.get("mode") != "requireLabel"
        or child(report.values, "admission", "mode") != "webhook"
        or not _is_on(report)
    ):
        return
    if number(gate.get("openAfterSeconds")) > _PATIENT_SECONDS:
        reason = (
            f"above {_PATIENT_SECONDS}, a user may start more than 30 s later than without Roost."
        )
        report.warn(("imageGate", "openAfterSeconds"), reason, f"Use {_PATIENT_SECONDS} or less.")


def _lint_puller(report: LintReport, release: Release) -> None:
    puller = mapping(report.values.get("prePuller"))
    is_on = puller.get("enabled") is True
    whose = child(report.values, "imageGate", "pullerPods")
    mounts = puller.get("method") == "imageVolume"
    if mounts and release.kube_minor < IMAGE_VOLUME_MINOR and is_on:
        reason = (
            f"image volumes are off in Kubernetes {release.kube_version}, unless its feature gate"
            " was set."
        )
        report.warn(("prePuller", "method"), reason, "Use auto or noop.")
    if is_on and whose == "zeroToJupyterHub":
        reason = "the gate follows zero-to-jupyterhub's puller, and Roost's pulls the same images."
        report.warn(
            ("prePuller", "enabled"), reason, "Set it to false, or imageGate.pullerPods to roost."
        )


def _lint_choices(report: LintReport) -> None:
    """Refuse choices of profiles that multiply each other, as does the chart's
    `roost.refuse_too_many`.
    """
    # Asked first, since `are_too_many` is slow: too many choices make no puller.
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


def _lint_release_size(report: LintReport) -> None:
    """Refuse pullers and placeholder sets that make release.json too large: each is written there
    with all that it inherits.
    """
    size = 0
    for group in report.pullers:
        size += len(to_json(list(group)).encode())
        if size > _MOST_BYTES:
            _refuse_release_size(report, _PROFILES)
            return
    for own in placeholder_sets(report):
        size += len(to_json(complete_placeholder_set(own.named, own.defaults)).encode())
        if size > _MOST_BYTES:
            _refuse_release_size(report, ("placeholders",))
            return


def _refuse_release_size(report: LintReport, path: KeyPath) -> None:
    reason = f"with what each of them inherits it takes more than {_MOST_BYTES} bytes."
    report.refuse(path, reason, "Use fewer, or fewer tolerations, terms and labels.")


def _lint_profiles(report: LintReport) -> None:
    """Find profiles that no DaemonSet can serve, and labels that are ignored."""
    singleuser = report.values.get("singleuser")
    puller = report.values.get("prePuller")
    if not mapping(singleuser).get("profileList") and not mapping(puller).get("extraImages"):
        return
    for index, holder in enumerate(listing(child(singleuser, "profileList"))):
        for key, value in mapping(child(holder, "kubespawner_override", "node_selector")).items():
            # KubeSpawner would send it, and the API server refuse the pod.
            if value is not None and not isinstance(value, str):
                where = (*_PROFILES, index, "kubespawner_override", "node_selector", key)
                report.warn(
                    where,
                    f"{value!r} is not a string, so no pod can select it.",
                    "Write it in quotes.",
                )
    # What keys for all users say is checked by the schema. Here it is what profiles add.
    of_all_users = (
        child(puller, "tolerations"),
        child(singleuser, "extraTolerations"),
        child(singleuser, "extraNodeAffinity", "required"),
    )
    looked_at = {to_json(entry) for entries in of_all_users for entry in listing(entries)}
    for group in report.pullers:
        _lint_entries(report, group.tolerations, lint_toleration, looked_at)
        _lint_entries(report, group.required_terms, lint_required_term, looked_at)
    count = len(report.pullers)
    fix = "Give profiles fewer different node_selector values."
    if count > MOST_PULLERS:
        reason = f"its node selectors make more than {MOST_PULLERS} DaemonSets of the puller."
        report.refuse(_PROFILES, reason, fix)
    elif count > _MANY_PULLERS:
        reason = f"its node selectors make {count} DaemonSets of the puller."
        report.warn(_PROFILES, reason, fix)
    for key, value in sorted(
        {pair for group in report.pullers for pair in group.node_selector.items()}
    ):
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            report.error(_PROFILES, {key: value}, "a node's label and its value")


def _lint_entries(
    report: LintReport,
    entries: Iterable[object],
    why_wrong: Callable[[object], str],
    looked_at: set[str],
) -> None:
    """Refuse tolerations or terms of profiles that no pod can have.

    looked_at: entries as JSON that aren't looked at again. Those of this call are added.
    """
    for entry in entries:
        written = to_json(entry)
        if written in looked_at:
            continue
        looked_at.add(written)
        wrong = why_wrong(entry)
        if wrong:
            reason = f"a profile's {describe(entry)} {wrong}."
            report.refuse(_PROFILES, reason, "The API server rejects such pods.")


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


def _lint_popular(report: LintReport) -> None:
    popular = mapping(report.values.get("popularImages"))
    classes = mapping(report.values.get("podClasses"))
    if popular.get("enabled") is not True:
        return
    path = ("popularImages", "enabled")
    if not _is_on(report):
        report.warn(
            path, "only the controllers pull popular images.", "Set controllers.enabled to true."
        )
    if not classes.get(USER_CLASS) or number(popular.get("perNode")) == 0:
        reason = "without podClasses.user, or with perNode 0, no image is ever popular."
        report.warn(path, reason, "Set it to false, or keep the class and raise perNode.")
