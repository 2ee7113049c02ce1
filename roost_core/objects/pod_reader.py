"""Read Pods from the API's JSON.

To save memory, pods with equal specs can share one `PodSpec`: give `read_pod` a pool of specs.
Texts that many pods have are interned.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from sys import intern
from typing import Final

from roost_core.objects.fields import (
    NOTHING,
    TEXTS,
    JSONObject,
    MalformedObjectError,
    Shape,
    check_shape,
)
from roost_core.objects.metadata import intern_labels, kept_annotations
from roost_core.objects.pod import (
    DEFAULT_SCHEDULER,
    PREFERRED,
    REQUIRED,
    ContainerState,
    HostPort,
    Owner,
    Pod,
    PodSpec,
    PodTerm,
    SpreadConstraint,
)
from roost_core.objects.requests import (
    CONTAINER_REQUESTS,
    CPU,
    MEMORY,
    SPEC_REQUESTS,
    STATUS_REQUESTS,
    is_sidecar,
    read_limits,
    sum_requests,
)
from roost_core.objects.selectors import (
    NodeTerm,
    read_label_selector,
    read_node_term,
    read_node_terms,
    read_tolerations,
)
from roost_core.objects.timestamps import read_moment

# The types of all parts that are read of a pod. Parts of selectors are left out: their readers
# check these themselves.
_CONTAINERS: Final[Shape] = [
    {
        "name": str,
        "image": str,
        "ports": [{"hostPort": int, "hostIP": str, "protocol": str}],
        **CONTAINER_REQUESTS,
    }
]
_POD_TERM: Final[Shape] = {"topologyKey": str, "namespaces": list}
_POD_AFFINITY: Final[Shape] = {
    REQUIRED: [_POD_TERM],
    PREFERRED: [{"weight": int, "podAffinityTerm": _POD_TERM}],
}
_POD: Final[Shape] = {
    "metadata": {
        "namespace": str,
        "name": str,
        "uid": str,
        "labels": TEXTS,
        "annotations": TEXTS,
        "ownerReferences": [{"kind": str, "name": str, "uid": str}],
    },
    "spec": {
        "nodeName": str,
        "priority": int,
        "priorityClassName": str,
        "schedulerName": str,
        "schedulingGates": list,
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "nodeSelector": TEXTS,
        "affinity": {
            "nodeAffinity": {REQUIRED: {}, PREFERRED: [{"weight": int}]},
            "podAffinity": _POD_AFFINITY,
            "podAntiAffinity": _POD_AFFINITY,
        },
        "tolerations": [{}],
        "topologySpreadConstraints": [{}],
        "volumes": [{"image": {"reference": str}}],
        **SPEC_REQUESTS,
    },
    "status": {"nominatedNodeName": str, "phase": str, "reason": str, **STATUS_REQUESTS},
}
_STATUSES: Final[Shape] = [
    {
        "name": str,
        "image": str,
        "imageID": str,
        "state": {"waiting": {"reason": str, "message": str}},
    }
]
_CONTAINER_STATUSES: Final[Shape] = {
    "containerStatuses": _STATUSES,
    "initContainerStatuses": _STATUSES,
}
_SPREAD_CONSTRAINT: Final[Shape] = {
    "topologyKey": str,
    "maxSkew": int,
    "whenUnsatisfiable": str,
    "minDomains": int,
    "nodeAffinityPolicy": str,
    "nodeTaintsPolicy": str,
    "matchLabelKeys": list,
}


def read_pod(
    body: object,
    keep_containers: bool = False,
    *,
    specs: MutableMapping[PodSpec, PodSpec] | None = None,
) -> Pod:
    """Read a Pod as the API's JSON has it.

    keep_containers: read the statuses of containers, too. specs: the pool; a spec that isn't in it
    yet is added. Raises MalformedObjectError, and nothing else, if a part that is read has a wrong
    type.
    """
    check_shape(body, _POD, "pod")
    if not isinstance(body, dict) or body.get("spec") is None:
        raise MalformedObjectError("the pod has no spec")
    spec = body["spec"]
    metadata = body.get("metadata") or NOTHING
    status = body.get("status") or NOTHING
    conditions = status.get("conditions") or ()
    return Pod(
        namespace=intern(metadata.get("namespace") or "default"),
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        labels=intern_labels(metadata.get("labels") or NOTHING),
        annotations=kept_annotations(metadata.get("annotations") or NOTHING),
        node_name=intern(spec.get("nodeName") or ""),
        nominated_node=status.get("nominatedNodeName") or "",
        phase=intern(status.get("phase") or "Pending"),
        leaving=metadata.get("deletionTimestamp") is not None,
        created=read_moment(metadata.get("creationTimestamp")) or 0.0,
        started=read_moment(status.get("startTime")),
        priority=spec.get("priority") or 0,
        priority_class=intern(spec.get("priorityClassName") or ""),
        preempts=spec.get("preemptionPolicy") != "Never",
        scheduler_name=intern(spec.get("schedulerName") or DEFAULT_SCHEDULER),
        spec=_pooled(_read_spec(spec, status), specs),
        limits=read_limits(spec),
        has_deadline=spec.get("activeDeadlineSeconds") is not None,
        owner=_owner(metadata),
        containers=_container_states(spec, status) if keep_containers else (),
        preempted=any(
            _is_true(condition, "DisruptionTarget")
            and condition.get("reason") == "PreemptionByScheduler"
            for condition in conditions
        ),
        gated=bool(spec.get("schedulingGates")),
        reason=intern(status.get("reason") or ""),
        unschedulable_since=_scheduled_since(conditions, "False", reason="Unschedulable"),
        bound_at=_scheduled_since(conditions, "True"),
        has_sandbox=any(
            _is_true(condition, "PodReadyToStartContainers") for condition in conditions
        ),
    )


def _is_true(condition: JSONObject, condition_type: str) -> bool:
    """Whether a condition is of a type, and its status is "True"."""
    return condition.get("type") == condition_type and condition.get("status") == "True"


def _scheduled_since(
    conditions: Iterable[JSONObject], status: str, *, reason: str | None = None
) -> float | None:
    """Since when the condition PodScheduled has had a status; None: it hasn't.

    reason: the reason that the condition must have; None: any.
    """
    for condition in conditions:
        if condition.get("type") != "PodScheduled" or condition.get("status") != status:
            continue
        if reason is None or condition.get("reason") == reason:
            return read_moment(condition.get("lastTransitionTime"))
    return None


def _pooled(spec: PodSpec, specs: MutableMapping[PodSpec, PodSpec] | None) -> PodSpec:
    """The equal spec in the pool, if there is a pool; else the spec."""
    return spec if specs is None else specs.setdefault(spec, spec)


def _read_spec(spec: JSONObject, status: JSONObject) -> PodSpec:
    """Read the parts of a spec that have been checked."""
    containers = spec.get("containers") or []
    inits = spec.get("initContainers") or []
    sums = sum_requests(spec, status, containers, inits)
    affinity = spec.get("affinity") or NOTHING
    node_affinity = affinity.get("nodeAffinity") or NOTHING
    pod_affinity = affinity.get("podAffinity") or NOTHING
    pod_anti_affinity = affinity.get("podAntiAffinity") or NOTHING
    required = node_affinity.get(REQUIRED)
    return PodSpec(
        requests=sums.requests,
        non_zero_cpu=sums.scored.get(CPU, 0),
        non_zero_memory=sums.scored.get(MEMORY, 0),
        # Mostly they are equal. Then both are the same object, to save memory.
        fit_requests=sums.requests if sums.fit == sums.requests else sums.fit,
        node_selector=tuple(sorted((spec.get("nodeSelector") or NOTHING).items())),
        required_node_terms=(
            None if required is None else read_node_terms(required.get("nodeSelectorTerms"))
        ),
        preferred_node_terms=tuple(_preferred_node_terms(node_affinity)),
        tolerations=read_tolerations(spec.get("tolerations") or ()),
        required_affinity=tuple(map(_pod_term, pod_affinity.get(REQUIRED) or ())),
        required_anti_affinity=tuple(map(_pod_term, pod_anti_affinity.get(REQUIRED) or ())),
        preferred_affinity=_weighted_pod_terms(pod_affinity),
        preferred_anti_affinity=_weighted_pod_terms(pod_anti_affinity),
        spread_constraints=tuple(
            map(read_spread_constraint, spec.get("topologySpreadConstraints") or ())
        ),
        host_ports=tuple(_host_ports(containers, inits)),
        images=tuple(container.get("image") or "" for container in (*containers, *inits)),
        volume_images=tuple(_volume_images(spec)),
    )


def _preferred_node_terms(node_affinity: JSONObject) -> Iterable[tuple[int, NodeTerm]]:
    """Each preferred term with its weight."""
    for preferred in node_affinity.get(PREFERRED) or ():
        weight = preferred.get("weight")
        term = read_node_term(preferred.get("preference"))
        # kube-scheduler leaves out weight 0 and empty terms.
        if weight and term is not None:
            yield weight, term


def _volume_images(spec: JSONObject) -> Iterable[str]:
    """References of the images that are mounted as volumes."""
    for volume in spec.get("volumes") or ():
        reference = (volume.get("image") or NOTHING).get("reference")
        if reference:
            yield reference


def read_spread_constraint(body: JSONObject) -> SpreadConstraint:
    """Read one of `topologySpreadConstraints`, with the API's defaults.

    Raises MalformedObjectError.
    """
    check_shape(body, _SPREAD_CONSTRAINT, "spec.topologySpreadConstraints[]")
    return SpreadConstraint(
        topology_key=body.get("topologyKey") or "",
        max_skew=body.get("maxSkew") or 0,
        required=body.get("whenUnsatisfiable") == "DoNotSchedule",
        selector=read_label_selector(body.get("labelSelector")),
        min_domains=body.get("minDomains") or 1,
        honor_affinity=body.get("nodeAffinityPolicy") != "Ignore",
        honor_taints=body.get("nodeTaintsPolicy") == "Honor",
        match_label_keys=tuple(
            key for key in body.get("matchLabelKeys") or () if isinstance(key, str)
        ),
    )


def _pod_term(term: JSONObject) -> PodTerm:
    return PodTerm(
        topology_key=term.get("topologyKey") or "",
        selector=read_label_selector(term.get("labelSelector")),
        namespaces=frozenset(
            name for name in term.get("namespaces") or () if isinstance(name, str)
        ),
        namespace_selector=read_label_selector(term.get("namespaceSelector")),
    )


def _weighted_pod_terms(affinity: JSONObject) -> tuple[tuple[int, PodTerm], ...]:
    return tuple(
        (preferred.get("weight") or 0, _pod_term(preferred.get("podAffinityTerm") or NOTHING))
        for preferred in affinity.get(PREFERRED) or ()
    )


def _host_ports(
    containers: Iterable[JSONObject], inits: Iterable[JSONObject]
) -> Iterable[HostPort]:
    for container in (*containers, *(init for init in inits if is_sidecar(init))):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or 0
            if number > 0:
                # Kubernetes' word for all addresses; nothing is bound here.
                yield HostPort(
                    port.get("hostIP") or "0.0.0.0",  # noqa: S104
                    port.get("protocol") or "TCP",
                    number,
                )


def _container_states(spec: JSONObject, status: JSONObject) -> tuple[ContainerState, ...]:
    check_shape(status, _CONTAINER_STATUSES, "status")
    states = []
    for part, key in (
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
    ):
        statuses = {entry.get("name"): entry for entry in status.get(key) or ()}
        for container in spec.get(part) or ():
            container_status = statuses.get(container.get("name"), NOTHING)
            state = container_status.get("state") or NOTHING
            waiting = state.get("waiting") or NOTHING
            states.append(
                ContainerState(
                    image=intern(container.get("image") or container_status.get("image") or ""),
                    image_id=intern(container_status.get("imageID") or ""),
                    waiting_reason=waiting.get("reason") or "",
                    waiting_message=waiting.get("message") or "",
                    running=state.get("running") is not None,
                    ready=container_status.get("ready") is True,
                    init=part == "initContainers",
                    terminated=state.get("terminated") is not None,
                    name=intern(container.get("name") or ""),
                    pulls_always=container.get("imagePullPolicy") == "Always",
                )
            )
    return tuple(states)


def _owner(metadata: JSONObject) -> Owner | None:
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller") is True:
            return Owner(*(intern(reference.get(key) or "") for key in ("kind", "name", "uid")))
    return None
