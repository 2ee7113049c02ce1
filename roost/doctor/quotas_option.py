"""What `--quotas` of `roost validate` and `roost import` says: what ResourceQuotas, LimitRanges and
PriorityClasses of files do to pods of the values. The files stand for a cluster.
"""

from collections.abc import Mapping
from typing import Any, cast

from generator.faults import Fault, UsageError, describe
from generator.render.manifests import render
from generator.render.read_manifests import read_manifests
from generator.values.lookups import child
from generator.values.release_name import Release
from roost.doctor.checks import INSTALLED, run_checks
from roost.doctor.evidence import plural
from roost.doctor.install import Install
from roost.doctor.quotas import READS
from roost_core.kube.client import Client
from roost_core.objects.fields import JSONObject


class _GivenCluster:
    """Stands for a Client in checks that list these objects; it admits every pod."""

    def __init__(self, path: str, namespace: str) -> None:
        found = cast("list[JSONObject]", [*read_manifests(path).values()])
        self._bodies = [
            {**body, "metadata": {"namespace": namespace, **body["metadata"]}} for body in found
        ]
        places = {(str(body["kind"]), body["metadata"]["namespace"]) for body in self._bodies}
        is_judged = any(
            kind in ("PriorityClass", "Namespace") or (kind in READS and place == namespace)
            for kind, place in places
        )
        if not is_judged:
            there = ", ".join(sorted(f"{kind} of {place}" for kind, place in places))
            expected = (
                f"ResourceQuotas and LimitRanges of {namespace}, or PriorityClasses: say the"
                " namespace with -n"
            )
            raise UsageError(f"{path}: found {there}, expected {expected}.")
        for body in self._bodies:
            part = _faulty_part(body)
            if part:
                raise UsageError(
                    f"{path}: {body['kind']} {body['metadata']['name']}: found"
                    f" {describe(child(body, *part.split('.')))}, expected {part} as the API server"
                    " takes it."
                )

    def get(self, path: str, query: Mapping[str, Any]) -> dict[str, list[JSONObject]]:
        *_, above, namespace, resource = path.split("/")
        key, _, value = query.get("labelSelector", "").partition("=")
        return {
            "items": [
                body
                for body in self._bodies
                if plural(str(body["kind"])) == resource
                and (above != "namespaces" or body["metadata"]["namespace"] == namespace)
                and (not key or _labels(body).get(key) == value)
            ]
        }

    def find(self, _path: str) -> None:
        return None

    def create(self, _path: str, pod: JSONObject) -> JSONObject:
        return pod


def _labels(body: JSONObject) -> Mapping[str, Any]:
    return body["metadata"].get("labels") or {}


def _faulty_part(body: JSONObject) -> str:
    """The key of an object's part that the API server wouldn't take, of those that checks read; "":
    there is none.
    """
    if not isinstance(_labels(body), Mapping):
        return "metadata.labels"
    try:
        if body["kind"] == "ConfigMap":
            # Texts are all that it may hold.
            "".join((body.get("data") or {}).values())
        elif body["kind"] in READS:
            READS[body["kind"]](body)
    except (AttributeError, KeyError, TypeError, ValueError):
        return "data" if body["kind"] == "ConfigMap" else "spec"
    return ""


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
