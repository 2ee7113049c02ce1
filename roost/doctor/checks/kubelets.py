"""Kubelets report the images that they hold, delete none too early, and have room on their disks.

Source: KubeletConfiguration v1beta1, as the kubelet's /configz returns it through the API server
(right: nodes/proxy).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from generator.render.managed_images import managed_images
from roost.doctor.evidence import count, mounts_images, some
from roost.doctor.findings import CheckReport, error, unknown, warning
from roost.doctor.install import Install
from roost_core.kube.client import ApiError, ClusterError
from roost_core.objects.node import LISTED_IMAGES, Node
from roost_core.placement.labels import POOL_LABELS

# The most nodes whose kubelets are asked.
_ASKED: Final = 5
_LOOK_YOURSELF: Final = (
    "nodeStatusMaxImages, imageGCHighThresholdPercent and featureGates.ImageVolume"
)
# What kubelets write into the status of a pod that they evict for its disk.
_OF_DISK: Final = ("ephemeral-storage", "DiskPressure", "imagefs", "nodefs", "inodes")
_OFF: Final = ("", "0", "0s")
# A kubelet that hangs mustn't hold up the rest.
_SILENCE_SECONDS: Final = 5.0


class PullSettings(NamedTuple):
    """What of a kubelet's configuration concerns images; defaults are the kubelet's own."""

    # Most images in node.status.images; -1: all.
    reported: int
    # Share of the disk from which on unused images are deleted; 100: never.
    deleted_from_percent: int
    # False: its feature gate ImageVolume is switched off.
    mounts_images: bool
    # Share of the disk down to which they are deleted.
    deleted_to_percent: int
    # For how long an image may be unused, as the kubelet has it; "": for ever.
    most_unused: str
    # 0: any number.
    pulls_at_once: int

    @property
    def habits(self) -> str:
        """What it does with images, in words."""
        if self.deleted_from_percent >= 100:
            deleted = "unused images stay"
        else:
            deleted = (
                f"unused images go from {self.deleted_from_percent} % of a disk on, down to"
                f" {self.deleted_to_percent} %"
            )
        age = f", and after {self.most_unused}" if self.most_unused else ""
        if self.pulls_at_once == 0:
            pulls = "any number of pulls"
        elif self.pulls_at_once == 1:
            pulls = "one pull"
        else:
            pulls = f"{self.pulls_at_once} pulls"
        return f"{deleted}{age}; {pulls} at a time"


def check(install: Install) -> CheckReport:
    is_needed = _needs_images(install)
    pressed: list[Node] = []
    evicted: list[str] = []
    # Who may not list these is told so by the checks that need them.
    with suppress(ClusterError):
        pressed = [node for node in install.nodes if node.has_full_disk]
    with suppress(ClusterError):
        evicted = _evicted_for_disk(install)
    if not is_needed and not pressed and not evicted:
        yield "nothing that depends on kubelets' images is used, and no disk is under pressure"
        return
    nodes = _nodes_to_ask(install, pressed)
    answers = _ask(install, nodes)
    settings = answers.settings
    habits = sorted({kubelet.habits for kubelet in settings.values()})
    summary = f": {', or '.join(habits)}" if habits else ""
    yield f"{count(len(settings), 'kubelet')} asked{summary}"
    yield from _find_pressure(settings, [node.name for node in pressed], evicted)
    if not is_needed:
        return
    yield from _find_unanswered(answers)
    yield from _find_reporting(install, settings, nodes)
    yield from _find_deleting(install, settings)
    off = [name for name, kubelet in settings.items() if not kubelet.mounts_images]
    if off and mounts_images(install):
        yield error(
            "The puller mounts images, and kubelets have the feature gate ImageVolume switched"
            f" off: {some(off)}.",
            "Take it out of the kubelets' featureGates, or set prePuller.method: noop.",
        )


def read_pull_settings(config: Mapping[str, object]) -> PullSettings:
    """Read a KubeletConfiguration; what is missing or malformed counts as the kubelet's default."""
    gates = config.get("featureGates")
    age = config.get("imageMaximumGCAge")
    is_serial = config.get("serializeImagePulls") is not False
    pulls_at_once = 1 if is_serial else _integer(config.get("maxParallelImagePulls"), 0)
    return PullSettings(
        reported=_integer(config.get("nodeStatusMaxImages"), LISTED_IMAGES),
        deleted_from_percent=_integer(config.get("imageGCHighThresholdPercent"), 85),
        mounts_images=not isinstance(gates, dict) or gates.get("ImageVolume") is not False,
        deleted_to_percent=_integer(config.get("imageGCLowThresholdPercent"), 80),
        most_unused="" if age in _OFF or not isinstance(age, str) else age,
        pulls_at_once=pulls_at_once,
    )


