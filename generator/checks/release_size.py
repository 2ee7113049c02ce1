"""Lint how large release.json gets."""

from __future__ import annotations

from typing import Final

from generator.checks.contract import LintReport
from generator.checks.placeholders import placeholder_sets
from generator.faults import KeyPath
from generator.render.functions import complete_placeholder_set
from generator.render.go_json import to_json
from generator.values.release_name import Release

# The largest release.json, in bytes. Its ConfigMap holds it indented, which makes it larger, and
# Kubernetes takes ConfigMaps of up to 1 MiB.
_MOST_BYTES: Final = 2**19


def check(report: LintReport, _release: Release) -> None:
    """Refuse pullers, or placeholder sets, that make release.json too large.

    release.json holds each of them with everything that it inherits.
    """
    size = 0
    for group in report.pullers:
        size += len(to_json(list(group)).encode())
        if size > _MOST_BYTES:
            _refuse(report, ("singleuser", "profileList"))
            return
    for listed in placeholder_sets(report):
        complete = complete_placeholder_set(listed.named, listed.defaults)
        size += len(to_json(complete).encode())
        if size > _MOST_BYTES:
            _refuse(report, ("placeholders",))
            return


def _refuse(report: LintReport, path: KeyPath) -> None:
    reason = f"with what each of them inherits it takes more than {_MOST_BYTES} bytes."
    report.refuse(path, reason, "Use fewer, or fewer tolerations, terms and labels.")
