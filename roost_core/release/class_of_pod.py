"""Find a pod's class by its labels and namespace alone; the most specific class wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from roost_core.objects.selectors import Requirement, read_label_selector, selector_matches
from roost_core.placement.labels import NAMESPACE_NAME_LABEL
from roost_core.release.pod_classes import PodClass

# Never matched by a selector: pods there run the cluster itself.
SYSTEM_NAMESPACE: Final = "kube-system"


def namespace_matches(
    requirements: frozenset[Requirement],
    namespace: str,
    known: Mapping[str, Mapping[str, str]] | None,
) -> bool:
    """Whether a selector matches a namespace; known: labels of namespaces, None if they can't be
    read.
    """
    if namespace == SYSTEM_NAMESPACE:
        return False
    labels = known.get(namespace) if known is not None else None
    if labels is None:
        # The namespace's labels aren't known (yet), except the one that Kubernetes sets on every
        # namespace. A requirement on any other label then doesn't match, whatever its operator.
        if any(requirement.key != NAMESPACE_NAME_LABEL for requirement in requirements):
            return False
        labels = {}
    return selector_matches(requirements, {**labels, NAMESPACE_NAME_LABEL: namespace})


def needs_namespace_labels(selector: Mapping[str, object] | None) -> bool:
    """Whether a namespaceSelector needs other labels than the name, which every pod tells."""
    requirements = (read_label_selector(selector) if selector is not None else None) or frozenset()
    return any(requirement.key != NAMESPACE_NAME_LABEL for requirement in requirements)


class Classes:
    """The classes of one release, prepared to classify many pods."""

    def __init__(self, namespace: str, classes: Mapping[str, PodClass]) -> None:
        """namespace: the release's. classes: by name."""
        self._namespace = namespace
        # Most labels first, then by name: the first that matches is the most specific.
        ranked = sorted(classes.values(), key=lambda rival: (-len(rival.labels), rival.name))
        self._ranked: Sequence[
            tuple[PodClass, tuple[tuple[str, str], ...], frozenset[Requirement] | None]
        ] = [
            (
                pod_class,
                tuple(pod_class.labels.items()),
                None
                if pod_class.namespace_selector is None
                else read_label_selector(pod_class.namespace_selector),
            )
            for pod_class in ranked
        ]

    def classify(
        self,
        labels: Mapping[str, str],
        namespace: str,
        namespaces: Mapping[str, Mapping[str, str]] | None,
    ) -> PodClass | None:
        """Return the class of a pod with these labels in this namespace, None if it has none.

        namespaces: labels of the cluster's namespaces as far as known; None if they can't be read.
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
