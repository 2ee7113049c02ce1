"""Users' images whose tag is given to other content later: a hint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from generator.checks.contract import LintReport
from generator.faults import some
from generator.render.managed_images import key_naming
from generator.values.release_name import Release
from roost_core.objects.image_references import split_reference

STALE: Final = "after a push, nodes with the old image still count as having it"
FIX: Final = "Give each build a tag of its own, or name its digest (docs/puller.md#tags-that-move)."


def moving(images: Iterable[str]) -> list[str]:
    """References without digest whose tag is missing, or has no digit: `latest`, `prod`, `main`."""
    return [image for image in images if _moves(image)]


def _moves(image: str) -> bool:
    _, tag, digest = split_reference(image)
    return not digest and not any(character.isdigit() for character in tag)


def check(report: LintReport, _release: Release) -> None:
    """Hint at tags that move: puller, gate and warm set go by the reference."""
    images = moving(dict.fromkeys(image for group in report.pullers for image in group.images))
    if images:
        key = key_naming(report.values, images, "tag")
        report.hint(key, f"{some(images)}: a tag that moves; {STALE}.", FIX)
