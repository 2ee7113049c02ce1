"""Prefer nodes with pods of some classes, and nodes without pods of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import HOSTNAME_LABEL
from roost_core.objects.quotas import ACROSS_NAMESPACES
from roost_core.release.pod_classes import TIE_BREAK, PodClass
from roost_core.release.release_settings import ReleaseSettings
from webhook.patch import PreferPods
from webhook.rules.contract import Case, Note, Reads, Rule
from webhook.rules.failed_pulls import failing_nodes
from webhook.rules.scheduler import is_bound_by_roost, own_scheduler_name

# With more nodes, pods get no terms about pods. For each new pod kube-scheduler holds them against
# every pod of the cluster, and those of every pod against the new one, also for pods that aren't
# Roost's. At 5,000 nodes and 20,000 pods that is most of its work: docs/performance.md.
MOST_CLUSTER_NODES: Final = 500


def joins_unless_warm(settings: ReleaseSettings, pod_class: PodClass) -> bool:
    """Whether the class's `join` is for pods without a warm set alone.

    By the weights of a scheduler that isn't Roost's, it would outvote the warm set.
    """
    return (
        pod_class.warm is not None
        and bool(pod_class.join)
        and not own_scheduler_name(settings, pod_class)
    )


def pods_to_join(case: Case) -> Iterator[PreferPods | Note]:
    """The `join` terms of the pod's class."""
    return _terms(case, case.pod_class.join, towards=True)


def join_and_avoid(case: Case) -> Iterator[PreferPods | Note]:
    """The class's `join` terms, unless the rule of warm sets yields them, and its `avoid` terms."""
    if not joins_unless_warm(case.settings, case.pod_class):
        yield from pods_to_join(case)
    avoid = {
        name: weight
        for name, weight in case.pod_class.avoid.items()
        if name in case.settings.classes
    }
    ties = [name for name, weight in avoid.items() if weight == TIE_BREAK]
    why = _why_more_than_ties(case, ties) if ties else ""
    if why:
        yield Note("avoid", f"no term of weight {TIE_BREAK}: {why}")
        avoid = {name: weight for name, weight in avoid.items() if weight > TIE_BREAK}
    if avoid and failing_nodes(case):
        yield Note("avoid", _PULLS_FAIL)
        return
    yield from _terms(case, avoid, towards=False)


def _why_more_than_ties(case: Case, others: Iterable[str]) -> str:
    """Why a term of weight TIE_BREAK could cost a node, or outvote a home, a warm set or a mark;
    "": it can't.

    others: the classes to avoid. kube-scheduler counts a pod's term for those that come later, too.
    """
    if not is_bound_by_roost(case):
        return "another scheduler binds the pod, by other weights"
    if not all(own_scheduler_name(case.settings, case.settings.classes[name]) for name in others):
        return "another scheduler binds the pods to avoid, by other weights"
    nodes = case.facts.nodes
    if nodes is None:
        return "nodes can't be read, so some may be Karpenter's"
    if nodes.of_karpenter:
        return "Karpenter, which has nodes here, takes a preference for a requirement"
    return ""


def _terms(case: Case, weights: Mapping[str, int], *, towards: bool) -> Iterator[PreferPods | Note]:
    """A term without namespaces matches pods of its own pod's namespace only, so pods elsewhere
    would match nothing.

    In a namespace whose quota limits terms with namespaces (scope CrossNamespacePodAffinity) it has
    none: there the API server would refuse the pod.
    """
    settings, quotas = case.settings, case.facts.quotas
    topic = "join" if towards else "avoid"
    if weights and case.facts.nodes is not None and len(case.facts.nodes) > MOST_CLUSTER_NODES:
        yield Note(topic, _TOO_MANY)
        return
    is_guarded = quotas is None or ACROSS_NAMESPACES in quotas.get(case.pod.namespace, ())
    is_narrowed = False
    for name, weight in weights.items():
        other = settings.classes[name]
        term: JSONObject = {
            "labelSelector": {"matchLabels": dict(other.labels)},
            "topologyKey": HOSTNAME_LABEL,
        }
        if settings.shared_namespaces is not None:
            # The selector need not match the release's own namespace.
            term["namespaces"] = [settings.namespace]
            term["namespaceSelector"] = dict(settings.shared_namespaces)
        elif other.namespace_selector is not None:
            term["namespaceSelector"] = dict(other.namespace_selector)
        elif case.pod.namespace != settings.namespace:
            term["namespaces"] = [settings.namespace]
        if is_guarded:
            is_narrowed |= term.pop("namespaceSelector", None) is not None
            is_narrowed |= term.pop("namespaces", None) is not None
        yield PreferPods({"weight": weight, "podAffinityTerm": term}, towards)
    if is_narrowed:
        yield Note(topic, _UNKNOWN if quotas is None else _GUARDED, is_warning=True)


_PULLS_FAIL: Final = (
    "no terms: pulls of the pod's images fail on some nodes, and a term could lead it there"
)
_TOO_MANY: Final = (
    f"no terms: with more than {MOST_CLUSTER_NODES} nodes, kube-scheduler would take too long to"
    " count pods"
)
_GUARDED: Final = (
    f"pods of other namespaces don't count: a ResourceQuota limits {ACROSS_NAMESPACES} here"
)
_UNKNOWN: Final = "pods of other namespaces don't count: ResourceQuotas can't be read"

RULE: Final = Rule(
    join_and_avoid,
    lambda _settings, pod_class: bool(pod_class.join or pod_class.avoid),
    Reads.NODES | Reads.LEASES | Reads.QUOTAS | Reads.PULLS,
)
