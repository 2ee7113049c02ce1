"""Do users of other hubs run on this hub's nodes, although nothing joins them?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roost.doctor.evidence import label_items, labels_of, selector_of, some
from roost.doctor.findings import Finding
from roost_core.objects.selectors import read_label_selector
from roost_core.placement.classes import namespace_matches
from roost_core.placement.settings import USER_CLASS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roost.doctor.install import Install
    from roost_core.objects.selectors import Requirement

_JOIN = (
    "One release can serve all of them (podClasses.user.match.namespaceSelector), or the same "
    "sharedPools.namespaceSelector in each hub's release joins them: docs/many-hubs.md."
)


def check_hubs(install: Install) -> tuple[str, Iterator[Finding]]:
    """Users of all hubs on the same nodes count for each other."""
    user = install.values["podClasses"].get(USER_CLASS)
    labels = labels_of(user)
    if not install.values["enabled"] or not labels:
        return "no users' pods are placed", iter(())

    def find() -> Iterator[Finding]:
        namespaces = install.namespaces
        pool = (install.values.get("sharedPools") or {}).get("namespaceSelector")
        shared = None if pool is None else read_label_selector(pool)
        own = selector_of(user)
        yield from _find_outside_of_its_pool(install, shared, namespaces)

        def is_own(namespace: str) -> bool:
            if own is None:
                return namespace == install.release.namespace
            return namespace_matches(own, namespace, namespaces)

        users: dict[str, Counter[str]] = {}
        for pod in install.pods_everywhere:
            if labels.items() <= label_items(pod).items() and (node := (pod.get("spec") or {}).get("nodeName")):
                users.setdefault(node, Counter())[pod["metadata"].get("namespace") or ""] += 1
        beside: Counter[str] = Counter()
        for on_node in users.values():
            if any(map(is_own, on_node)):
                beside.update({name: count for name, count in on_node.items() if not is_own(name)})
        if shared is not None:
            beside = Counter(
                {name: count for name, count in beside.items() if not namespace_matches(shared, name, namespaces)}
            )
        if beside:
            said = some([f"{name} ({count})" for name, count in sorted(beside.items())])
            yield Finding(
                "warning",
                f"Users of other hubs run on nodes of this one's users, and nothing joins them: {said}. Each hub "
                "gathers its own users, and takes nodes that others fill for empty ones.",
                _JOIN,
            )

    return "users' pods of all namespaces", find()


def _find_outside_of_its_pool(
    install: Install, shared: frozenset[Requirement] | None, namespaces: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    """A hub that its own `sharedPools` doesn't select doesn't join its own users."""
    own = install.release.namespace
    if shared is not None and own in namespaces and not namespace_matches(shared, own, namespaces):
        yield Finding(
            "warning",
            f"sharedPools.namespaceSelector doesn't select the hub's own namespace {own}: its users don't join each "
            "other, and other hubs' users don't join them.",
            f"Label namespace {own} as the selector asks, or set sharedPools.namespaceSelector: null.",
        )
