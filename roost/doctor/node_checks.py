"""Are nodes and their kubelets what Roost takes them for?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost.doctor.evidence import (
    DEFAULT_REPORTED,
    age_seconds,
    count,
    label_items,
    mounts_images,
    node_age_seconds,
    some,
    users_of,
)
from roost.doctor.findings import Finding
from roost_core.objects.images import normalise_reference
from roost_core.placement.labels import HELD, PULLING, pulled_label, pulled_prefix, startup_taint
from roost_core.placement.managed_images import managed_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost.doctor.install import Install, Object

_PULL_SECONDS: Final = 1800.0
# Runtimes that can mount an image, by the name in nodeInfo.containerRuntimeVersion.
_MOUNTS_IMAGES: Final = {"containerd": (2, 1), "cri-o": (1, 31)}
# Kubelets mount images by default from this minor on.
_KUBELET_MOUNTS_IMAGES: Final = (1, 35)
_STARTUP_PREFIX: Final = "startup-taint.cluster-autoscaler.kubernetes.io/"
# After that long a start is over, whatever somebody waits for.
_START_SECONDS: Final = 1800.0
# Kubelets and the API server are compared to the second.
_SKEW_SECONDS: Final = 5.0


def check_nodes(install: Install) -> tuple[str, Iterator[Finding]]:
    """Labels of nodes go with what their kubelets report."""
    prefix = pulled_prefix(install.release.name, install.release.namespace)

    def find() -> Iterator[Finding]:
        old = [
            node.name
            for node in install.nodes
            if any(key.startswith(prefix) and value == PULLING for key, value in node.labels.items())
            and node_age_seconds(node) > _PULL_SECONDS
        ]
        if old:
            yield Finding(
                "warning",
                f"{len(old)} nodes older than {_PULL_SECONDS / 60:.0f} minutes still lack an image that users need: "
                f"{some(old)}.",
                "kubectl describe node shows Roost's Events. Does the puller run there, and can the node pull it?",
            )

    return count(len(install.nodes), "node"), find()


def check_puller(install: Install) -> tuple[str, Iterator[Finding]]:
    """The puller runs on every node that users run on: the next node of that kind is then warm before they come."""
    selectors = [body["spec"]["selector"]["matchLabels"] for body in install.of_kind("DaemonSet")]
    nodes = {pod["spec"]["nodeName"] for pod in users_of(install) if (pod.get("spec") or {}).get("nodeName")}

    def find() -> Iterator[Finding]:
        served = {
            pod["spec"].get("nodeName")
            for pod in install.pods
            if any(selector.items() <= label_items(pod).items() for selector in selectors)
        }
        bare = sorted(nodes - served) if selectors else []
        if bare:
            yield Finding(
                "warning",
                f"Users run on nodes that no pod of the puller is on: {some(bare)}. On a new node of that kind they "
                "start cold.",
                "The puller's tolerations and node selector don't admit them: name their taints in the profile's "
                "tolerations, or in prePuller.tolerations (docs/puller.md#which-images-to-which-nodes).",
            )

    return f"{count(len(nodes), 'node')} with users" if selectors else "no puller is used", find()


def check_labels(install: Install) -> tuple[str, Iterator[Finding]]:
    """A node that is labelled as holding an image reports it."""
    values, release = install.values, install.release
    labels = {
        pulled_label(release.name, release.namespace, image): normalise_reference(image)
        for image in managed_images(values["singleuser"], values["prePuller"])
    }

    def find() -> Iterator[Finding]:
        wrong = []
        for node in install.nodes:
            reported = node.image_names
            # A full list is cut: what it lacks may be there.
            if not reported or node.image_count >= DEFAULT_REPORTED:
                continue
            wrong += [
                f"{node.name} ({image})"
                for label, image in labels.items()
                if node.labels.get(label) == HELD and image not in reported
            ]
        if wrong:
            yield Finding(
                "warning",
                f"Nodes are labelled as holding an image which their kubelet doesn't report: {some(wrong)}.",
                "The controllers look again within minutes. If it stays: do they lead (leaders, above), and may they "
                "patch nodes?",
            )

    return f"labels of {count(len(labels), 'image')}", find()


def check_image_volumes(install: Install) -> tuple[str, Iterator[Finding]]:
    """Where the puller mounts images, runtimes and kubelets can."""
    mounts = any(mounts_images(body["spec"]["template"]) for body in install.of_kind("DaemonSet"))

    def find() -> Iterator[Finding]:
        old, old_kubelets = [], []
        for node in install.nodes if mounts else []:
            runtime, _, number = node.runtime_version.partition("://")
            least = _MOUNTS_IMAGES.get(runtime)
            if least and _numbers(number) < least:
                old.append(f"{node.name} ({node.runtime_version})")
            kubelet = _numbers(node.kubelet_version)
            if len(kubelet) == 2 and kubelet < _KUBELET_MOUNTS_IMAGES:
                old_kubelets.append(f"{node.name} ({node.kubelet_version})")
        if old:
            yield Finding(
                "error",
                f"The puller mounts images, which the runtimes of some nodes can't: {some(old)}.",
                "Use containerd 2.1 or CRI-O 1.31 and newer, or prePuller.method: noop.",
            )
        if old_kubelets:
            yield Finding(
                "error",
                "The puller mounts images, which kubelets before 1.35 do only with the feature gate ImageVolume: "
                f"{some(old_kubelets)}.",
                "Upgrade these nodes, switch the gate on there, or set prePuller.method: noop.",
            )

    return "runtimes and kubelets of nodes" if mounts else "no image is mounted", find()


def check_startup_taints(install: Install) -> tuple[str, Iterator[Finding]]:
    """No node keeps a taint of its start that nobody takes off."""
    own = startup_taint(install.release.name, install.release.namespace)
    lifts = install.values["imageGate"]["mode"] == "startupTaint" and install.component("controllers") is not None

    def find() -> Iterator[Finding]:
        pools = (install.client.find("/apis/karpenter.sh/v1/nodepools") or {}).get("items", [])
        keys = {
            taint["key"]
            for pool in pools
            for taint in (((pool["spec"].get("template") or {}).get("spec") or {}).get("startupTaints") or [])
        }
        if own in keys and not lifts:
            yield Finding(
                "error",
                f"A NodePool gives its nodes the startup taint {own}, and nobody takes it off: imageGate.mode is "
                f"{install.values['imageGate']['mode']}.",
                "Set imageGate.mode: startupTaint, with the controllers on, or take the taint out of the NodePool.",
            )
        stuck = [
            f"{node.name} ({taint.key})"
            for node in install.nodes
            for taint in node.taints
            if (taint.key.startswith(_STARTUP_PREFIX) or taint.key in keys) and node_age_seconds(node) > _START_SECONDS
        ]
        if stuck:
            yield Finding(
                "warning",
                f"{count(len(stuck), 'startup taint')} still there {_START_SECONDS / 60:.0f} minutes after their nodes "
                f"came: {some(stuck)}. cluster-autoscaler expects such nodes to become usable, and adds no others.",
                "Whoever should take the taint off doesn't: for Roost's own, the controllers (leaders, above).",
            )

    return "startup taints of nodes and NodePools", find()


def check_clocks(install: Install) -> tuple[str, Iterator[Finding]]:
    """Clocks of nodes, and so of Roost's programs, go with the API server's.

    A holder writes `renewTime` by its own clock, and the API server writes by its own when that field was set.
    """
    own = f"/apis/coordination.k8s.io/v1/namespaces/{install.release.namespace}/leases"

    def find() -> Iterator[Finding]:
        leases = [
            *install.client.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")["items"],
            *install.client.get(own)["items"],
        ]
        wrong = []
        for lease in leases:
            skew = _skew_seconds(lease)
            if skew is not None and abs(skew) > _SKEW_SECONDS:
                wrong.append(f"{lease['metadata']['name']} ({skew:+.0f} s)")
        if wrong:
            yield Finding(
                "warning",
                f"{count(len(wrong), 'clock')} more than {_SKEW_SECONDS:.0f} s away from the API server's: "
                f"{some(wrong)}. Leases then seem stale that aren't, and the gate stays open.",
                "Synchronise the nodes' clocks (chrony, systemd-timesyncd).",
            )

    return "Leases of nodes and of this namespace", find()


def _skew_seconds(lease: Object) -> float | None:
    """How far the holder's clock is ahead of the API server's, in seconds; None: not known."""
    renewed = age_seconds((lease.get("spec") or {}).get("renewTime"))
    written = [
        age_seconds(entry.get("time"))
        for entry in lease["metadata"].get("managedFields") or []
        if "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    if renewed is None or len(written) != 1 or written[0] is None:
        return None
    return written[0] - renewed


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.lstrip("v").split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal())
