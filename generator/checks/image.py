"""Images that no registry has, and an image beside the users' that the values don't list: hints."""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.faults import KeyPath
from generator.values.lookups import child, mapping
from generator.values.release_name import Release


def check(report: LintReport, _release: Release) -> None:
    """Hint at an image that no registry has, and at what keeps the warm set on although pullers
    bring users' images.
    """
    values = report.values
    paths: list[KeyPath] = [("image", "name")]
    if child(values, "recorder", "enabled") is True:
        paths.append(("recorder", "image", "name"))
    for path in paths:
        if report.is_default(path):
            reason = (
                "no registry has this image, so nodes can run Roost only if they were given it."
            )
            fix = (
                "Build it, push it to your registry, and name it here:"
                " docs/install-helm.md#the-image."
            )
            report.hint(path, reason, fix)
    can_have_warm_sets = (
        child(values, "admission", "mode") == "webhook"
        and child(values, "webhook", "readNodes") is True
    )
    has_set = any(
        child(entry, "warm") is not None for entry in mapping(values.get("podClasses")).values()
    )
    lists_users = child(values, "singleuser", "image", "name") or child(
        values, "singleuser", "profileList"
    )
    # Another container's image may be missing, too, but this one zero-to-jupyterhub runs unless it
    # is told not to.
    tools = ("singleuser", "networkTools", "image", "name")
    if (
        can_have_warm_sets
        and has_set
        and child(values, "prePuller", "enabled")
        and lists_users
        and not child(values, *tools)
    ):
        reason = (
            "if the hub has cloudMetadata.blockWithIptables (zero-to-jupyterhub's default),"
            " each user's pod runs that chart's network tools, too. While users run any image that"
            " isn't listed, they keep their warm set, which takes more nodes than packing them does"
            " where the puller brings everything."
        )
        fix = (
            "Name it as in the hub's values; name images of other sidecars in"
            " singleuser.extraContainers."
        )
        report.hint(tools, reason, fix)
