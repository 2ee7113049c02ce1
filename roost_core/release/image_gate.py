"""Read `imageGate`: its mode, its images, and the puller's DaemonSets that bring them to nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from roost_core.objects import selectors
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import Node
from roost_core.placement.labels import LINUX, OS_LABEL, pulled_label, startup_taint
from roost_core.release.reader import Reader

# Tolerations that the DaemonSet controller adds to every daemon pod.
# Source: Kubernetes' pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.
_DAEMON_TOLERATIONS: Final = tuple(
    selectors.Toleration(f"node.kubernetes.io/{name}", "Exists", "", "")
    for name in (
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    )
)
# From Kubernetes 1.35 on, API server and kubelets mount images as volumes by default. Before, both
# need the feature gate.
IMAGE_VOLUME_MINOR: Final = (1, 35)


class GateMode(StrEnum):
    """`imageGate.mode`."""

    REQUIRE_LABEL = "requireLabel"
    PREFER = "prefer"
    STARTUP_TAINT = "startupTaint"
    OFF = "off"


@dataclass(frozen=True)
class ManagedImage:
    """An image that the puller brings to nodes."""

    # As written in the values.
    reference: str
    # The reference in its long form, by which images are compared.
    normalised: str
    # The label of nodes that says whether the image is there.
    label: str
    # The ways in which a node's list may spell the image.
    spellings: tuple[str, ...]


@dataclass(frozen=True)
class Puller:
    """A DaemonSet of the puller: its images, and the nodes that it brings them to."""

    name: str
    # Labels that its nodes must have.
    node_selector: Mapping[str, str]
    images: tuple[ManagedImage, ...]
    # Terms of node affinity. A node must match one of them; None: every node matches.
    required_terms: tuple[selectors.NodeTerm, ...] | None = None
    # All tolerations of its pods; None: none are given, and the pods count as tolerating every
    # taint.
    tolerations: tuple[selectors.Toleration, ...] | None = None

    @cached_property
    def labels(self) -> frozenset[str]:
        """Labels of a node that holds all its images."""
        return frozenset(image.label for image in self.images)

    @cached_property
    def references(self) -> frozenset[str]:
        """Its images, normalised."""
        return frozenset(image.normalised for image in self.images)


@dataclass(frozen=True)
class ImageGate:
    """`imageGate` of release.json."""

    mode: GateMode
    pullers: tuple[Puller, ...]
    # A node is kept from users who wait for an image for so long at most. In mode requireLabel, the
    # time begins when the image is missing on the node, in startupTaint when the node is Ready.
    pull_deadline_seconds: int

    @property
    def labelling(self) -> tuple[Puller, ...]:
        """The pullers for whose images nodes get labels."""
        return () if self.mode is GateMode.OFF else self.pullers

    @cached_property
    def managed_images(self) -> frozenset[str]:
        """Normalised references of all images that the pullers bring to nodes."""
        return frozenset().union(*(puller.references for puller in self.pullers))


def managed_image(release: str, namespace: str, reference: str) -> ManagedImage:
    """Describe an image of a release. reference: as written in the values."""
    normalised = normalise_reference(reference)
    # Some runtimes list images of Docker Hub without these prefixes.
    prefixes = [
        prefix for prefix in ("docker.io/library/", "docker.io/") if normalised.startswith(prefix)
    ]
    short_forms = [normalised.removeprefix(prefix) for prefix in prefixes]
    spellings = (normalised, *short_forms)
    return ManagedImage(
        reference, normalised, pulled_label(release, namespace, reference), spellings
    )


def selects(puller: Puller, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node matches the DaemonSet's selector and terms, whatever its taints are."""
    if not puller.node_selector.items() <= labels.items():
        return False
    terms = puller.required_terms
    return terms is None or any(
        selectors.node_term_matches(term, node_name, labels) for term in terms
    )


def serving(pullers: Sequence[Puller], node: Node) -> list[Puller]:
    """The DaemonSets that select a node and tolerate its taints.

    If none of them tolerates the taints, all that select the node.
    """
    if node.labels.get(OS_LABEL, LINUX) != LINUX:
        return []
    selecting = [puller for puller in pullers if selects(puller, node.name, node.labels)]
    if not node.taints:
        return selecting
    tolerating = [
        puller
        for puller in selecting
        if puller.tolerations is None
        or selectors.untolerated(node.taints, puller.tolerations) is None
    ]
    return tolerating or selecting


def read_image_gate(read: Reader, value: object, release: str, namespace: str) -> ImageGate:
    """Read `imageGate` of release.json. Faults go to the reader."""
    gate = read.mapping(value, "imageGate")
    mode = gate.get("mode")
    return ImageGate(
        # Without quotation marks, `off` is false in YAML 1.1.
        mode=read.choice("off" if mode is False else mode, "imageGate.mode", GateMode),
        pullers=tuple(
            _read_puller(read, entry, f"imageGate.pullers[{index}]", release, namespace)
            for index, entry in enumerate(read.items(gate.get("pullers"), "imageGate.pullers"))
        ),
        pull_deadline_seconds=read.integer(
            gate.get("pullDeadlineSeconds"), "imageGate.pullDeadlineSeconds"
        ),
    )


def _read_puller(read: Reader, entry: object, key: str, release: str, namespace: str) -> Puller:
    puller = read.mapping(entry, key)
    references = [
        read.text(image, f"{key}.images[{index}]")
        for index, image in enumerate(read.items(puller.get("images"), f"{key}.images"))
    ]
    terms = read.mappings(puller.get("requiredNodeTerms"), f"{key}.requiredNodeTerms")
    return Puller(
        name=read.text(puller.get("name"), f"{key}.name"),
        node_selector=read.labels(puller.get("nodeSelector"), f"{key}.nodeSelector"),
        images=tuple(
            managed_image(release, namespace, reference) for reference in references if reference
        ),
        required_terms=selectors.read_node_terms(terms) if terms else None,
        tolerations=_read_tolerations(
            read, puller.get("tolerations"), f"{key}.tolerations", release, namespace
        ),
    )


def _read_tolerations(
    read: Reader, value: object, key: str, release: str, namespace: str
) -> tuple[selectors.Toleration, ...] | None:
    """The tolerations of a puller's pods: its own, and those of all; None: none are given."""
    if value is None:
        return None
    return (
        *selectors.read_tolerations(read.mappings(value, key)),
        *tolerations_of_all(release, namespace),
    )


def tolerations_of_all(release: str, namespace: str) -> tuple[selectors.Toleration, ...]:
    """The tolerations that all pods of a release's pullers have."""
    return (
        *_DAEMON_TOLERATIONS,
        selectors.Toleration(startup_taint(release, namespace), "Exists", "", ""),
    )
