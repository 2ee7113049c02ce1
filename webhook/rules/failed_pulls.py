"""Keep pods off nodes that couldn't pull one of their images lately, where there are others.

`failing_nodes` says which nodes these are, for this rule and for others: warm sets leave them out,
and a pod with such nodes gets no `avoid` terms. `webhook/watching/failed_pulls.py` keeps the facts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from roost_core.objects.image_references import normalise_reference
from roost_core.objects.pod import MAX_WEIGHT
from roost_core.placement.beliefs import FAILED_PULL
from roost_core.placement.warm_sets import MAX_NODES
from webhook.facts.placed_pod import FailedPull, pull_secrets
from webhook.patch import PreferNode
from webhook.rules.contract import Case, Reads, Rule
from webhook.rules.scheduler import own_scheduler_name

NO_PULLS: Final[Mapping[FailedPull, float]] = {}


def failing_nodes(case: Case, ignored: Collection[FailedPull] = ()) -> list[str]:
    """Names of nodes that couldn't pull one of the pod's images lately.

    ignored: failures that don't count.
    """
    if not case.facts.failed_pulls:
        return []
    images = {normalise_reference(reference) for reference in case.pod.images}
    secrets = pull_secrets(case.pod.spec, case.pod.namespace)
    failed_with: dict[tuple[str, str], set[str]] = {}
    for image in images:
        for pull, at in case.facts.failed_pulls.get(image, NO_PULLS).items():
            if pull not in ignored and case.now - at < FAILED_PULL.age_seconds:
                failed_with.setdefault((pull.node, image), set()).add(pull.secrets)
    return sorted(
        {node for (node, _), tried in failed_with.items() if _speaks_against(tried, secrets)}
    )


def _speaks_against(tried: Collection[str], secrets: str) -> bool:
    """Whether failures with these pull secrets speak against the node, for a pod with `secrets`.

    This pod's secret may be accepted where another's was refused. If secrets of several namespaces
    were refused, the node is at fault. One namespace alone can't prove that: it may try any number
    of secrets.
    """
    namespaces = {of.partition("/")[0] for of in tried if of}
    return secrets in tried or len(namespaces) > 1


def prefer_others(case: Case) -> Iterator[PreferNode]:
    """Terms against nodes that fail: the nodes that other rules prefer may be full.

    After a start that was given up, the pull may only have been slow. So nodes of which a pod said
    that the pull failed get a second term, and come last.
    """
    yield from _others_than(failing_nodes(case))
    yield from _others_than(failing_nodes(case, ignored=case.facts.given_up))


def _others_than(failing: Sequence[str]) -> Iterator[PreferNode]:
    """A term for all nodes but these; none if there are none."""
    fields = [
        {"key": "metadata.name", "operator": "NotIn", "values": [name]}
        for name in failing[:MAX_NODES]
    ]
    if fields:
        yield PreferNode({"weight": MAX_WEIGHT, "preference": {"matchFields": fields}})


# Where Roost draws a class's pods together, one failing node would draw each of them again.
RULE: Final = Rule(
    prefer_others,
    lambda settings, pod_class: (
        pod_class.warm is not None or bool(own_scheduler_name(settings, pod_class))
    ),
    Reads.PULLS,
)
