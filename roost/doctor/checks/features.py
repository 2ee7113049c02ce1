"""Kinds are served, feature gates that the objects need are on, and no field of a pod is dropped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from roost.doctor.contract import Install, Object, Told, error, unknown
from roost.doctor.evidence import count, mounts_images, pod_templates, some
from roost.doctor.try_pod import try_template
from roost_core.kube.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

# One line of the API server's metrics for each feature gate that it knows.
_GATE_LINE: Final = re.compile(rb'kubernetes_feature_enabled\{[^}]*name="(\w+)"[^}]*\} (\d)')
_SILENCE_SECONDS: Final = 15.0
_FIXES: Final = {
    "ImageVolume": "Switch it on in the API server and on nodes, or set prePuller.method: noop.",
    "MutatingAdmissionPolicy": "Switch it on in the API server, or set admission.mode: webhook.",
}


def check(install: Install) -> Told:
    gates = [gate for gate in _FIXES if (mounts_images(install) if gate == "ImageVolume" else install.of_kind(gate))]
    versions: dict[str, set[str]] = {}
    for body in install.rendered:
        versions.setdefault(body["apiVersion"], set()).add(body["kind"])
    said = f", feature gate{'s' if len(gates) > 1 else ''} {' and '.join(gates)}" if gates else ""
    yield f"{count(sum(map(len, versions.values())), 'kind')}, fields of pods{said}"
    missing = [
        f"{kind} ({version})"
        for version, kinds in versions.items()
        for kind in sorted(kinds - _served(install, version))
    ]
    if missing:
        yield error(
            f"The API server doesn't serve kinds that the values render to: {some(missing)}.",
            "Install what defines them (ServiceMonitor: Prometheus Operator), switch the feature on in the API "
            "server, or switch off in the values what needs them.",
        )
    dropped = [f"{name}: {field}" for name, template in pod_templates(install) for field in _dropped(install, template)]
    if dropped:
        yield error(
            f"The API server drops fields of Roost's pods, so they would run without: {some(dropped)}.",
            "A feature gate is off there, or something else at admission takes them out: compare `kubectl create "
            "--dry-run=server -o yaml` with what is rendered.",
        )
    if gates:
        yield from _find_off(install, gates)


def _find_off(install: Install, gates: list[str]) -> Told:
    try:
        known = {
            match[1].decode(): match[2] == b"1"
            for line in install.client.lines("/metrics", {}, _SILENCE_SECONDS)
            if (match := _GATE_LINE.match(line))
        }
    except ApiError as refusal:
        yield unknown(
            f"Not allowed to look whether the API server has {' and '.join(gates)} on: {refusal}",
            "Run it with an account that may get the path /metrics, or look there: kubernetes_feature_enabled.",
        )
        return
    for gate in gates:
        # One that a newer API server no longer knows can't be switched off there.
        if not known.get(gate, True):
            yield error(f"The API server has the feature gate {gate} switched off.", _FIXES[gate])


def _served(install: Install, version: str) -> set[str]:
    """The kinds of an API version; none where it isn't served."""
    path = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return {str(resource.get("kind")) for resource in (install.client.find(path) or {}).get("resources") or []}


def _dropped(install: Install, template: Object) -> list[str]:
    """Fields of a template's pods that the API server leaves out of what it would store."""
    try:
        wanted, stored = try_template(install.client, install.release.namespace, template)
    except ApiError:
        return []  # the same request as that of the check security, which tells of it
    return list(_missing(wanted["spec"], stored.get("spec") or {}, ""))


def _missing(wanted: object, stored: object, path: str) -> Iterator[str]:
    """Paths of what is in one object and not in the other; what is empty or null may be left out."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if value in (None, "", {}, [], False, 0):
                continue
            where = f"{path}.{key}".lstrip(".")
            if not isinstance(stored, dict) or key not in stored:
                yield where
            else:
                yield from _missing(value, stored[key], where)
    elif isinstance(wanted, list) and isinstance(stored, list):
        names = {item.get("name"): item for item in stored if isinstance(item, dict)}
        for number, item in enumerate(wanted):
            name = item.get("name") if isinstance(item, dict) else None
            # Admission adds to lists: what has no name may have moved.
            if name is not None:
                yield from _missing(item, names.get(name), f"{path}[{name}]")
            elif len(stored) == len(wanted):
                yield from _missing(item, stored[number], f"{path}[{number}]")
