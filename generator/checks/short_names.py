"""Users' images whose name has no registry, which runtimes resolve differently: a hint."""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.faults import some
from generator.render.managed_images import key_naming
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
    report.hint(key_naming(report.values, short, "name"), reason, fix)
