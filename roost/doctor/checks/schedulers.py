"""No further scheduler binds pods to the nodes of Roost's: two race for the last room of a node."""

from collections import Counter
from typing import Final

from roost.doctor.contract import Install, Told, warning
from roost.doctor.evidence import count, replaced, some

_DEFAULT_SCHEDULER: Final = "default-scheduler"


def check(install: Install) -> Told:
    scheduler = install.component("scheduler")
    yield "schedulers of pods on shared nodes" if scheduler is not None else "no scheduler is used"
    if scheduler is None:
        return
    own = f"{install.release.name}.{install.release.namespace}."
    pods = [
        pod
        for pod in install.pods_everywhere
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed") and pod["spec"].get("nodeName")
    ]
    nodes = {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("schedulerName", "").startswith(own)}
    shared = (pod["spec"] for pod in pods if pod["spec"]["nodeName"] in nodes)
    names = Counter(spec.get("schedulerName", _DEFAULT_SCHEDULER) for spec in shared)
    others = {name: names[name] for name in names if name != _DEFAULT_SCHEDULER and not name.startswith(own)}
    if others:
        told = [f"{name} ({count(number, 'pod')})" for name, number in sorted(others.items())]
        yield warning(
            f"Other schedulers place pods on nodes that Roost's uses: {some(told)}. Each counts without what the "
            "other is just binding, so pods may fail with OutOfcpu or OutOfmemory.",
            "If they are this hub's, switch that scheduler off (zero-to-jupyterhub: scheduling.userScheduler.enabled: "
            f"false). {replaced(install, sorted(others))} Of another hub with Roost: sharedPools.",
        )
