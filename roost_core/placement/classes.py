"""Tell which class a pod belongs to: by its labels and its namespace alone, the most specific first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from roost_core.placement.labels import NAMESPACE_NAME_LABEL
from roost_core.placement.selectors import Requirement, labels_match, read_label_selector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roost_core.placement.settings import PodClass

# Never chosen by a selector: pods there keep the cluster itself going.
SYSTEM_NAMESPACE: Final = "kube-system"


def namespace_matches(
    requirements: frozenset[Requirement], namespace: str, known: Mapping[str, Mapping[str, str]] | None
) -> bool:
    """Tell whether a selector means a namespace; `known`: labels of namespaces, None when they can't be read."""
    if namespace == SYSTEM_NAMESPACE:
        return False
    labels = known.get(namespace) if known is not None else None
    if labels is None:
        # Its labels aren't known (yet): only what Kubernetes itself writes on every namespace can be told. A rule about
        # any other label is then not met, whichever way it is put.
        if any(requirement.key != NAMESPACE_NAME_LABEL for requirement in requirements):
            return False
        labels = {}
    return labels_match(requirements, {**labels, NAMESPACE_NAME_LABEL: namespace})


class HasClasses(Protocol):
    """Settings of some program that know the pod classes and their own namespace."""

    @property
    def namespace(self) -> str:
        """The release's."""

    @property
    def classes(self) -> Mapping[str, PodClass]:
        """By name."""


class Classes:
    """The classes of one release's settings, ready to be asked for each pod."""

    def __init__(self, settings: HasClasses) -> None:
        self._namespace = settings.namespace
        # Most labels first, then by name: the first that matches is the most specific.
        ranked = sorted(settings.classes.values(), key=lambda one: (-len(one.labels), one.name))
        self._ranked: Sequence[tuple[PodClass, tuple[tuple[str, str], ...], frozenset[Requirement] | None]] = [
            (
                pod_class,
                tuple(pod_class.labels.items()),
                None if pod_class.namespace_selector is None else read_label_selector(pod_class.namespace_selector),
            )
            for pod_class in ranked
        ]

    def classify(
        self,
        labels: Mapping[str, str],
        namespace: str,
        namespaces: Mapping[str, Mapping[str, str]] | None,
    ) -> PodClass | None:
        """The class of a pod with these labels in this namespace, None when it has none.

        namespaces: labels of the cluster's namespaces as far as they are known; None when they can't be read.
        """
        for pod_class, wanted, requirements in self._ranked:
            for key, value in wanted:
                if labels.get(key) != value:
                    break
            else:
                if requirements is None:
                    if namespace == self._namespace:
                        return pod_class
                elif namespace_matches(requirements, namespace, namespaces):
                    return pod_class
        return None
