"""Tell to which nodes the puller's DaemonSets bring their images: by labels, required terms and taints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from roost_core.placement.labels import readiness_taint, startup_taint
from roost_core.placement.selectors import node_term_matches, untolerated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_core.placement.documents import Document, Reader
    from roost_core.placement.nodes import NodeFact

# What the DaemonSet controller lets every daemon pod tolerate.
# Source: Kubernetes' pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.
DAEMON_TOLERATIONS: Final[tuple[Mapping[str, object], ...]] = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists"}
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)


class Reaching(Protocol):
    """A DaemonSet of the puller, as far as it selects nodes."""

    @property
    def node_selector(self) -> Mapping[str, str]:
        """Labels that its nodes have."""

    @property
    def required_terms(self) -> Sequence[Mapping[str, object]]:
        """Node selector terms, of which its nodes meet one; none: all do."""

    @property
    def tolerations(self) -> Sequence[Mapping[str, object]] | None:
        """All that its pods tolerate; None: nobody said, so everything."""


_G = TypeVar("_G", bound=Reaching)


def selects(group: Reaching, node_name: str, labels: Mapping[str, str]) -> bool:
    """Whether the DaemonSet's selector and terms admit a node."""
    if not group.node_selector.items() <= labels.items():
        return False
    terms = group.required_terms
    return not terms or any(node_term_matches(term, node_name, labels) for term in terms)


def serving(groups: Sequence[_G], node: NodeFact) -> list[_G]:
    """The DaemonSets that bring images to the node; where its taints keep off all that select it, those that do."""
    selecting = [group for group in groups if selects(group, node.name, node.labels)]
    if not node.taints:
        return selecting
    tolerating = [
        group for group in selecting if group.tolerations is None or untolerated(node.taints, group.tolerations) is None
    ]
    return tolerating or selecting


def read_required_terms(read: Reader, group: Document, key: str) -> tuple[Mapping[str, object], ...]:
    """`requiredNodeTerms` of a puller of controllers.json; none in documents of an earlier Roost."""
    at = f"{key}.requiredNodeTerms"
    return tuple(
        read.mapping(term, f"{at}[{index}]")
        for index, term in enumerate(read.items(group.get("requiredNodeTerms"), at))
    )


def read_tolerations(
    read: Reader, group: Document, key: str, release: str, namespace: str
) -> tuple[Mapping[str, object], ...] | None:
    """`tolerations` of a puller of controllers.json, with what every puller's pod tolerates; None: it names none."""
    if group.get("tolerations") is None:
        return None
    at = f"{key}.tolerations"
    own = [read.mapping(one, f"{at}[{index}]") for index, one in enumerate(read.items(group.get("tolerations"), at))]
    taints = (startup_taint(release, namespace), readiness_taint(release, namespace))
    return (*own, *DAEMON_TOLERATIONS, *({"key": taint, "operator": "Exists"} for taint in taints))
