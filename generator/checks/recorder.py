"""Lint the recorder: its database, and its permission to read the cluster."""

from __future__ import annotations

from typing import Final

from generator.checks.contract import LintReport, named_by
from generator.faults import KeyPath
from generator.values.lookups import child, listing, mapping, text
from generator.values.release_name import Release
from roost_core.objects.quantities import parse_quantity

_DATABASE: Final[KeyPath] = ("recorder", "database")
_VARIABLE: Final = "ROOST_DATABASE"
# What an empty database and its log take on a disk.
_LEAST_BYTES: Final = 2**20


def check(report: LintReport, _release: Release) -> None:
    """Check the keys of the recorder, if it runs."""
    recorder = mapping(report.values.get("recorder"))
    if recorder.get("enabled") is not True:
        return
    if report.values.get("clusterResources") is False:
        reason = (
            "false: without permission to list and watch the cluster's pods the recorder records"
            " nothing."
        )
        report.warn(("clusterResources",), reason, "Grant it, or set recorder.enabled to false.")
    secret = text(child(recorder, "database", "existingSecret"))
    if not secret:
        _lint_file(report, mapping(child(recorder, "database", "persistence")))
    extra_env = named_by(report, "recorder", "extraEnv")
    for index, entry in enumerate(listing(child(report.values, *extra_env))):
        if child(entry, "name") == _VARIABLE:
            reason = f"{_VARIABLE} is already set by recorder.database."
            report.refuse(
                (*extra_env, index), reason, "Give the URL in recorder.database.existingSecret."
            )


def _lint_file(report: LintReport, persistence: dict[str, object]) -> None:
    """Check SQLite's file: it is on a volume that is large enough."""
    if persistence.get("enabled") is not True:
        reason = (
            "false without an existingSecret: the history is lost when the recorder's pod is"
            " replaced."
        )
        report.warn(
            (*_DATABASE, "persistence", "enabled"), reason, "Set it to true, or name a Secret."
        )
    if parse_quantity(persistence.get("size")) < _LEAST_BYTES:
        report.error(
            (*_DATABASE, "persistence", "size"), persistence.get("size"), "a size like 5Gi"
        )
