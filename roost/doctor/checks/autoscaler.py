"""An autoscaler in the cluster sees placeholders, and lets users live."""

import re
from collections.abc import Sequence
from typing import Final

from roost.doctor.evidence import (
    HUB_VALUES,
    NODE_POOLS,
    annotation_of,
    autoscaler_words,
    some,
    users_of,
)
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import DO_NOT_DISRUPT_ANNOTATION, SAFE_TO_EVICT_ANNOTATION
from roost_core.placement.priorities import AUTOSCALER_CUTOFF

_CUTOFF: Final = re.compile(r"--expendable-pods-priority-cutoff[= ](-?\d+)")


def check(install: Install) -> CheckReport:
    yield "Deployments of cluster-autoscaler, Karpenter's NodePools"
    priority = install.values["priorityClasses"]["placeholder"]
    for deployment in install.deployments:
        words = autoscaler_words(deployment)
        given = _CUTOFF.search(" ".join(words))
        cutoff = int(given[1]) if given else AUTOSCALER_CUTOFF
        if words and priority < cutoff:
            metadata = deployment["metadata"]
            yield error(
                f"Deployment {metadata['namespace']}/{metadata['name']} ignores pods below priority"
                f" {cutoff}; placeholders have {priority}, so none makes a node come.",
                f"Set --expendable-pods-priority-cutoff={priority} there, or"
                f" priorityClasses.placeholder to {cutoff}.",
            )
    pools = [
        pool["metadata"]["name"]
        for pool in (install.client.find(NODE_POOLS) or {}).get("items", [])
        if (pool["spec"].get("disruption") or {}).get("consolidationPolicy") != "WhenEmpty"
    ]
    users = users_of(install)
    bare = [pod for pod in users if annotation_of(pod, DO_NOT_DISRUPT_ANNOTATION) != "true"]
    if pools and bare:
        yield warning(
            f"Karpenter (NodePool {some(pools)}) {_may_end(bare, users)}",
            f'{HUB_VALUES}: singleuser.extraAnnotations: {{{DO_NOT_DISRUPT_ANNOTATION}: "true"}};'
            " or consolidationPolicy: WhenEmpty.",
        )
    evictable = [pod for pod in users if _is_evictable(pod)]
    if evictable:
        yield warning(
            f"cluster-autoscaler {_may_end(evictable, users)}",
            f'{HUB_VALUES}: singleuser.extraAnnotations: {{{SAFE_TO_EVICT_ANNOTATION}: "false"}}.',
        )


def _may_end(pods: Sequence[JSONObject], users: Sequence[JSONObject]) -> str:
    names = some([pod["metadata"]["name"] for pod in pods])
    return f"may end {len(pods)} of {len(users)} users' pods to save a node: {names}."


def _is_evictable(pod: JSONObject) -> bool:
    """Whether cluster-autoscaler may end a pod to save its node."""
    says = annotation_of(pod, SAFE_TO_EVICT_ANNOTATION)
    if says in ("true", "false"):
        return says == "true"
    # cluster-autoscaler spares pods without a controller.
    owners = pod["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") for owner in owners)
