"""Read pods, nodes and Events as JSON has them into what the recorder needs, and nothing of their secrets.

Of a pod's environment one variable is read, and only where the settings name it as the repository's source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost_core.placement.pods import OddPodError
from roost_core.placement.pods import read_pod as read_whole_pod
from roost_core.placement.repositories import repository_of
from roost_core.placement.timestamps import read_moment
from roost_core.scheduler.node_reader import OddNodeError, read_node_state
from roost_core.scheduler.pod_reader import read_pod_state

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from roost_core.placement.pods import Pod
    from roost_core.placement.settings import KeySource
    from roost_core.scheduler.objects import NodeState, PodSpec, PodState

JSONObject = dict[str, Any]
US: Final = 1_000_000
# Microseconds that a moment of whole seconds may be wrong by, and one of the API's MicroTime.
SECOND_US: Final = US
MICRO_US: Final = 1
_NOTHING: Final[JSONObject] = {}
_PERSISTENT_REQUEST: Final = "BINDER_PERSISTENT_REQUEST"
_REF: Final = "--ref="
_MAX_REF: Final = 256
# https://user:token@host/…; git@host:path names nobody.
_USERINFO: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@")
# Go's way to write spans: 1h2m3.5s, 250ms, 17µs.
_SPAN_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|s|m|h)")
_SPAN_US: Final = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(US),
    "m": Fraction(60 * US),
    "h": Fraction(3600 * US),
}


class Step(NamedTuple):
    """When a phase was reached, and how exactly that is known."""

    at_us: int
    resolution_us: int


@dataclass(frozen=True, slots=True)
class ContainerTimes:
    """What a kubelet says of one container."""

    name: str
    image: str
    # repository@sha256:… or sha256:…; "" until it is known.
    image_id: str
    started_us: int | None
    finished_us: int | None
    exit_code: int | None
    init: bool


@dataclass(frozen=True, slots=True)
class SeenPod:
    """One pod at one moment."""

    state: PodState
    resource_version: str
    repo: str
    ref: str
    created_us: int
    accepted_us: int | None
    deletion_us: int | None
    # Type -> (status, when it became so, reason, message).
    conditions: Mapping[str, tuple[str, int | None, str, str]]
    containers: tuple[ContainerTimes, ...]
    reason: str
    # Names of the scheduling gates that are left.
    gates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenNode:
    """One node at one moment."""

    state: NodeState
    resource_version: str
    created_us: int
    ready_us: int | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A pod or node that is there, of which no more can be read."""

    uid: str


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """One Event (events.k8s.io/v1) as it stands."""

    uid: str
    reason: str
    note: str
    is_warning: bool
    # Kind, namespace, name, uid of what it is about, and of a second object.
    about: tuple[str, str, str, str]
    related: tuple[str, str, str, str]
    # A scheduler's profile, kubelet, an autoscaler …
    controller: str
    # A node's name for kubelets.
    host: str
    first_us: int
    last_us: int
    # 1, or 1,000,000 for writers of the older kind.
    resolution_us: int
    count: int


def micros(text: object) -> int | None:
    """Microseconds since 1970 of an RFC 3339 time, exact to the last digit; None for anything else."""
    return _micros(text) if isinstance(text, str) else None


# A pod says the same moments again each time that it changes.
@lru_cache(maxsize=4096)
def _micros(text: str) -> int | None:
    # The fraction apart: a float of seconds since 1970 is exact to a quarter of a microsecond only.
    whole, point, rest = text.partition(".")
    zone = rest.lstrip("0123456789")
    fraction = rest[: len(rest) - len(zone)]
    seconds = read_moment(whole + zone) if point else read_moment(text)
    return None if seconds is None else int(seconds) * US + int(fraction[:6].ljust(6, "0"))


def read_span(text: str) -> int | None:
    """Microseconds of a span as Go writes it (`1m2.5s`); None when it isn't one."""
    total, end = Fraction(0), 0
    for match in _SPAN_PART.finditer(text):
        if match.start() != end:
            return None
        total += Fraction(match[1]) * _SPAN_US[match[2]]
        end = match.end()
    return int(total) if text and end == len(text) else None


def unreadable(item: JSONObject) -> Unreadable:
    """What there is of an object that can't be read."""
    metadata = item.get("metadata")
    return Unreadable(str((metadata if isinstance(metadata, dict) else _NOTHING).get("uid") or ""))


def without_userinfo(repo: str) -> str:
    """A repository's URL without the user and password (or token) that it may hold; anything else as it is."""
    return _USERINFO.sub(r"\1", repo)


