"""Read `imageGate`: its mode, the images that it manages, and which nodes the puller's DaemonSets
serve.
"""

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
# From this minor on, the API server and kubelets mount images as volumes by default. Before, that
# is a feature gate of both.
IMAGE_VOLUME_MINOR: Final = (1, 35)


class GateMode(StrEnum):
    """`imageGate.mode`."""

    REQUIRE_LABEL = "requireLabel"
    PREFER = "prefer"
    STARTUP_TAINT = "startupTaint"
    OFF = "off"


@dataclass(frozen=True)
class ManagedImage:
    """One image that the puller brings to nodes; compared by its normalised reference."""

    # As written in the values.
    reference: str
    normalised: str
    # The node label that says that it is present.
    label: str
    # Every way in which a node's list may spell it.
    spellings: tuple[str, ...]


@dataclass(frozen=True)
class Puller:
    """One DaemonSet of the puller: its images, and the nodes that it brings them to."""

    name: str
    # Labels that its nodes must have.
    node_selector: Mapping[str, str]
    images: tuple[ManagedImage, ...]
    # Node selector terms, of which a node must match one; None: every node matches.
    required_terms: tuple[selectors.NodeTerm, ...] | None = None
    # All tolerations of its pods; None: not given, so it tolerates everything.
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
    # The longest that a node is kept from users who wait for its images. requireLabel: since an
    # image is missing there; startupTaint: since the node is Ready.
    pull_deadline_seconds: int

    @property
    def labelling(self) -> tuple[Puller, ...]:
        """The pullers whose images nodes have labels for."""
        return () if self.mode is GateMode.OFF else self.pullers

    @cached_property
    def managed_images(self) -> frozenset[str]:
        """Normalised references of all images that the pullers bring to nodes."""
        return frozenset().union(*(puller.references for puller in self.pullers))


def managed_image(release: str, namespace: str, reference: str) -> ManagedImage:
    """Describe an image for one hub."""
    normalised = normalise_reference(reference)
    # Some runtimes list Docker Hub images by a short form.
    prefixes = [
        prefix for prefix in ("docker.io/library/", "docker.io/") if normalised.startswith(prefix)
    ]
    spellings = (normalised, *map(normalised.removeprefix, prefixes))
    return ManagedImage(
        reference, normalised, pulled_label(release, namespace, reference), spellings
    )


def selects(puller: Puller, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether the DaemonSet's selector and terms match a node."""
    if not puller.node_selector.items() <= labels.items():
        return False
    terms = puller.required_terms
    return terms is None or any(
        selectors.node_term_matches(term, node_name, labels) for term in terms
    )


def serving(pullers: Sequence[Puller], node: Node) -> list[Puller]:
    """The DaemonSets that select the node and tolerate its taints; if none tolerates them, all that
    select it.
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
    """`imageGate` of a release; faults go to the reader."""
    gate = read.mapping(value, "imageGate")
    mode = gate.get("mode")
    return ImageGate(
        # YAML 1.1 reads a bare `off` as false.
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
    """The puller's tolerations, and those of every puller; None: not given."""
    if value is None:
        return None
    return (
        *selectors.read_tolerations(read.mappings(value, key)),
        *tolerations_of_all(release, namespace),
    )


def tolerations_of_all(release: str, namespace: str) -> tuple[selectors.Toleration, ...]:
    """What every puller's pod of a hub tolerates."""
    return (
        *_DAEMON_TOLERATIONS,
        selectors.Toleration(startup_taint(release, namespace), "Exists", "", ""),
    )
