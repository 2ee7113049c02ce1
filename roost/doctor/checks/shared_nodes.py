"""Users of all hubs on the same nodes count for each other."""

from collections import Counter

from roost.doctor.evidence import label_items, labels_of, selector_of, some
from roost.doctor.findings import CheckReport, warning
from roost.doctor.install import Install
from roost_core.objects.selectors import read_label_selector
from roost_core.placement.labels import USER_CLASS
from roost_core.release.class_of_pod import namespace_matches

_JOIN = (
    "One release can serve all of them (podClasses.user.match.namespaceSelector), or the same "
    "sharedPools.namespaceSelector in each hub's release joins them: docs/many-hubs.md."
)


def check(install: Install) -> CheckReport:
    user = install.values["podClasses"].get(USER_CLASS)
    labels = labels_of(user)
    if not install.values["enabled"] or not labels:
        yield "no users' pods are placed"
        return
    yield "users' pods of all namespaces"
    namespaces = install.namespaces
    pool = (install.values.get("sharedPools") or {}).get("namespaceSelector")
    shared = None if pool is None else read_label_selector(pool)
    own = selector_of(user)
    home = install.release.namespace
    if (
        shared is not None
        and home in namespaces
        and not namespace_matches(shared, home, namespaces)
    ):
        # A hub that its own `sharedPools` doesn't select doesn't join its own users.
        yield warning(
            f"sharedPools.namespaceSelector doesn't select the hub's own namespace {home}: its"
            " users don't join each other, and other hubs' users don't join them.",
            f"Label namespace {home} as the selector asks, or set sharedPools.namespaceSelector:"
            " null.",
        )

    def is_own(namespace: str) -> bool:
        return namespace == home if own is None else namespace_matches(own, namespace, namespaces)

    def is_joined(namespace: str) -> bool:
        return is_own(namespace) or (
            shared is not None and namespace_matches(shared, namespace, namespaces)
        )

    users: dict[str, Counter[str]] = {}
    for pod in install.pods_everywhere:
        if labels.items() <= label_items(pod).items() and (
            node := (pod.get("spec") or {}).get("nodeName")
        ):
            users.setdefault(node, Counter())[pod["metadata"].get("namespace") or ""] += 1
    beside: Counter[str] = Counter()
    for on_node in users.values():
        if any(map(is_own, on_node)):
            beside.update({name: count for name, count in on_node.items() if not is_joined(name)})
    if beside:
        others = some([f"{name} ({count})" for name, count in sorted(beside.items())])
        if own is not None:
            fix = "Label these namespaces as podClasses.user.match.namespaceSelector asks."
        elif shared is not None:
            fix = "Label these namespaces as sharedPools.namespaceSelector asks."
        else:
            fix = _JOIN
        yield warning(
            "Users of other hubs run on nodes of this one's users, and nothing joins them:"
            f" {others}. Each hub gathers its own users, and takes nodes that others fill for empty"
            " ones.",
            fix,
        )
