"""Read the image gate's settings from release.json.

They say its mode, and which images belong on which nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from roost.controllers.contract.release import ReleaseDocument
from roost_core.objects.node import Node
from roost_core.objects.selectors import Taint, Toleration, read_tolerations, untolerated
from roost_core.placement.labels import pulled_prefix, puller_container, startup_taint
from roost_core.release import image_gate


class PullerPods(StrEnum):
    """`imageGate.pullerPods`: whose pods report that an image was pulled."""

    ROOST = "roost"
    ZERO_TO_JUPYTERHUB = "zeroToJupyterHub"


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """`imageGate` of release.json, for one release."""

    release: str
    namespace: str
    mode: image_gate.GateMode
    # The longest that a node is closed to users who wait for its images, in seconds. requireLabel:
    # since an image is missing there; startupTaint: since the node is Ready.
    pull_deadline_seconds: int
    # requireLabel: seconds that a user waits for nothing but a pull before nodes are opened.
    open_after_seconds: int
    # Whether Roost's own puller runs as DaemonSets, so that new nodes get it, too.
    has_puller: bool
    puller_pods: PullerPods
    pullers: tuple[image_gate.Puller, ...]
    # The puller's tolerations besides those of all daemon pods.
    tolerations: tuple[Toleration, ...] = ()

    @cached_property
    def labels_nodes(self) -> bool:
        """Whether nodes get labels at all."""
        return self.mode is not image_gate.GateMode.OFF

    @cached_property
    def closes_nodes(self) -> bool:
        """Whether nodes that pull an image keep its users off."""
        return self.mode is image_gate.GateMode.REQUIRE_LABEL

    @cached_property
    def label_prefix(self) -> str:
        """The prefix of all image labels of this hub."""
        return pulled_prefix(self.release, self.namespace)

    @cached_property
    def taint_key(self) -> str:
        """The startup taint's key."""
        return startup_taint(self.release, self.namespace)

    @cached_property
    def images(self) -> Mapping[str, image_gate.ManagedImage]:
        """All managed images, by normalised reference."""
        return {image.normalised: image for puller in self.pullers for image in puller.images}

    @cached_property
    def by_container(self) -> Mapping[str, image_gate.ManagedImage]:
        """All managed images, by the name of Roost's container that pulls them."""
        return {puller_container(image.reference): image for image in self.images.values()}

    @cached_property
    def _wanted(self) -> dict[tuple[str, ...], tuple[image_gate.ManagedImage, ...]]:
        """What `images_for` found already, by the names of the pullers. `images_for` fills it."""
        return {}

    def images_for(self, node: Node) -> tuple[image_gate.ManagedImage, ...]:
        """The images of all pullers that serve the node, in order of use.

        Equal results are the same object.
        """
        pullers = image_gate.serving(self.pullers, node)
        names = tuple(puller.name for puller in pullers)
        if names not in self._wanted:
            images = {image.normalised: image for puller in pullers for image in puller.images}
            self._wanted[names] = tuple(images.values())
        return self._wanted[names]

    @cached_property
    def _tolerations(self) -> tuple[Toleration, ...]:
        return (*self.tolerations, *image_gate.tolerations_of_all(self.release, self.namespace))

    def taint_against_pullers(self, node: Node) -> Taint | None:
        """A taint that keeps the pods of all pullers off the node.

        None: the pods of at least one puller tolerate all of its taints.
        """
        if not node.taints:
            return None
        taint: Taint | None = None
        tolerations_of_pullers = [
            self._tolerations if puller.tolerations is None else puller.tolerations
            for puller in self.pullers
            if image_gate.selects(puller, node.name, node.labels)
        ]
        # A node that no puller selects counts as one for a puller with the release's tolerations.
        for tolerations in tolerations_of_pullers or [self._tolerations]:
            against = untolerated(node.taints, tolerations)
            if against is None:
                return None
            taint = taint or against
        return taint


def read_gate(release: ReleaseDocument) -> GateSettings:
    """Read `imageGate` and `prePuller` of release.json."""
    read = release.read
    shared = release.gate
    gate = read.mapping(release.document.get("imageGate"), "imageGate")
    puller = read.mapping(release.document.get("prePuller"), "prePuller")
    return GateSettings(
        release=release.name,
        namespace=release.namespace,
        mode=shared.mode,
        pull_deadline_seconds=shared.pull_deadline_seconds,
        open_after_seconds=read.integer(gate.get("openAfterSeconds"), "imageGate.openAfterSeconds"),
        has_puller=read.flag(puller.get("enabled"), "prePuller.enabled"),
        puller_pods=read.choice(gate.get("pullerPods"), "imageGate.pullerPods", PullerPods),
        pullers=shared.pullers,
        tolerations=read_tolerations(
            read.mappings(puller.get("tolerations"), "prePuller.tolerations")
        ),
    )
