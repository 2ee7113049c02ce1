"""Read Pods from the API's JSON.

Equal specs can share one `PodSpec`: give `read_pod` a pool. Texts that many records have in common are one object
each.
"""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING

from roost_core.objects.fields import (
    NOTHING,
    JSONObject,
    MalformedObjectError,
    child_list,
    child_number,
    child_object,
    child_objects,
    child_text,
    child_texts,
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
from roost_core.objects.requests import CPU, MEMORY, is_sidecar, sum_requests
from roost_core.objects.selectors import (
    read_label_selector,
    read_node_term,
    read_node_terms,
    read_tolerations,
)
from roost_core.objects.timestamps import read_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping


def read_pod(
    body: object,
    keep_containers: bool = False,
    *,
    specs: MutableMapping[PodSpec, PodSpec] | None = None,
) -> Pod:
    """Read a Pod as the API's JSON has it.

    keep_containers: fill in `containers`. specs: a pool; a spec that equals one in it becomes that one.
    Raises MalformedObjectError, and nothing else, when a part that is read has a wrong type.
    """
    if not isinstance(body, dict):
        raise MalformedObjectError("the object is not a JSON object")
    metadata, status = (child_object(body, part, "pod") or NOTHING for part in ("metadata", "status"))
    spec = child_object(body, "spec", "pod")
    if spec is None:
        raise MalformedObjectError("the pod has no spec")
    read = _read_spec(spec, status)
    return Pod(
        namespace=intern(child_text(metadata, "namespace", "metadata") or "default"),
        name=child_text(metadata, "name", "metadata"),
        uid=child_text(metadata, "uid", "metadata"),
        labels=intern_labels(child_texts(metadata, "labels", "metadata")),
        annotations=kept_annotations(child_texts(metadata, "annotations", "metadata")),
        node_name=intern(child_text(spec, "nodeName", "spec")),
        nominated_node=child_text(status, "nominatedNodeName", "status"),
        phase=intern(child_text(status, "phase", "status") or "Pending"),
        leaving=metadata.get("deletionTimestamp") is not None,
        created=read_moment(metadata.get("creationTimestamp")) or 0.0,
        started=read_moment(status.get("startTime")),
        priority=child_number(spec, "priority", "spec"),
        preempts=spec.get("preemptionPolicy") != "Never",
        scheduler_name=intern(child_text(spec, "schedulerName", "spec") or DEFAULT_SCHEDULER),
        owner=_owner(metadata),
        spec=read if specs is None else specs.setdefault(read, read),
        containers=_container_states(spec, status) if keep_containers else (),
        preempted=any(
            condition.get("type") == "DisruptionTarget"
            and condition.get("status") == "True"
            and condition.get("reason") == "PreemptionByScheduler"
            for condition in child_objects(status, "conditions", "status")
        ),
        gated=bool(child_list(spec, "schedulingGates", "spec")),
        reason=intern(child_text(status, "reason", "status")),
        unschedulable_since=next(
            (
                read_moment(condition.get("lastTransitionTime"))
                for condition in child_objects(status, "conditions", "status")
                if condition.get("type") == "PodScheduled"
                and condition.get("status") == "False"
                and condition.get("reason") == "Unschedulable"
            ),
            None,
        ),
    )


def _read_spec(spec: JSONObject, status: JSONObject) -> PodSpec:
    containers, inits = child_objects(spec, "containers", "spec"), child_objects(spec, "initContainers", "spec")
    amounts, non_zero, fit = sum_requests(spec, status, containers, inits)
    affinity = child_object(spec, "affinity", "spec") or NOTHING
    node_affinity = child_object(affinity, "nodeAffinity", "spec.affinity") or NOTHING
    where = "spec.affinity.nodeAffinity"
    required = child_object(node_affinity, REQUIRED, where)
    pod_affinity = child_object(affinity, "podAffinity", "spec.affinity") or NOTHING
    pod_anti_affinity = child_object(affinity, "podAntiAffinity", "spec.affinity") or NOTHING
    volumes = child_objects(spec, "volumes", "spec")
    return PodSpec(
        requests=amounts,
        non_zero_cpu=non_zero.get(CPU, 0),
        non_zero_memory=non_zero.get(MEMORY, 0),
        fit_requests=amounts if fit == amounts else fit,
        node_selector=tuple(sorted(child_texts(spec, "nodeSelector", "spec").items())),
        required_node_terms=None if required is None else read_node_terms(required.get("nodeSelectorTerms")),
        preferred_node_terms=tuple(
            (weight, term)
            for preferred in child_objects(node_affinity, PREFERRED, where)
            # kube-scheduler leaves out weight 0 and empty terms.
            if (weight := child_number(preferred, "weight", where))
            and (term := read_node_term(preferred.get("preference"))) is not None
        ),
        tolerations=read_tolerations(child_objects(spec, "tolerations", "spec")),
        required_affinity=tuple(_pod_term(term) for term in child_objects(pod_affinity, REQUIRED, "spec.affinity")),
        required_anti_affinity=tuple(
            _pod_term(term) for term in child_objects(pod_anti_affinity, REQUIRED, "spec.affinity")
        ),
        preferred_affinity=_weighted_pod_terms(pod_affinity),
        preferred_anti_affinity=_weighted_pod_terms(pod_anti_affinity),
        spread_constraints=tuple(
            read_spread_constraint(constraint)
            for constraint in child_objects(spec, "topologySpreadConstraints", "spec")
        ),
        host_ports=tuple(_host_ports(containers, inits)),
        images=tuple(child_text(container, "image", "spec.containers[]") for container in (*containers, *inits)),
        volume_images=tuple(
            reference
            for volume in volumes
            if (reference := child_text(_part(volume, "image"), "reference", "spec.volumes[]"))
        ),
    )


def read_spread_constraint(body: JSONObject) -> SpreadConstraint:
    """Read one of `topologySpreadConstraints`, with the API's defaults. Raises MalformedObjectError."""
    where = "spec.topologySpreadConstraints[]"
    keys = child_list(body, "matchLabelKeys", where) or ()
    return SpreadConstraint(
        topology_key=child_text(body, "topologyKey", where),
        max_skew=child_number(body, "maxSkew", where),
        required=child_text(body, "whenUnsatisfiable", where) == "DoNotSchedule",
        selector=read_label_selector(body.get("labelSelector")),
        min_domains=child_number(body, "minDomains", where) or 1,
        honor_affinity=child_text(body, "nodeAffinityPolicy", where) != "Ignore",
        honor_taints=child_text(body, "nodeTaintsPolicy", where) == "Honor",
        match_label_keys=tuple(key for key in keys if isinstance(key, str)),
    )


def _pod_term(term: JSONObject) -> PodTerm:
    where = "spec.affinity"
    namespaces = child_list(term, "namespaces", where) or ()
    return PodTerm(
        topology_key=child_text(term, "topologyKey", where),
        selector=read_label_selector(term.get("labelSelector")),
        namespaces=frozenset(name for name in namespaces if isinstance(name, str)),
        namespace_selector=read_label_selector(term.get("namespaceSelector")),
    )


def _weighted_pod_terms(affinity: JSONObject) -> tuple[tuple[int, PodTerm], ...]:
    return tuple(
        (
            child_number(preferred, "weight", "spec.affinity"),
            _pod_term(child_object(preferred, "podAffinityTerm", "spec.affinity") or NOTHING),
        )
        for preferred in child_objects(affinity, PREFERRED, "spec.affinity")
    )


def _part(volume: JSONObject, key: str) -> JSONObject:
    return child_object(volume, key, "spec.volumes[]") or NOTHING


def _host_ports(containers: Iterable[JSONObject], inits: Iterable[JSONObject]) -> Iterable[HostPort]:
    for container in (*containers, *(init for init in inits if is_sidecar(init))):
        for port in child_objects(container, "ports", "spec.containers[]"):
            number = child_number(port, "hostPort", "spec.containers[].ports[]")
            if number > 0:
                yield HostPort(
                    child_text(port, "hostIP", "spec.containers[].ports[]") or "0.0.0.0",  # noqa: S104 (Kubernetes' word for all addresses; nothing is bound here)
                    child_text(port, "protocol", "spec.containers[].ports[]") or "TCP",
                    number,
                )


def _container_states(spec: JSONObject, status: JSONObject) -> tuple[ContainerState, ...]:
    states = []
    for part, key in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        statuses = {child_text(entry, "name", "status"): entry for entry in child_objects(status, key, "status")}
        for container in child_objects(spec, part, "spec"):
            name = child_text(container, "name", "spec")
            container_status = statuses.get(name, NOTHING)
            state = child_object(container_status, "state", "status") or NOTHING
            waiting = child_object(state, "waiting", "status") or NOTHING
            states.append(
                ContainerState(
                    image=intern(
                        child_text(container, "image", "spec") or child_text(container_status, "image", "status")
                    ),
                    image_id=intern(child_text(container_status, "imageID", "status")),
                    waiting_reason=child_text(waiting, "reason", "status"),
                    waiting_message=child_text(waiting, "message", "status"),
                    running=state.get("running") is not None,
                    ready=container_status.get("ready") is True,
                    init=part == "initContainers",
                    terminated=state.get("terminated") is not None,
                    name=intern(name),
                )
            )
    return tuple(states)


def _owner(metadata: JSONObject) -> Owner | None:
    for reference in child_objects(metadata, "ownerReferences", "metadata"):
        if reference.get("controller") is True:
            where = "metadata.ownerReferences[]"
            return Owner(*(intern(child_text(reference, key, where)) for key in ("kind", "name", "uid")))
    return None
