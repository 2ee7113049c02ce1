"""A cluster made of files: what its ResourceQuotas, LimitRanges and PriorityClasses do to pods of
the values.
"""

from collections.abc import Mapping
from typing import Any, cast

from generator.faults import Fault, UsageError, describe
from generator.render.diff import read_manifests
from generator.render.manifests import render
from generator.values.helm_release import Release
from roost.doctor.checks import INSTALLED, run_checks
from roost.doctor.evidence import plural
from roost.doctor.install import Install
from roost.doctor.quotas import READS
from roost_core.kube.client import Client
from roost_core.objects.fields import JSONObject


class _GivenCluster:
    """Stands for a Client in checks that list such objects; it admits every pod."""

    def __init__(self, path: str, namespace: str) -> None:
        found = cast("list[JSONObject]", [*read_manifests(path).values()])
        self._bodies = [
            {**body, "metadata": {"namespace": namespace, **body["metadata"]}} for body in found
        ]
        kinds = {(body["kind"], body["metadata"]["namespace"]) for body in self._bodies}
        if not kinds & {(kind, namespace) for kind in READS} and not {
            "PriorityClass",
            "Namespace",
        } & {*dict(kinds)}:
            there = ", ".join(sorted(f"{kind} of {place}" for kind, place in kinds))
            expected = (
                f"ResourceQuotas and LimitRanges of {namespace}, or PriorityClasses: say the"
                " namespace with -n"
            )
            raise UsageError(f"{path}: found {there}, expected {expected}.")
        for body in self._bodies:
            try:
                READS.get(body["kind"], id)(
                    {**body, "metadata": {**(body["metadata"].get("labels") or {})}}
                )
            except (AttributeError, KeyError, TypeError, ValueError):
                found_spec = (
                    f"{body['kind']} {body['metadata']['name']}: found {describe(body.get('spec'))}"
                )
                raise UsageError(
                    f"{path}: {found_spec}, expected a spec as the API server takes it."
                ) from None

    def get(self, path: str, _query: object = None) -> dict[str, list[JSONObject]]:
        *_, above, namespace, resource = path.split("/")
        found = [body for body in self._bodies if plural(str(body["kind"])) == resource]
        return {
            "items": [
                body
                for body in found
                if above != "namespaces" or body["metadata"]["namespace"] == namespace
            ]
        }

    def find(self, _path: str) -> None:
        return None

    def create(self, _path: str, pod: JSONObject) -> JSONObject:
        return pod


def find_faults(path: str, values: Mapping[str, Any], release: Release) -> list[Fault]:
    """What the doctor says of these values where the objects of a file or folder are.

    Raises GeneratorError.
    """
    client = cast("Client", _GivenCluster(path, release.namespace))
    install = Install(
        client, release, values, [manifest.body for manifest in render(values, release)]
    )
    outcomes = run_checks(
        install, {name: INSTALLED[name] for name in ("priorities", "requests", "bookings")}
    )
    # What follows from the values is told already.
    found = [
        finding for outcome in outcomes for finding in outcome.findings if not finding.is_of_values
    ]
    return [
        Fault(path, 0, "", x.evidence, "", x.fix, "error" if x.severity == "error" else "warning")
        for x in found
    ]
