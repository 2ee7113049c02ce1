"""The API server's minor supports every kubelet. Also reports the nodes' architectures."""

import re
from typing import Final

from generator.values.release_name import kube_minor
from roost.doctor.evidence import some
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install

_MINOR: Final = re.compile(r"v\d+\.\d+")
_ARCHITECTURE: Final = "kubernetes.io/arch"
# How many minors a kubelet may be older than the API server (Kubernetes' version skew policy).
_OLDER: Final = 3


def check(install: Install) -> CheckReport:
    versions = {
        node.name: node.kubelet_version
        for node in install.nodes
        if _MINOR.match(node.kubelet_version)
    }
    minors = {name: kube_minor(version) for name, version in versions.items()}
    architectures = sorted({node.labels.get(_ARCHITECTURE, "unknown") for node in install.nodes})
    shown_minors = [f"{major}.{minor}" for major, minor in sorted(set(minors.values()))]
    if shown_minors:
        yield f"kubelets {', '.join(shown_minors)} on {', '.join(architectures)}"
    else:
        yield "no kubelet reports its version"
    major, newest = install.release.kube_minor
    supported = {(major, newest - older) for older in range(_OLDER + 1)}
    unsupported = [
        f"{name} ({versions[name]})" for name, minor in minors.items() if minor not in supported
    ]
    if unsupported:
        yield warning(
            f"Kubernetes supports kubelets of 1.{newest - _OLDER} to 1.{newest} beside this API"
            f" server, and these are others: {some(unsupported)}.",
            "Upgrade these nodes, or wait until the control plane is upgraded.",
        )
