"""Kinds are served, and feature gates that the objects need are on."""

from __future__ import annotations

import re
from typing import Final

from roost.doctor.evidence import SILENCE_SECONDS, count, mounts_images, some
from roost.doctor.findings import CheckReport, error, unknown
from roost.doctor.install import Install
from roost_core.kube.client import ApiError

# One line of the API server's metrics for each feature gate that it knows.
_GATE_LINE: Final = re.compile(rb'kubernetes_feature_enabled\{[^}]*name="(\w+)"[^}]*\} (\d)')
_FIXES: Final = {
    "ImageVolume": "Switch it on in the API server and on nodes, or set prePuller.method: noop.",
    "MutatingAdmissionPolicy": "Switch it on in the API server, or set admission.mode: webhook.",
}


def check(install: Install) -> CheckReport:
    gates = []
    if mounts_images(install):
        gates.append("ImageVolume")
    if install.of_kind("MutatingAdmissionPolicy"):
        gates.append("MutatingAdmissionPolicy")
    versions: dict[str, set[str]] = {}
    for body in install.rendered:
        versions.setdefault(body["apiVersion"], set()).add(body["kind"])
    looked_at = count(sum(map(len, versions.values())), "kind")
    if gates:
        looked_at += f", feature gate{'s' if len(gates) > 1 else ''} {' and '.join(gates)}"
    yield looked_at
    missing = []
    for version, kinds in versions.items():
        # The core group, v1, has a path of its own.
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        answer = install.client.find(path) or {}
        served = {str(resource.get("kind")) for resource in answer.get("resources") or []}
        missing += [f"{kind} ({version})" for kind in sorted(kinds - served)]
    if missing:
        yield error(
            f"The API server doesn't serve kinds that the values render to: {some(missing)}.",
            "Install what defines them (ServiceMonitor: Prometheus Operator), switch the feature on"
            " in the API server, or switch off in the values what needs them.",
        )
    if gates:
        yield from _find_off(install, gates)


def _find_off(install: Install, gates: list[str]) -> CheckReport:
    try:
        matches = map(_GATE_LINE.match, install.client.lines("/metrics", {}, SILENCE_SECONDS))
        known = {match[1].decode(): match[2] == b"1" for match in matches if match}
    except ApiError as refusal:
        yield unknown(
            f"Not allowed to look whether the API server has {' and '.join(gates)} on: {refusal}",
            "Run it with an account that may get the path /metrics, or look there:"
            " kubernetes_feature_enabled.",
        )
        return
    for gate in gates:
        # One that a newer API server no longer knows can't be switched off there.
        if not known.get(gate, True):
            yield error(f"The API server has the feature gate {gate} switched off.", _FIXES[gate])
