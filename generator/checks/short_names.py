"""Users' images whose name has no registry, which runtimes resolve differently: a hint."""

from __future__ import annotations

from collections.abc import Sequence

from generator.checks.contract import LintReport
from generator.faults import KeyPath, some
from generator.values.lookups import child
from generator.values.release_name import Release
from roost_core.objects.image_references import names_registry, normalise_reference


def check(report: LintReport, _release: Release) -> None:
    """Hint at images without a registry: nodes may list them under another name than Roost's."""
    images = dict.fromkeys(image for group in report.pullers for image in group.images)
    short = [image for image in images if not names_registry(image)]
    if not short:
        return
    reason = (
        f"{some(short)}: no registry is named. CRI-O looks for it where the node's configuration"
        " says, and nodes then list the image under that registry's name: Roost can't tell when it"
        " leaves a node."
    )
    fix = f"Name its registry: {normalise_reference(short[0])}, or another."
    report.hint(_where(report, short), reason, fix)


def _where(report: LintReport, short: Sequence[str]) -> KeyPath:
    """The key that names images without a registry."""
    usual = ("singleuser", "image", "name")
    name = child(report.values, *usual)
    tools = ("singleuser", "networkTools", "image", "name")
    tools_name = child(report.values, *tools)
    if isinstance(name, str) and any(
        image == name or image.startswith(f"{name}:") for image in short
    ):
        return usual
    if isinstance(tools_name, str) and short[0].startswith(f"{tools_name}:"):
        return tools
    return ("singleuser", "profileList")
