"""Do autoscalers and evictions leave users and placeholders alone?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from roost.doctor.evidence import annotation_of, count, label_items, pod_templates, some, users_of
from roost.doctor.findings import Finding
from roost_core.objects.selectors import read_label_selector, selector_matches
from roost_core.placement.labels import SAFE_TO_EVICT_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost.doctor.install import Install, Object

# cluster-autoscaler's own default.
AUTOSCALER_CUTOFF: Final = -10
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_CUTOFF: Final = re.compile(r"--expendable-pods-priority-cutoff[= ](-?\d+)")


def check_autoscaler(install: Install) -> tuple[str, Iterator[Finding]]:
    """An autoscaler in the cluster sees placeholders, and lets users live."""

    def find() -> Iterator[Finding]:
        priority = install.values["priorityClasses"]["placeholder"]
        for deployment in install.client.get("/apis/apps/v1/deployments")["items"]:
            cutoff = _cutoff_of(deployment)
            if cutoff is not None and priority < cutoff:
                metadata = deployment["metadata"]
                yield Finding(
                    "error",
                    f"Deployment {metadata['namespace']}/{metadata['name']} ignores pods below priority {cutoff}; "
                    f"placeholders have {priority}, so none makes a node come.",
                    f"Set --expendable-pods-priority-cutoff={priority} there, or priorityClasses.placeholder to "
                    f"{cutoff}.",
                )
        yield from _find_karpenter(install)
        yield from _find_evictable(install)

    return "Deployments of cluster-autoscaler, Karpenter's NodePools", find()


def _find_karpenter(install: Install) -> Iterator[Finding]:
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


def _cutoff_of(deployment: Object) -> int | None:
    """Below which priority a cluster-autoscaler ignores pods; None: the Deployment is none."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        words = " ".join([container.get("image", ""), *container.get("command", []), *container.get("args", [])])
        if "cluster-autoscaler" in words:
            given = _CUTOFF.search(words)
            return int(given[1]) if given else AUTOSCALER_CUTOFF
    return None


def _find_evictable(install: Install) -> Iterator[Finding]:
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


def check_budgets(install: Install) -> tuple[str, Iterator[Finding]]:
    """No PodDisruptionBudget beside Roost's covers its pods: a pod that two cover can't be evicted at all."""
    own = {body["metadata"]["name"]: body["spec"].get("selector") for body in install.of_kind("PodDisruptionBudget")}
    templates = pod_templates(install)

    def find() -> Iterator[Finding]:
        path = f"/apis/policy/v1/namespaces/{install.release.namespace}/poddisruptionbudgets"
        for budget in install.client.get(path)["items"]:
            name = budget["metadata"]["name"]
            if name in own:
                continue
            for workload, template in templates:
                labels = label_items(template)
                if not selector_matches(read_label_selector(budget["spec"].get("selector")), labels):
                    continue
                if any(selector_matches(read_label_selector(selector), labels) for selector in own.values()):
                    yield Finding(
                        "warning",
                        f"PodDisruptionBudget {name} covers pods of {workload}, which have one of Roost's: a pod that "
                        "two cover is never evicted, so nodes can't be drained and placeholders not moved.",
                        "Narrow its selector, for example by app.kubernetes.io/part-of, or switch Roost's off "
                        "(corePods.pdb.enabled).",
                    )
                elif not (budget.get("status") or {}).get("disruptionsAllowed", 1):
                    yield Finding(
                        "warning",
                        f"PodDisruptionBudget {name} lets no pod of {workload} be evicted now.",
                        "Narrow its selector, or allow a disruption more.",
                    )

    return f"PodDisruptionBudgets in {install.release.namespace}", find()


def check_schedulers(install: Install) -> tuple[str, Iterator[Finding]]:
    """No further scheduler binds pods to the nodes of Roost's: two race for the last room of a node."""
    scheduler = install.component("scheduler")

    def find() -> Iterator[Finding]:
        if scheduler is None:
            return
        own = f"{install.release.name}.{install.release.namespace}."
        pods = [
            pod
            for pod in install.client.get("/api/v1/pods")["items"]
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed") and pod["spec"].get("nodeName")
        ]
        nodes = {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("schedulerName", "").startswith(own)}
        others: dict[str, int] = {}
        for pod in pods:
            name = pod["spec"].get("schedulerName", _DEFAULT_SCHEDULER)
            if pod["spec"]["nodeName"] in nodes and name != _DEFAULT_SCHEDULER and not name.startswith(own):
                others[name] = others.get(name, 0) + 1
        if others:
            told = [f"{name} ({count(number, 'pod')})" for name, number in sorted(others.items())]
            yield Finding(
                "warning",
                f"Other schedulers place pods on nodes that Roost's uses: {some(told)}. Each counts without what the "
                "other is just binding, so pods may fail with OutOfcpu or OutOfmemory.",
                "If they are this hub's, switch that scheduler off (zero-to-jupyterhub: scheduling.userScheduler."
                "enabled: false) or name it in replaceSchedulers. Of another hub with Roost: sharedPools.",
            )

    return "schedulers of pods on shared nodes" if scheduler is not None else "no scheduler is used", find()
