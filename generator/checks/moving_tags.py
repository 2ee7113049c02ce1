"""Users' images whose tag is given to other content later: a hint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from generator.checks.contract import LintReport
from generator.faults import KeyPath, some
from generator.values.lookups import child, mapping
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
    singleuser = mapping(report.values.get("singleuser"))
    found = moving(dict.fromkeys(image for group in report.pullers for image in group.images))
    if not found:
        return
    name = child(singleuser, "image", "name")
    tag = child(singleuser, "image", "tag")
    usual = f"{name}:{tag}" if tag else name
    tools = mapping(child(singleuser, "networkTools", "image"))
    path: KeyPath = ("singleuser", "profileList")
    if usual in found:
        path = ("singleuser", "image", "tag")
    elif f"{tools.get('name')}:{tools.get('tag')}" == found[0]:
        path = ("singleuser", "networkTools", "image", "tag")
    report.hint(path, f"{some(found)}: a tag that moves; {STALE}.", FIX)