def _evicted_for_disk(install: Install) -> list[str]:
    """Pods of the release's namespace that kubelets evicted for their disks, as long as they are
    there.
    """
    evicted = []
    for pod in install.pods:
        status = pod.get("status") or {}
        if status.get("reason") == "Evicted" and any(
            word in str(status.get("message", "")) for word in _OF_DISK
        ):
            evicted.append(pod["metadata"]["name"])
    return evicted


def _find_pressure(
    kubelets: Mapping[str, PullSettings], pressed: Sequence[str], evicted: Sequence[str]
) -> CheckReport:
    """Disks that are full, with what their kubelets do about it."""
    if not pressed and not evicted:
        return
    parts = []
    if pressed:
        parts.append(f"Nodes under disk pressure, which take no pods: {some(pressed)}.")
    if evicted:
        parts.append(f"Pods that kubelets evicted for their disks: {some(evicted)}.")
    look = ""
    asked = sorted(name for name in kubelets if name in pressed)
    if asked:
        parts.append(f"On {asked[0]} {kubelets[asked[0]].habits}.")
    elif pressed:
        look = f" Its thresholds: kubectl get --raw /api/v1/nodes/{pressed[0]}/proxy/configz."
    yield warning(
        " ".join(parts),
        "Give nodes a larger boot disk, or lower imageGCHighThresholdPercent and"
        " imageGCLowThresholdPercent in the kubelets' configuration, and set imageMaximumGCAge:"
        f" 168h (docs/faster-starts.md#disks).{look}",
    )


def _find_reporting(
    install: Install, kubelets: Mapping[str, PullSettings], nodes: Sequence[Node]
) -> CheckReport:
    """Reports that are cut: the gate needs the puller's images in them, warm sets need all that
    nodes hold.
    """
    held = {node.name: node.image_count for node in nodes}
    managed = len(managed_images(install.values["singleuser"], install.values["prePuller"]))
    least = max(LISTED_IMAGES, managed)
    shown = {name: f"{name} ({kubelet.reported})" for name, kubelet in kubelets.items()}
    short = [shown[name] for name, kubelet in kubelets.items() if 0 <= kubelet.reported < least]
    if install.values["imageGate"]["mode"] != "off" and managed and short:
        yield warning(
            f"Kubelets that report fewer than {least} images: {some(short)}. Of an image beyond"
            " that the gate learns from Events and statuses only: a label may outlive it, and a"
            " new leader may miss it.",
            "Set nodeStatusMaxImages: -1 in the kubelets' configuration, or take it out of there.",
        )
    # A report is never longer than what its kubelet is set to: one that is as long may be cut.
    many_images = {name: number for name, number in held.items() if number >= LISTED_IMAGES}
    cut = [
        shown[name]
        for name, kubelet in kubelets.items()
        if name in many_images and 0 <= kubelet.reported <= many_images[name]
    ]
    if cut and _has_warm_set(install):
        yield warning(
            f"{len(cut)} of {len(kubelets)} kubelets hold more images than they report:"
            f" {some(cut)}. A webhook that restarts forgets the others: 7 to 10 % more cold starts"
            " a day with a restart.",
            "Set nodeStatusMaxImages: -1 in the kubelets' configuration, where your provider lets"
            " you.",
        )


