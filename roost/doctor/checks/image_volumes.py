"""Where the puller mounts images, runtimes and kubelets can."""

from typing import Final

from roost.doctor.evidence import mounts_images, some
from roost.doctor.findings import CheckReport, error
from roost.doctor.install import Install
from roost_core.release.image_gate import IMAGE_VOLUME_MINOR

# Runtimes that can mount an image, by the name in nodeInfo.containerRuntimeVersion.
_MOUNTS_IMAGES: Final = {"containerd": (2, 1), "cri-o": (1, 31)}


def check(install: Install) -> CheckReport:
    mounts = mounts_images(install)
    yield "runtimes and kubelets of nodes" if mounts else "no image is mounted"
    old = []
    old_kubelets = []
    for node in install.nodes if mounts else []:
        runtime, _, version = node.runtime_version.partition("://")
        least = _MOUNTS_IMAGES.get(runtime)
        if least and _is_older(version, least):
            old.append(f"{node.name} ({node.runtime_version})")
        if _is_older(node.kubelet_version, IMAGE_VOLUME_MINOR):
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


def _is_older(version: str, least: tuple[int, int]) -> bool:
    """Whether a version's major and minor are below the least. One that can't be read is not: a
    build of a distribution's own may be any.
    """
    numbers = [int(part) for part in version.lstrip("v").split(".")[:2] if part.isdecimal()]
    return len(numbers) == 2 and tuple(numbers) < least
