"""Users' images whose name has no registry, which runtimes resolve differently: a hint."""

from __future__ import annotations

from generator.checks.contract import LintReport, at
from generator.faults import Path, some
from generator.values.helm_release import Release
from roost_core.objects.image_references import names_registry, normalise_reference


def check(report: LintReport, _release: Release) -> None:
    """Hint at images without a registry: nodes may list them under another name than Roost's."""
    images = dict.fromkeys(image for group in report.pullers for image in group.images)
    short = [image for image in images if not names_registry(image)]
    if not short:
        return
    name = at(report.values, "singleuser", "image", "name")
    is_users = isinstance(name, str) and any(
        image == name or image.startswith(f"{name}:") for image in short
    )
    path: Path = ("singleuser", "image", "name") if is_users else ("singleuser", "profileList")
    tools = ("singleuser", "networkTools", "image", "name")
    tools_name = at(report.values, *tools)
    if not is_users and isinstance(tools_name, str) and short[0].startswith(f"{tools_name}:"):
        path = tools
    reason = (
        f"{some(short)}: no registry is named. CRI-O looks for it where the node's configuration"
        " says, and nodes then list the image under that registry's name: Roost can't tell when it"
        " leaves a node."
    )
    report.hint(path, reason, f"Name its registry: {normalise_reference(short[0])}, or another.")
