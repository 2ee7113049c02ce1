"""Where the puller mounts images, runtimes and kubelets can."""

from typing import Final

from roost.doctor.contract import Install, Told, error
from roost.doctor.evidence import mounts_images, some

# Runtimes that can mount an image, by the name in nodeInfo.containerRuntimeVersion.
_MOUNTS_IMAGES: Final = {"containerd": (2, 1), "cri-o": (1, 31)}
# Kubelets mount images by default from this minor on.
_KUBELET_MOUNTS_IMAGES: Final = (1, 35)


def check(install: Install) -> Told:
    mounts = mounts_images(install)
    yield "runtimes and kubelets of nodes" if mounts else "no image is mounted"
    old = []
    old_kubelets = []
    for node in install.nodes if mounts else []:
        runtime, _, number = node.runtime_version.partition("://")
        least = _MOUNTS_IMAGES.get(runtime)
        if least and _numbers(number) < least:
            old.append(f"{node.name} ({node.runtime_version})")
        kubelet = _numbers(node.kubelet_version)
        if len(kubelet) == 2 and kubelet < _KUBELET_MOUNTS_IMAGES:
            old_kubelets.append(f"{node.name} ({node.kubelet_version})")
    if old:
        fix = "Use containerd 2.1 or CRI-O 1.31 and newer, or prePuller.method: noop."
        yield error(
            f"The puller mounts images, which the runtimes of some nodes can't: {some(old)}.", fix
        )
    if old_kubelets:
        yield error(
            "The puller mounts images, which kubelets before 1.35 do only with the feature gate"
            f" ImageVolume: {some(old_kubelets)}.",
            "Upgrade these nodes, switch the gate on there, or set prePuller.method: noop.",
        )


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.lstrip("v").split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal())
