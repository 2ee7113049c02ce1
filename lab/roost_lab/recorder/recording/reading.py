"""Reduce the JSON of pods, nodes and Events to what the recorder needs, without secrets.

Of a pod's environment it reads the variables that the settings name as sources of the repository,
and BinderHub's BINDER_PERSISTENT_REQUEST.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from roost_core.objects import pod_reader
from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.node import Node, node_or_none
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import round_up
from roost_core.objects.timestamps import read_moment
from roost_core.release.pod_classes import KeySource
from roost_core.release.repositories import PodTexts, repository_of
from roost_lab.units import US

# Resolution in µs of times in whole seconds, and of the API's MicroTime.
SECOND_US: Final = US
MICRO_US: Final = 1
_NOTHING: Final[JSONObject] = {}
_PERSISTENT_REQUEST: Final = "BINDER_PERSISTENT_REQUEST"
_REF: Final = "--ref="
_MAX_REF: Final = 256
# https://user:token@host/…; git@host:path holds no credentials.
_USERINFO: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@")


class Condition(NamedTuple):
    """One condition of a pod."""

    status: str = ""
    # Its last transition.
    since_us: int | None = None
    reason: str = ""
    message: str = ""

    @property
    def reached_us(self) -> int | None:
        """Since when it is true; None if it isn't, or doesn't tell."""
        return self.since_us if self.status == "True" else None


class Step(NamedTuple):
    """When a phase was reached, and the resolution of that time, in µs."""

    at_us: int
    resolution_us: int


_NO_CONDITION: Final = Condition()


@dataclass(frozen=True, slots=True)
class ContainerTimes:
    """What a kubelet reports about one container."""

    name: str
    image: str
    # repository@sha256:… or sha256:…; "" until it is known.
    image_id: str
    started_us: int | None
    init: bool
    # When it last ended; None: it hasn't.
    ended_us: int | None = None


@dataclass(frozen=True, slots=True)
class PodReading:
    """What the recorder needs of a pod, at one time."""

    state: Pod
    repo: str
    ref: str
    created_us: int
    accepted_us: int | None
    deletion_us: int | None
    # By type.
    conditions: Mapping[str, Condition]
    containers: tuple[ContainerTimes, ...]
    reason: str
    # Names of the remaining scheduling gates.
    gates: tuple[str, ...]
    # It has `spec.resourceClaims`.
    has_claims: bool

    def condition(self, kind: str) -> Condition:
        """The condition of a type; one without a status if it isn't there."""
        return self.conditions.get(kind, _NO_CONDITION)

    @property
    def is_unschedulable(self) -> bool:
        """Whether its scheduler has found no node for it."""
        scheduled = self.condition("PodScheduled")
        return (
            not self.state.node_name
            and scheduled.status == "False"
            and scheduled.reason == "Unschedulable"
        )


@dataclass(frozen=True, slots=True)
class NodeReading:
    """What the recorder needs of a node, at one time."""

    state: Node
    resource_version: str
    # As `amounts_text` has it.
    capacity: str | None = None

    @property
    def created_us(self) -> int:
        """When it was created; 0: not known."""
        return round(self.state.created * US)

    @property
    def ready_us(self) -> int | None:
        """Since when it is ready; None if it isn't, or the condition doesn't tell."""
        return round(self.state.ready_since * US) if self.state.ready_since else None


@dataclass(frozen=True, slots=True)
class Malformed:
    """A pod or node that exists but is malformed."""

    uid: str


class ObjectReference(NamedTuple):
    """An object that an Event names; "": what it doesn't say of it."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EventReading:
    """One Event (events.k8s.io/v1) in its current state."""

    uid: str
    reason: str
    note: str
    # `regarding`.
    about: ObjectReference
    related: ObjectReference
    # The reporting controller: a scheduler's profile, kubelet, an autoscaler …
    controller: str
    # For kubelets, the node's name.
    host: str
    # The first time, in whole seconds from writers of the deprecated fields.
    when: Step
    last_us: int
    count: int
    # When the API server got it; 0: not known.
    created_us: int = 0
    # The part of `about` that it is about, as spec.containers{notebook}.
    field_path: str = ""


def micros(text: object) -> int | None:
    """Microseconds since 1970 of an RFC 3339 time, exact; None for anything else."""
    return _micros(text) if isinstance(text, str) else None


# A pod repeats the same times at each of its changes.
@lru_cache(maxsize=4096)
def _micros(text: str) -> int | None:
    # The fraction separately: a float of seconds since 1970 is exact to a quarter of a microsecond
    # only.
    date, point, tail = text.partition(".")
    zone = tail.lstrip("0123456789")
    fraction = tail[: len(tail) - len(zone)]
    seconds = read_moment(date + zone) if point else read_moment(text)
    return None if seconds is None else int(seconds) * US + int(fraction[:6].ljust(6, "0"))


def malformed(item: JSONObject) -> Malformed:
    """A malformed object, with its uid if it has one."""
    metadata = item.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return Malformed(str(uid or ""))


def without_userinfo(repo: str) -> str:
    """A repository's URL without user, password or token; any other text unchanged."""
    return _USERINFO.sub(r"\1", repo)