def read_pod(
    item: JSONObject,
    key_sources: Sequence[KeySource],
    specs: MutableMapping[PodSpec, PodSpec],
    *,
    keep_containers: bool = False,
) -> SeenPod | None:
    """What the recorder keeps of a Pod; None when it can't be read. keep_containers: fill in `state.containers`."""
    try:
        state = read_pod_state(item, keep_containers, specs=specs)
        repo = ref = ""
        if key_sources:
            whole = read_whole_pod(item, state.namespace)
            repo = without_userinfo(repository_of(whole, key_sources))
            ref = reference_of(whole) if repo else ""
    except OddPodError:
        return None
    metadata, status = item["metadata"], item.get("status") or _NOTHING
    created_us = micros(metadata.get("creationTimestamp")) or 0
    conditions = {
        str(one.get("type") or ""): (
            str(one.get("status") or ""),
            micros(one.get("lastTransitionTime")),
            str(one.get("reason") or ""),
            str(one.get("message") or ""),
        )
        for one in status.get("conditions") or ()
    }
    deletion_us = micros(metadata.get("deletionTimestamp"))
    grace = metadata.get("deletionGracePeriodSeconds")
    if deletion_us is not None and isinstance(grace, int):
        # The field says when it should be gone at the latest.
        deletion_us -= grace * US
    return SeenPod(
        state=state,
        resource_version=str(metadata.get("resourceVersion") or ""),
        repo=repo,
        ref=ref,
        created_us=created_us,
        accepted_us=micros(status.get("startTime")),
        deletion_us=deletion_us,
        conditions=conditions,
        containers=tuple(_containers(item, status)),
        reason=str(status.get("reason") or ""),
        gates=tuple(str(one.get("name") or "") for one in item["spec"]["schedulingGates"]) if state.gated else (),
    )


def reference_of(pod: Pod) -> str:
    """The resolved reference (a commit, a record's number) that a pod of BinderHub's is for; "" when it tells none.

    A user's is the end of BINDER_PERSISTENT_REQUEST (`v2/gh/owner/name/commit`), a build's the argument `--ref`.
    """
    found = pod.environment(_PERSISTENT_REQUEST).rpartition("/")[2]
    if not found and pod.containers:
        arguments = [*(pod.containers[0].get("command") or ()), *(pod.containers[0].get("args") or ())]
        found = next((str(one).removeprefix(_REF) for one in arguments if str(one).startswith(_REF)), "")
    return found[:_MAX_REF]


def _containers(item: JSONObject, status: JSONObject) -> list[ContainerTimes]:
    found = []
    for key, part, init in (
        ("containerStatuses", "containers", False),
        ("initContainerStatuses", "initContainers", True),
    ):
        # The status names images as the runtime knows them; the spec as the pod's author does.
        written = {one.get("name"): str(one.get("image") or "") for one in item["spec"].get(part) or ()}
        for one in status.get(key) or ():
            state = one.get("state") or _NOTHING
            running = state.get("running") or _NOTHING
            ended = state.get("terminated") or (one.get("lastState") or _NOTHING).get("terminated") or _NOTHING
            started = micros(ended.get("startedAt")) or micros(running.get("startedAt"))
            exit_code = ended.get("exitCode")
            found.append(
                ContainerTimes(
                    name=str(one.get("name") or ""),
                    image=written.get(one.get("name")) or str(one.get("image") or ""),
                    image_id=str(one.get("imageID") or ""),
                    started_us=started or None,
                    finished_us=micros(ended.get("finishedAt")) or None,
                    exit_code=exit_code if isinstance(exit_code, int) else None,
                    init=init,
                )
            )
    return found


def read_node(item: JSONObject) -> SeenNode | None:
    """What the recorder keeps of a Node; None when it can't be read."""
    try:
        state = read_node_state(item)
    except OddNodeError:
        return None
    metadata = item["metadata"]
    ready_us = None
    for one in (item.get("status") or _NOTHING).get("conditions") or ():
        if one.get("type") == "Ready" and one.get("status") == "True":
            ready_us = micros(one.get("lastTransitionTime"))
    return SeenNode(
        state=state,
        resource_version=str(metadata.get("resourceVersion") or ""),
        created_us=micros(metadata.get("creationTimestamp")) or 0,
        ready_us=ready_us,
    )


def read_event(item: JSONObject) -> SeenEvent:
    """What the recorder keeps of an Event of events.k8s.io/v1."""
    metadata = item["metadata"]
    series = item.get("series") or _NOTHING
    event_us = micros(item.get("eventTime"))
    created_us = micros(metadata.get("creationTimestamp")) or 0
    first_us = event_us or micros(item.get("deprecatedFirstTimestamp")) or created_us
    last_us = micros(series.get("lastObservedTime")) or micros(item.get("deprecatedLastTimestamp")) or first_us
    source = item.get("deprecatedSource") or _NOTHING
    return SeenEvent(
        uid=str(metadata.get("uid") or ""),
        reason=str(item.get("reason") or ""),
        note=str(item.get("note") or ""),
        is_warning=item.get("type") == "Warning",
        about=_object(item.get("regarding")),
        related=_object(item.get("related")),
        controller=str(item.get("reportingController") or source.get("component") or ""),
        host=str(source.get("host") or item.get("reportingInstance") or ""),
        first_us=first_us,
        last_us=max(first_us, last_us),
        resolution_us=MICRO_US if event_us else SECOND_US,
        count=max(1, int(series.get("count") or item.get("deprecatedCount") or 1)),
    )


def _object(reference: object) -> tuple[str, str, str, str]:
    found = reference if isinstance(reference, dict) else _NOTHING
    return (
        str(found.get("kind") or ""),
        str(found.get("namespace") or ""),
        str(found.get("name") or ""),
        str(found.get("uid") or ""),
    )
