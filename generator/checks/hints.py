"""Hint at values that work as they are written and might work better. Only `roost validate` shows hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.checks.report import Report, at, mapping

if TYPE_CHECKING:
    from generator.faults import Fault
    from generator.values.merge import Merged


def find_hints(merged: Merged) -> list[Fault]:
    """Every hint, with file and line; `merged` must fit the schema."""
    report = Report(merged.values, merged.places, merged.defaults)
    if merged.values.get("enabled") is not False:
        _hint_image(report)
        _hint_unlisted(report)
    return report.faults


def _hint_image(report: Report) -> None:
    """Hint at an image that no registry has."""
    paths = [("image", "name"), ("recorder", "image", "name")]
    for path in paths if at(report.values, "recorder", "enabled") is True else paths[:1]:
        if report.is_default(path):
            reason = "no registry has this image, so nodes can run Roost only if they were given it."
            fix = "Build it, push it to your registry, and name it here: docs/install-helm.md#the-image."
            report.hint(path, reason, fix)


def _hint_unlisted(report: Report) -> None:
    """Hint at the image beside the users' that keeps the warm set on although pullers bring the users'.

    Another container's image may be missing as well, but that one zero-to-jupyterhub runs unless it is told not to.
    """
    values = report.values
    works = at(values, "admission", "mode") == "webhook" and at(values, "webhook", "readNodes") is True
    has_set = any(at(entry, "warm") is not None for entry in mapping(values.get("podClasses")).values())
    if not (works and has_set and at(values, "prePuller", "enabled")):
        return
    path = ("singleuser", "networkTools", "image", "name")
    lists_users = at(values, "singleuser", "image", "name") or at(values, "singleuser", "profileList")
    if at(values, *path) or not lists_users:
        return
    reason = (
        "empty: if the hub has cloudMetadata.blockWithIptables (zero-to-jupyterhub's default), each user's pod runs "
        "that chart's network tools, too. While users run any image that isn't listed, they keep their warm set, which "
        "takes more nodes than packing them does where the puller brings everything."
    )
    fix = "Name it as in the hub's values; name images of other sidecars in singleuser.extraContainers."
    report.hint(path, reason, fix)