def read_pod(
    item: JSONObject,
    key_sources: Sequence[KeySource],
    specs: MutableMapping[PodSpec, PodSpec],
    *,
    keep_containers: bool = False,
) -> PodReading | None:
    """What the recorder needs of a PodBody; None when it is malformed. keep_containers: fill in
    `state.containers`.
    """
    try:
        state = pod_reader.read_pod(item, keep_containers, specs=specs)
        texts = PodTexts(
            item["metadata"].get("labels") or _NOTHING,
            item["metadata"].get("annotations") or _NOTHING,
            item["spec"].get("containers") or [],
        )
        repo = without_userinfo(repository_of(texts, key_sources))
        ref = reference_of(texts) if repo else ""
    except MalformedObjectError:
        return None
    metadata = item["metadata"]
    status = item.get("status") or _NOTHING
    created_us = micros(metadata.get("creationTimestamp")) or 0
    conditions = {
        str(condition.get("type") or ""): Condition(
            str(condition.get("status") or ""),
            micros(condition.get("lastTransitionTime")),
            str(condition.get("reason") or ""),
            str(condition.get("message") or ""),
        )
        for condition in status.get("conditions") or ()
    }
    gates = item["spec"]["schedulingGates"] if state.gated else ()
    deletion_us = micros(metadata.get("deletionTimestamp"))
    grace = metadata.get("deletionGracePeriodSeconds")
    if deletion_us is not None and isinstance(grace, int):
        # The API server adds the grace period to the time of the deletion.
        deletion_us -= grace * US
    return PodReading(
        state=state,
        repo=repo,
        ref=ref,
        created_us=created_us,
        accepted_us=micros(status.get("startTime")),
        deletion_us=deletion_us,
        conditions=conditions,
        containers=tuple(_containers(item, status)),
        reason=str(status.get("reason") or ""),
        gates=tuple(str(gate.get("name") or "") for gate in gates),
        has_claims=bool(item["spec"].get("resourceClaims")),
    )


def reference_of(pod: PodTexts) -> str:
    """The resolved reference (a commit, a record's number) that BinderHub started a pod for; ""
    when there is none.

    A user's pod has it at the end of BINDER_PERSISTENT_REQUEST (`v2/gh/owner/name/commit`), a build
    in `--ref=`.
    """
    reference = pod.environment(_PERSISTENT_REQUEST).rpartition("/")[2]
    if not reference and pod.containers:
        main = pod.containers[0]
        for argument in (*(main.get("command") or ()), *(main.get("args") or ())):
            if str(argument).startswith(_REF):
                return str(argument).removeprefix(_REF)[:_MAX_REF]
    return reference[:_MAX_REF]


def _containers(item: JSONObject, status: JSONObject) -> list[ContainerTimes]:
    containers = []
    places = (
        ("containerStatuses", "containers", False),
        ("initContainerStatuses", "initContainers", True),
    )
    for key, part, init in places:
        # The status names images as the runtime does; the spec as the pod's author does.
        spec_images = {
            spec.get("name"): str(spec.get("image") or "") for spec in item["spec"].get(part) or ()
        }
        for container in status.get(key) or ():
            state = container.get("state") or _NOTHING
            running = state.get("running") or _NOTHING
            terminated = state.get("terminated") or _NOTHING
            # It may have ended before, and been started again.
            last_state = container.get("lastState") or _NOTHING
            ended = terminated or last_state.get("terminated") or _NOTHING
            started = micros(ended.get("startedAt")) or micros(running.get("startedAt"))
            image = spec_images.get(container.get("name")) or container.get("image")
            containers.append(
                ContainerTimes(
                    name=str(container.get("name") or ""),
                    image=str(image or ""),
                    image_id=str(container.get("imageID") or ""),
                    started_us=started or None,
                    init=init,
                    ended_us=micros(terminated.get("finishedAt")),
                )
            )
    return containers


def read_node(item: JSONObject) -> NodeReading | None:
    """What the recorder needs of a Node; None when it is malformed."""
    state = node_or_none(item)
    if state is None:
        return None
    capacity = amounts_text((item.get("status") or _NOTHING).get("capacity"))
    return NodeReading(state, str(item["metadata"].get("resourceVersion") or ""), capacity)


def amounts_text(quantities: object) -> str | None:
    """A JSON object of resource -> millicores, bytes or pieces, without what is no quantity; None
    when it is empty.
    """
    amounts = {}
    if isinstance(quantities, dict):
        for resource, quantity in quantities.items():
            with contextlib.suppress(ValueError):
                amounts[resource] = round_up(resource, parse_quantity(quantity))
    return json.dumps(amounts, sort_keys=True) if amounts else None


def read_event(item: JSONObject) -> EventReading:
    """What the recorder needs of an Event of events.k8s.io/v1."""
    metadata = item["metadata"]
    series = item.get("series") or _NOTHING
    event_us = micros(item.get("eventTime"))
    created_us = micros(metadata.get("creationTimestamp")) or 0
    first_us = event_us or micros(item.get("deprecatedFirstTimestamp")) or created_us
    last_us = (
        micros(series.get("lastObservedTime"))
        or micros(item.get("deprecatedLastTimestamp"))
        or first_us
    )
    source = item.get("deprecatedSource") or _NOTHING
    return EventReading(
        uid=str(metadata.get("uid") or ""),
        reason=str(item.get("reason") or ""),
        note=str(item.get("note") or ""),
        about=_object(item.get("regarding")),
        related=_object(item.get("related")),
        controller=str(item.get("reportingController") or source.get("component") or ""),
        host=str(source.get("host") or item.get("reportingInstance") or ""),
        when=Step(first_us, MICRO_US if event_us else SECOND_US),
        last_us=max(first_us, last_us),
        count=max(1, int(series.get("count") or item.get("deprecatedCount") or 1)),
        created_us=created_us,
        field_path=str((item.get("regarding") or _NOTHING).get("fieldPath") or ""),
    )


def _object(reference: object) -> ObjectReference:
    fields = reference if isinstance(reference, dict) else _NOTHING
    return ObjectReference(*(str(fields.get(key) or "") for key in ObjectReference._fields))
