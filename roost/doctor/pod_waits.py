"""Which pods wait now, grouped by cause, in the words of scheduler, kubelet and autoscaler: `roost
doctor --now`.

Needs the right to list pods and Events of one namespace, and nothing of Roost's: no values, no
recorder.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from roost.doctor.evidence import count, label_items, some
from roost_core.objects.fields import JSONObject
from roost_core.objects.timestamps import event_beginning, event_moment, read_moment
from roost_core.placement.hold_ups import LATE_WORDS
from roost_core.placement.kubelet_pulls import image_in_message
from roost_core.placement.labels import COMPONENT_LABEL

_LENGTH: Final = 200
# Components of pods, as zero-to-jupyterhub and BinderHub label them, and Roost: those of users
# first.
_KINDS: Final = {
    "singleuser-server": "user",
    "binderhub-build": "build",
    "user-placeholder": "placeholder",
}
# What a kubelet says while nothing is wrong: an Event says more.
_STARTING: Final = ("ContainerCreating", "PodInitializing")
# What a kubelet says when a container comes further.
_PROGRESS: Final = ("Pulled", "Created", "Started")
# In the cause of a pod one of whose containers already runs.
_RUNS_FIRST: Final = "runs before the rest"
# Words of a cause, and what to do; the first that match count.
_TO_DO: Final = {
    "Insufficient|Too many pods": (
        "no room: let the autoscaler add nodes, or raise its limit. Placeholders to ask for:"
        " roost headroom -f values.yaml."
    ),
    "affinity|selector": (
        "kubectl get nodes --show-labels; roost doctor, check reach. For seconds: the image gate."
    ),
    "[Vv]olume": (
        "kubectl describe pvc: its zone, its storage class, and the driver's pods on that node."
    ),
    "PodSandBox|NetworkNotReady": (
        "the pod has no address yet: the network plugin's pods on that node, its free addresses."
    ),
    "taint": "kubectl describe node: a taint that nobody tolerates, or a node that isn't ready.",
    "^pulling": (
        "nothing for as long as such pulls take. Longer: kubectl describe pod, the registry, the"
        " node's disk."
    ),
    "Image|Registry": (
        "not found: correct the reference. Denied: the pull secrets. No answer: the registry."
    ),
    _RUNS_FIRST: "kubectl logs -c with that container's name: what takes it so long.",
    "Container|CrashLoop|Hook": "kubectl logs --previous, kubectl describe pod.",
    "has not looked": (
        "is that scheduler there (kubectl get lease)? roost doctor -f values.yaml says why not."
    ),
}


class Wait(NamedTuple):
    """Why one pod waits, since when (Unix time), and where."""

    pod: str
    kind: str
    cause: str
    since: float
    autoscaler: str = ""
    node: str = ""
    # Whether it takes its time while nothing is wrong, or only Events tell more.
    is_expected: bool = False
    # The scheduler that has not looked at the pod; "": one has.
    ignored_by: str = ""


class _Cause(NamedTuple):
    """Why one pod waits."""

    text: str
    # In Unix time; None: since it was created.
    since: float | None = None
    # As in Wait.
    is_expected: bool = False
    ignored_by: str = ""


def find_waits(pods: Iterable[JSONObject], events: Iterable[JSONObject]) -> list[Wait]:
    """Each pod that has no node yet, or whose containers don't run yet."""
    by_uid: dict[str, list[JSONObject]] = {}
    for event in sorted(events, key=event_moment):
        by_uid.setdefault(str(event["involvedObject"].get("uid")), []).append(event)
    waits = []
    for pod in pods:
        status = pod.get("status") or {}
        has_ended = status.get("phase", "Pending") not in ("Pending", "Running")
        if has_ended or pod["metadata"].get("deletionTimestamp"):
            continue
        about = by_uid.get(str(pod["metadata"].get("uid")), [])
        cause = _cause(pod["spec"], status, about)
        if cause is not None:
            kind = _KINDS.get(label_items(pod).get(COMPONENT_LABEL, ""), "other")
            name = pod["metadata"]["name"]
            created = read_moment(pod["metadata"].get("creationTimestamp")) or 0.0
            waits.append(
                Wait(
                    pod=name,
                    kind=kind,
                    cause=_short(cause.text, name),
                    since=cause.since or created,
                    autoscaler=_short(_last_of_autoscaler(about), name),
                    node=pod["spec"].get("nodeName") or "",
                    is_expected=cause.is_expected,
                    ignored_by=cause.ignored_by,
                )
            )
    return waits


def _last_of_autoscaler(events: Iterable[JSONObject]) -> str:
    """What an autoscaler said last; "": nothing."""
    message = ""
    for event in events:
        source = event.get("source") or {}
        component = source.get("component") or event.get("reportingComponent")
        if re.search("autoscaler|karpenter", str(component)):
            message = f"{event.get('reason')}: {event.get('message')}"
    return message


def show_waits(waits: list[Wait], pods: int, now: float) -> str:
    """The waits as text, a paragraph for each cause."""
    lines = [f"Waiting: {len(waits)} of {count(pods, 'pod')}."]
    for group in by_cause(waits):
        kind = group[0].kind
        newest = group[0]
        oldest = group[-1]
        nodes = sorted({wait.node for wait in group} - {""})
        where = f" (on {some(nodes)})" if nodes else ""
        names = some([wait.pod for wait in group])
        lines += [
            "",
            f"{count(len(group), f'{kind} pod')}: {newest.cause}{where}",
            f"    newest {_span(now - newest.since)}, oldest {_span(now - oldest.since)}: {names}",
        ]
        autoscaler = next((wait.autoscaler for wait in group if wait.autoscaler), "")
        if autoscaler:
            lines.append(f"    autoscaler: {autoscaler}")
        if kind == "placeholder" and not nodes:
            advice = "nothing: they make an autoscaler act."
        else:
            advice = what_to_do(newest)
        lines.append(f"    Do: {advice}")
    return "\n".join(lines)


