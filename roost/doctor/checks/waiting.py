"""Each pod that waits was looked at by the scheduler that it names, and no user waits for long."""

from typing import Final

from roost.doctor.conditions import Condition, State, conditions
from roost.doctor.evidence import (
    advice_for_schedulers,
    age_seconds,
    config_map_of,
    count,
    listed,
    read_profiles,
    some,
    users_of,
)
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost.doctor.pod_waits import by_cause, find_waits, what_to_do
from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import DEFAULT_SCHEDULER
from roost_core.placement.labels import USER_CLASS

# A scheduler tries a pod within a second; one that starts lists all pods first.
_PATIENCE_SECONDS: Final = 60.0


def check(install: Install) -> CheckReport:
    own = f"{install.release.name}.{install.release.namespace}."
    rendered = config_map_of(install, install.component("scheduler"))
    known = read_profiles(rendered).keys() if rendered is not None else ()
    yield f"pods without a node in {install.release.namespace}, and users' pods"
    waiting: dict[str, list[str]] = {}
    # Which scheduler ignores a pod, the pod's object alone tells.
    for wait in find_waits(_old(install, install.pods), events=[]):
        if wait.ignored_by:
            waiting.setdefault(wait.ignored_by, []).append(wait.pod)
    for scheduler, names in sorted(waiting.items()):
        follows: frozenset[Condition] = frozenset()
        if scheduler in known:
            follows = conditions(State.UNLED, "scheduler")
            fix = "Does it lead, and run with that profile (checks leaders and profiles)?"
        elif known and scheduler.startswith(own):
            fix = (
                "The values name no such profile: give it back in scheduler.profiles, or delete"
                " these pods. A new one gets a profile that there is."
            )
        elif scheduler == DEFAULT_SCHEDULER:
            fix = (
                "The cluster's own scheduler looks at no pod: see its pods in kube-system, or ask"
                " your provider."
            )
        else:
            fix = f"Is that scheduler there? {advice_for_schedulers(install, [scheduler])}"
        yield error(
            f"Pods wait for scheduler {scheduler}, which has not looked at them for"
            f" {_PATIENCE_SECONDS:.0f} s and longer: {some(names)}.",
            fix,
            follows=follows,
        )
    yield from _find_waiting_users(install)


def _find_waiting_users(install: Install) -> CheckReport:
    """Users for whom a scheduler finds no node, or whose containers don't start."""
    users = _old(install, users_of(install))
    waits = find_waits(users, events=[])
    # A pod's object may look like a usual start where its Events tell of a fault. Events are many,
    # so they are asked for only then.
    if any(wait.is_expected for wait in waits):
        user_class = install.values["podClasses"][USER_CLASS]
        waits = find_waits(users, listed(install, user_class, "/api/v1", "events"))
    waits = [wait for wait in waits if not (wait.is_expected or wait.ignored_by)]
    for group in by_cause(waits):
        nodes = some(sorted({wait.node for wait in group} - {""}))
        where = f" on {nodes}" if nodes else ""
        names = some([wait.pod for wait in group])
        waiting = f"{count(len(group), 'user pod')} waiting{where} ({names})"
        evidence = f"{waiting}: {group[0].cause}."
        yield warning(evidence, what_to_do(group[0]))


def _old(install: Install, pods: list[JSONObject]) -> list[JSONObject]:
    return [
        pod
        for pod in pods
        if (age_seconds(install, pod["metadata"].get("creationTimestamp")) or 0.0)
        > _PATIENCE_SECONDS
    ]
