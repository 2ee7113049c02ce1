"""Images beside the users' that the values don't list: a hint."""

from __future__ import annotations

from generator.checks.contract import LintReport, at, mapping
from generator.values.release import Release


def check(report: LintReport, _release: Release) -> None:
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
