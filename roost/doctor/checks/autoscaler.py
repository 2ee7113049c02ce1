"""An autoscaler in the cluster sees placeholders, and lets users live."""

import re
from typing import Final

from roost.doctor.contract import Finding, Install, Told
from roost.doctor.evidence import AUTOSCALER_CUTOFF, annotation_of, autoscaler_words, some, users_of
from roost_core.placement.labels import SAFE_TO_EVICT_ANNOTATION

_CUTOFF: Final = re.compile(r"--expendable-pods-priority-cutoff[= ](-?\d+)")


def check(install: Install) -> Told:
    yield "Deployments of cluster-autoscaler, Karpenter's NodePools"
    priority = install.values["priorityClasses"]["placeholder"]
    for deployment in install.client.get("/apis/apps/v1/deployments")["items"]:
        words = autoscaler_words(deployment)
        given = _CUTOFF.search(" ".join(words))
        cutoff = int(given[1]) if given else AUTOSCALER_CUTOFF
        if words and priority < cutoff:
            metadata = deployment["metadata"]
            yield Finding(
                "error",
                f"Deployment {metadata['namespace']}/{metadata['name']} ignores pods below priority {cutoff}; "
                f"placeholders have {priority}, so none makes a node come.",
                f"Set --expendable-pods-priority-cutoff={priority} there, or priorityClasses.placeholder to {cutoff}.",
            )
    yield from _find_karpenter(install)
    yield from _find_evictable(install)


def _find_karpenter(install: Install) -> Told:
    pools = install.client.find("/apis/karpenter.sh/v1/nodepools")
    moving = [
        pool["metadata"]["name"]
        for pool in (pools or {}).get("items", [])
        if (pool["spec"].get("disruption") or {}).get("consolidationPolicy") != "WhenEmpty"
    ]
    users = users_of(install) if moving else []
    bare = [pod["metadata"]["name"] for pod in users if annotation_of(pod, "karpenter.sh/do-not-disrupt") != "true"]
    if bare:
        yield Finding(
            "warning",
            f"Karpenter may end {len(bare)} of {len(users)} users' pods to save a node (NodePool {some(moving)}): "
            f"{some(bare)}.",
            'In the hub\'s values: singleuser.extraAnnotations: {karpenter.sh/do-not-disrupt: "true"}; or '
            "consolidationPolicy: WhenEmpty.",
        )


def _find_evictable(install: Install) -> Told:
    """Users that cluster-autoscaler may end: it spares pods without a controller unless they say otherwise."""
    users = users_of(install)
    evictable = [
        pod["metadata"]["name"]
        for pod in users
        if annotation_of(pod, SAFE_TO_EVICT_ANNOTATION) == "true"
        or (
            any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences") or [])
            and annotation_of(pod, SAFE_TO_EVICT_ANNOTATION) != "false"
        )
    ]
    if evictable:
        yield Finding(
            "warning",
            f"cluster-autoscaler may end {len(evictable)} of {len(users)} users' pods to save a node: "
            f"{some(evictable)}.",
            f'In the hub\'s values: singleuser.extraAnnotations: {{{SAFE_TO_EVICT_ANNOTATION}: "false"}}.',
        )