def _find_deleting(install: Install, kubelets: Mapping[str, PullSettings]) -> CheckReport:
    """Kubelets that delete images which Roost still pulls, or none at all."""
    popular = install.values["popularImages"]
    share = popular["diskHeadroomPercent"]
    shares = {name: kubelet.deleted_from_percent for name, kubelet in kubelets.items()}
    early = [f"{name} ({percent})" for name, percent in shares.items() if percent <= share]
    if popular["enabled"] and early:
        yield error(
            f"popularImages fill up to {share} % of a disk, and kubelets delete images from a lower"
            f" or the same imageGCHighThresholdPercent on: {some(early)}. What was just pulled is"
            " deleted again.",
            "Set popularImages.diskHeadroomPercent below the kubelets'"
            " imageGCHighThresholdPercent.",
        )
    aged = [
        f"{name} ({kubelet.most_unused})"
        for name, kubelet in kubelets.items()
        if kubelet.most_unused
    ]
    if _pulls_ahead(install) and aged:
        # The kubelet looks every five minutes which images containers have. One that it never saw
        # with any has no age. The pod that pulls is there for some seconds.
        yield warning(
            f"Kubelets with imageMaximumGCAge: {some(aged)}. Once they have run for as long, they"
            " delete within minutes most images that Roost pulled ahead and nobody used yet.",
            "Take imageMaximumGCAge out of the kubelets' configuration, or set"
            " popularImages.enabled: false, and name no image in bookings.",
        )
    never = [name for name, percent in shares.items() if percent >= 100]
    if never:
        yield warning(
            f"Kubelets that never delete images (imageGCHighThresholdPercent: 100): {some(never)}."
            " Where users bring many images, the disk fills up, and the kubelet then evicts pods,"
            " users' too.",
            "Set imageGCHighThresholdPercent: 85, unless something else deletes images there.",
        )


def _needs_images(install: Install) -> bool:
    """Whether something that is switched on depends on the images that kubelets hold."""
    if not install.values["enabled"]:
        return False
    has_puller = bool(install.of_kind("DaemonSet"))
    return has_puller or _pulls_ahead(install) or _has_warm_set(install)


def _pulls_ahead(install: Install) -> bool:
    """Whether images are pulled before a user's pod needs them; bookings in ConfigMaps aside."""
    events = install.values["events"]
    books_images = events["enabled"] and any(event.get("image") for event in events["booked"])
    return bool(install.values["popularImages"]["enabled"] or books_images)


def _has_warm_set(install: Install) -> bool:
    return any((entry or {}).get("warm") for entry in install.values["podClasses"].values())


def _nodes_to_ask(install: Install, pressed: Sequence[Node]) -> list[Node]:
    """The nodes whose kubelets are asked, at most _ASKED: those under disk pressure, then of each
    pool and version the one with the most images, then the others with the most images.
    """
    ready = [node for node in install.nodes if node.ready]
    fullest = sorted(ready, key=lambda node: -node.image_count)
    first_of_kind: dict[tuple[str, ...], Node] = {}
    for node in fullest:
        pool = [node.labels.get(key, "") for key in POOL_LABELS]
        first_of_kind.setdefault((*pool, node.kubelet_version), node)
    nodes = list(pressed)
    for node in (*first_of_kind.values(), *fullest):
        if len(nodes) >= _ASKED:
            break
        if node not in nodes:
            nodes.append(node)
    return nodes[:_ASKED]


class _Answers(NamedTuple):
    """What kubelets said of their configuration."""

    # By node.
    settings: Mapping[str, PullSettings]
    # Nodes whose kubelet didn't say.
    silent: Sequence[str]
    # The API server's refusal, after which no other was asked: all would be refused.
    refusal: ApiError | None


def _ask(install: Install, nodes: Sequence[Node]) -> _Answers:
    settings: dict[str, PullSettings] = {}
    silent: list[str] = []
    for node in nodes:
        config = None
        try:
            path = f"/api/v1/nodes/{node.name}/proxy/configz"
            config = install.client.get(path, read_seconds=_SILENCE_SECONDS).get("kubeletconfig")
        except ClusterError as refusal:
            # one that answers late, or not in JSON, is no reason to leave out the others
            if isinstance(refusal, ApiError) and refusal.status in (401, 403):
                return _Answers(settings, silent, refusal)
        if isinstance(config, dict):
            settings[node.name] = read_pull_settings(config)
        else:
            silent.append(node.name)
    return _Answers(settings, silent, None)


def _find_unanswered(answers: _Answers) -> CheckReport:
    """Kubelets of which nothing is known."""
    if answers.refusal is not None:
        yield unknown(
            f"Not allowed to look at kubelets' configuration: {answers.refusal}",
            f"Have an administrator of the cluster run it, or look at {_LOOK_YOURSELF} yourself."
            " Don't grant nodes/proxy for this: it also lets its holder run commands in every"
            " pod.",
        )
    if answers.silent:
        yield unknown(
            "No configuration through the API server from"
            f" {count(len(answers.silent), 'kubelet')}: {some(answers.silent)}.",
            f"Look there yourself: {_LOOK_YOURSELF}.",
        )


def _integer(value: object, default: int) -> int:
    return value if isinstance(value, int) else default
