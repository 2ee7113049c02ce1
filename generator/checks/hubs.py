"""Lint `hubs`: a central release, the hubs that it serves, and what doesn't work for either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generator.checks.report import Report, at, mapping, text
from roost_core.objects.selectors import read_label_selector
from roost_core.placement.hub_documents import requires_a_label

if TYPE_CHECKING:
    from generator.faults import Path
    from generator.values.release import Release

# First part of the name of the webhook's entry for hubs, where entries for classes have the class.
_ENTRY: Final = "hubs"


def lint_hubs(report: Report, release: Release) -> None:
    """Check `hubs`, and what other keys must be because of it."""
    central = mapping(at(report.values, "hubs", "central"))
    owner, namespace = text(central.get("release")), text(central.get("namespace"))
    path: Path = ("hubs", "central")
    if bool(owner) != bool(namespace):
        missing = "namespace" if owner else "release"
        report.error((*path, missing), "", "the central release's", "Set both release and namespace, or neither.")
    if not owner and central.get("controllers") is True:
        report.refuse((*path, "controllers"), "true without hubs.central.release.", "Set the central release, too.")
    if owner and (owner, namespace) == (release.name, release.namespace):
        report.refuse(path, "names this very release.", "Leave it empty in the central release, and set hubs.serve.")
    if at(report.values, "hubs", "serve") is True:
        _lint_central(report, is_hub=bool(owner))
    elif not report.is_default(("hubs", "evictionsPerMinute")):
        reason = "without hubs.serve it does nothing: placeholderMover.evictionsPerMinute limits this release."
        report.hint(("hubs", "evictionsPerMinute"), reason, "Set it in the central release alone.")
    if owner:
        _lint_hub(report)


def is_hub_of_central(report: Report) -> bool:
    """Whether a central release runs scheduler and webhook for this one."""
    return bool(at(report.values, "hubs", "central", "release"))


def _lint_central(report: Report, *, is_hub: bool) -> None:
    path: Path = ("hubs", "serve")
    if is_hub:
        reason = "true together with hubs.central: a hub has no webhook to serve others with."
        report.refuse(path, reason, "Set serve in the central release alone.")
    if at(report.values, "admission", "mode") != "webhook":
        reason = "true without a webhook: admission policies hold the rules of one hub."
        report.refuse(path, reason, "Set admission.mode: webhook.")
    if report.values.get("clusterResources") is False:
        reason = "true with clusterResources: false: API servers would send no pod of another namespace."
        report.refuse(path, reason, "Set clusterResources: true in the central release.")
    if _ENTRY in mapping(report.values.get("podClasses")):
        reason = "the webhook's entry for the served hubs has this name."
        report.refuse(("podClasses", _ENTRY), reason, "Give the class another name.")
    own, total = (
        at(report.values, "placeholderMover", "evictionsPerMinute"),
        at(report.values, "hubs", "evictionsPerMinute"),
    )
    if (
        at(report.values, "placeholderMover", "enabled") is True
        and isinstance(own, int)
        and isinstance(total, int)
        and own > total
    ):
        reason = f"{own}, but hubs.evictionsPerMinute limits this release and all its hubs together to {total}."
        report.warn(("placeholderMover", "evictionsPerMinute"), reason, "Raise hubs.evictionsPerMinute, or lower this.")


def _lint_hub(report: Report) -> None:
    path: Path = ("hubs", "central")
    if at(report.values, "admission", "mode") != "webhook":
        reason = "set, but admission.mode isn't webhook: the central webhook would get no rules of this hub."
        report.refuse(path, reason, "Set admission.mode: webhook.")
    for name, entry in mapping(report.values.get("podClasses")).items():
        if at(entry, "match", "namespaceSelector") is not None:
            reason = "a hub of a central release has the pods of its own namespace alone."
            fix = "Leave it out, or give this hub a webhook of its own: hubs.central.release: ''."
            report.refuse(("podClasses", name, "match", "namespaceSelector"), reason, fix)
    if at(report.values, "hubs", "central", "controllers") is True and at(report.values, "events", "calendarUrl"):
        reason = (
            "the central release's controllers fetch no calendars for hubs: a hub's admin would choose what address is "
            "asked from inside the central release's network."
        )
        fix = "Book with ConfigMaps, or set hubs.central.controllers: false."
        report.refuse(("events", "calendarUrl"), reason, fix)
    shared = read_label_selector(at(report.values, "sharedPools", "namespaceSelector"))
    if shared is not None and not requires_a_label(shared):
        reason = "requires no label by matchLabels, In or Exists, so warm sets count this hub's own users alone."
        fix = "Choose a label of the hubs' namespaces, like {matchLabels: {hub.jupyter.org/pool: users}}."
        report.warn(("sharedPools", "namespaceSelector"), reason, fix)
    if at(report.values, "recorder", "enabled") is True:
        reason = "true beside hubs.central: each recorder records the whole cluster."
        report.warn(("recorder", "enabled"), reason, "Enable it in the central release alone.")
    for key in ("profiles", "strategies"):
        if not report.is_default(("scheduler", key)):
            reason = "beside hubs.central, pods get the central release's scheduler."
            fix = "Set the same values in the central release; without its name, a profile isn't used."
            report.warn(("scheduler", key), reason, fix)