def by_cause(waits: list[Wait]) -> list[list[Wait]]:
    """The waits of each kind and cause, the newest first: users' first, placeholders' last."""
    groups: dict[tuple[str, str], list[Wait]] = {}
    for wait in sorted(waits, key=lambda wait: -wait.since):
        groups.setdefault((wait.kind, re.sub(r"\d+", "#", wait.cause)), []).append(wait)
    order = ["user", "build", "other", "placeholder"]
    return [
        group
        for (kind, _), group in sorted(groups.items(), key=lambda item: order.index(item[0][0]))
    ]


def what_to_do(wait: Wait) -> str:
    """Where to look, by a wait's cause."""
    advice = (text for words, text in _TO_DO.items() if re.search(words, wait.cause))
    return next(advice, f"kubectl describe pod {wait.pod}")


def _cause(spec: Any, status: Any, events: list[JSONObject]) -> _Cause | None:  # noqa: ANN401 - JSON
    """Why a pod waits; None: it doesn't."""
    if not spec.get("nodeName"):
        return _why_unbound(spec, status)
    return _why_not_running(status, events)


def _why_unbound(spec: Any, status: Any) -> _Cause:  # noqa: ANN401 - JSON
    """Why a pod has no node."""
    gates = spec.get("schedulingGates")
    if gates:
        return _Cause(f"scheduling gates {some([gate['name'] for gate in gates])}")
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            text = str(condition.get("message") or condition.get("reason"))
            return _Cause(text, read_moment(condition.get("lastTransitionTime")))
    scheduler = spec.get("schedulerName", "")
    return _Cause(f"scheduler {scheduler} has not looked at it", ignored_by=scheduler)


def _why_not_running(status: Any, events: list[JSONObject]) -> _Cause | None:  # noqa: ANN401 - JSON
    """Why the containers of a pod that has a node don't run; None: they do.

    A kubelet's reason counts first, then the newest Event that says more than the pod's status.
    """
    statuses = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    waiting = [
        container["state"]["waiting"]
        for container in statuses
        if "waiting" in (container.get("state") or {})
    ]
    for state in waiting:
        if state.get("reason") not in _STARTING:
            return _Cause(f"{state.get('reason')}: {state.get('message', '')}".rstrip(": "))
    if status.get("phase") == "Running":
        return None
    return _why_by_events(status, events) or _why_by_containers(statuses)


def _why_by_events(status: Any, events: list[JSONObject]) -> _Cause | None:  # noqa: ANN401 - JSON
    """What the newest Events say that a pod waits for; None: nothing, or it came further since."""
    for event in reversed(events):
        reason = event.get("reason")
        message = str(event.get("message") or "")
        if reason == "Pulling":
            text = f"pulling {image_in_message(message)}"
            return _Cause(text, event_moment(event), is_expected=True)
        if event.get("type") == "Warning" and reason != "FailedScheduling":
            return _Cause(f"{reason}: {message}", _warned_since(event, events, status))
        if reason in _PROGRESS:
            return None
    return None


def _why_by_containers(statuses: list[Any]) -> _Cause:
    """Which containers of a pod that starts run already."""
    running = {
        container["name"]: container["state"]["running"]
        for container in statuses
        if "running" in (container.get("state") or {})
    }
    if not running:
        return _Cause("its containers are being made", is_expected=True)
    started = [read_moment((state or {}).get("startedAt")) for state in running.values()]
    since = max(filter(None, started), default=None)
    return _Cause(f"{some([*running])} {_RUNS_FIRST}", since, is_expected=True)


def _warned_since(last: JSONObject, events: list[JSONObject], status: Any) -> float:  # noqa: ANN401 - JSON
    """Since when a pod waits for what its last warning says: kubelets repeat it, in one Event or in
    several.
    """
    if any(words in str(last.get("message")) for words in LATE_WORDS):
        for condition in status.get("conditions") or []:
            bound = read_moment(condition.get("lastTransitionTime"))
            if condition.get("type") == "PodScheduled" and bound:
                return bound
    since = event_beginning(last)
    for event in reversed(events):
        if event.get("reason") in _PROGRESS:
            break
        if event.get("reason") == last.get("reason"):
            since = min(since, event_beginning(event) or since)
    return since


def _short(text: str, pod: str) -> str:
    """A message without what differs from pod to pod, and without what pre-emption adds."""
    line = " ".join(text.split())
    of_any_pod = re.sub(rf"(?<![\w-]){re.escape(pod)}(?![\w-])", "<pod>", line)
    reasons = re.sub(r"^\d+/\d+ nodes are available: ", "", of_any_pod)
    short = re.split(r"[.,] (?:preemption: |no new claims)", reasons)[0].rstrip(".")
    if len(short) <= _LENGTH:
        return short
    # What went wrong stands at the end of a kubelet's message.
    return f"{short[: _LENGTH // 3]} … {short[-_LENGTH // 2 :]}"


def _span(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
