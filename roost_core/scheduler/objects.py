"""Read Node and Pod objects into what scheduling needs of them, and nothing more.

Owns the small frozen records that controllers and the simulator keep by the ten thousand. Equal specs can share one
`PodSpec`: give `read_pod_state` a pool; texts that many records have in common are one object each. Amounts are whole
numbers as kube-scheduler counts them: CPU in millicores, all else in units (bytes, pieces), rounded up once for the
whole pod.
Source: component-helpers' resource.PodRequests, kube-scheduler's framework.NodeInfo and PodInfo, Kubernetes v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost_core.placement.copies import Copier
from roost_core.placement.labels import is_kept_annotation
from roost_core.placement.moments import read_moment
from roost_core.placement.nodes import NodeFact
from roost_core.placement.pods import (
    DEFAULT_SCHEDULER,
    PREFERRED,
    REQUIRED,
    OddPodError,
    child_list,
    child_object,
    child_text,
    child_texts,
)
from roost_core.placement.quantities import parse_quantity
from roost_core.placement.selectors import Requirement, Taint, read_label_selector, read_requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping

JSONObject = dict[str, Any]

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
_PLAIN_RESOURCES: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
# What a container without a request counts in scores: 100 millicores, 200 MiB.
DEFAULT_CPU_MILLICORES: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 2**20
_NON_ZERO_DEFAULTS: Final[Mapping[str, Fraction]] = {
    CPU: Fraction(DEFAULT_CPU_MILLICORES, 1000),
    MEMORY: Fraction(DEFAULT_MEMORY_BYTES),
}
FINISHED_PHASES: Final = frozenset({"Succeeded", "Failed"})
_NOTHING: Final[JSONObject] = {}


class OddNodeError(ValueError):
    """The object is no Node: it has no name, or parts of it are of another shape than any API server gives."""


class NodeTerm(NamedTuple):
    """One node selector term: all of it must hold. A term without expressions matches nothing."""

    expressions: tuple[Requirement, ...]
    # On `metadata.name`, the one field there is.
    fields: tuple[Requirement, ...]


class Toleration(NamedTuple):
    """One of `spec.tolerations`; "" stands for absent, and `operator` is never absent."""

    key: str
    operator: str
    value: str
    effect: str


class PodTerm(NamedTuple):
    """One pod (anti-)affinity term of a pod."""

    topology_key: str
    # None matches no pod, the empty set every one.
    selector: frozenset[Requirement] | None
    # Empty without a namespace selector: the namespace of the pod that has the term.
    namespaces: frozenset[str]
    # None: none given. The empty set matches every namespace.
    namespace_selector: frozenset[Requirement] | None


class WeightedNodeTerm(NamedTuple):
    """A preferred node affinity term."""

    weight: int
    term: NodeTerm


class WeightedPodTerm(NamedTuple):
    """A preferred pod (anti-)affinity term."""

    weight: int
    term: PodTerm


class SpreadConstraint(NamedTuple):
    """One of `spec.topologySpreadConstraints`."""

    topology_key: str
    max_skew: int
    # DoNotSchedule, else ScheduleAnyway.
    required: bool
    # None matches no pod.
    selector: frozenset[Requirement] | None
    min_domains: int
    # Policies: count only nodes that the pod's node affinity admits, that its tolerations admit.
    honor_affinity: bool
    honor_taints: bool
    match_label_keys: tuple[str, ...]


class HostPort(NamedTuple):
    """A port that a pod takes on its node; `ip` is "0.0.0.0" for all addresses."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PodSpec:
    """What kube-scheduler's filters and scores need of `spec`; compared by value, so equal specs can be one object.

    Not kept: volumes and resource claims; the model holds nothing against a node for them.
    """

    # Sorted by name. A resource that no container asks for isn't there; one asked for as "0" is.
    requests: tuple[tuple[str, int], ...] = ()
    # What scores count for it once it is bound: a container that asks for nothing counts 100m and 200 MiB.
    non_zero_cpu: int = 0
    non_zero_memory: int = 0
    # What NodeResourcesFit's score counts for it while it is placed: as above, but blind to pod-level requests.
    fit_requests: tuple[tuple[str, int], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    # None: no required node affinity. Empty: it matches nothing.
    required_node_terms: tuple[NodeTerm, ...] | None = None
    preferred_node_terms: tuple[WeightedNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    required_affinity: tuple[PodTerm, ...] = ()
    required_anti_affinity: tuple[PodTerm, ...] = ()
    preferred_affinity: tuple[WeightedPodTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedPodTerm, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    # As written, of main containers first, then of init containers.
    images: tuple[str, ...] = ()
    # As written, of image volumes.
    volume_images: tuple[str, ...] = ()

    @property
    def has_pod_terms(self) -> bool:
        """Any pod affinity or anti-affinity term, required or preferred."""
        return bool(
            self.required_affinity
            or self.required_anti_affinity
            or self.preferred_affinity
            or self.preferred_anti_affinity
        )


@dataclass(frozen=True, slots=True)
class ContainerState:
    """What a kubelet says of one container, main or init."""

    # As written in the spec, else as the status has it.
    image: str
    # "" until the image is on the node.
    image_id: str = ""
    # "" when it isn't waiting.
    waiting_reason: str = ""
    waiting_message: str = ""
    running: bool = False
    ready: bool = False
    init: bool = False
    # Ended: an init container that did its work, a main container that finished or crashed.
    terminated: bool = False
    name: str = ""


class Owner(NamedTuple):
    """The controller of an object, from its ownerReferences."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod at one moment. Moments are seconds since 1970, UTC."""

    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    # Only those that `is_kept_annotation` names.
    annotations: Mapping[str, str] = field(default_factory=dict)
    # "" while it isn't bound.
    node_name: str = ""
    nominated_node: str = ""
    phase: str = "Pending"
    # Deleted, and not gone yet.
    leaving: bool = False
    created: float = 0.0
    started: float | None = None
    priority: int = 0
    # Its preemptionPolicy isn't Never.
    preempts: bool = True
    scheduler_name: str = DEFAULT_SCHEDULER
    owner: Owner | None = None
    spec: PodSpec = PodSpec()
    # Empty unless they were asked for.
    containers: tuple[ContainerState, ...] = ()
    # A scheduler chose it as a victim.
    preempted: bool = False
    # A scheduling gate keeps every scheduler from looking at it.
    gated: bool = False
    # Names of its PersistentVolumeClaims. Here and not in the spec, since each user has another.
    claims: tuple[str, ...] = ()
    # Why it failed as a whole, in its kubelet's word: Evicted, OutOfcpu, DeadlineExceeded, ...; "" mostly.
    reason: str = ""
    # Since when its scheduler has known no node for it; None: it hasn't said so, or has found one.
    unschedulable_since: float | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_finished(self) -> bool:
        """Succeeded or Failed: it takes no room any more."""
        return self.phase in FINISHED_PHASES


# As `dataclasses.replace`, for those who change thousands of pods.
copy_spec: Final = Copier(PodSpec)
copy_pod: Final = Copier(PodState)


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node at one moment. Moments are seconds since 1970, UTC."""

    fact: NodeFact
    uid: str = ""
    created: float = 0.0
    allocatable: Mapping[str, int] = field(default_factory=dict)
    # Bytes by each name that `status.images` gives an image.
    images: Mapping[str, int] = field(default_factory=dict)
    # How many entries that list has; kubelets cut it, by default at 50.
    image_count: int = 0
    # "True", "False" or "Unknown", by type.
    conditions: Mapping[str, str] = field(default_factory=dict)
    # Since when it is Ready (its creation when it doesn't say); None when it isn't.
    ready_since: float | None = None
    # Only those that `is_kept_annotation` names.
    annotations: Mapping[str, str] = field(default_factory=dict)
    # Deleted, and not gone yet.
    leaving: bool = False

    @property
    def name(self) -> str:
        """The node's name."""
        return self.fact.name


# Nodes


def read_node_state(body: object) -> NodeState:
    """Read a Node as the API's JSON has it.

    Raises OddNodeError, and nothing else, when it has no name or its parts aren't of a Node's shape.
    """
    try:
        return _read_node(body)
    except OddPodError as error:
        raise OddNodeError(str(error)) from None


def _read_node(body: object) -> NodeState:
    if not isinstance(body, dict):
        raise OddPodError("the object is no JSON object")
    metadata, spec, status = (child_object(body, part, "node") or _NOTHING for part in ("metadata", "spec", "status"))
    name = child_text(metadata, "name", "metadata")
    if not name:
        raise OddPodError("metadata.name is absent")
    conditions: dict[str, str] = {}
    created = read_moment(metadata.get("creationTimestamp")) or 0.0
    ready_since = None
    for condition in _objects(status, "conditions", "status"):
        kind, value = (
            child_text(condition, "type", "status.conditions[]"),
            child_text(condition, "status", "status.conditions[]"),
        )
        conditions[kind] = value
        if kind == "Ready" and value == "True":
            ready_since = read_moment(condition.get("lastTransitionTime")) or created
    images: dict[str, int] = {}
    listed = _objects(status, "images", "status")
    for image in listed:
        size = _whole(image, "sizeBytes", "status.images[]")
        for one in child_list(image, "names", "status.images[]") or ():
            if isinstance(one, str):
                images[intern(one)] = size
    return NodeState(
        fact=NodeFact(
            name=name,
            labels=_shared(child_texts(metadata, "labels", "metadata")),
            taints=tuple(
                Taint(child_text(taint, "key", "spec.taints[]"), child_text(taint, "value", "spec.taints[]"), effect)
                for taint in _objects(spec, "taints", "spec")
                if (effect := child_text(taint, "effect", "spec.taints[]"))
            ),
            unschedulable=spec.get("unschedulable") is True,
            ready=conditions.get("Ready") == "True",
        ),
        uid=child_text(metadata, "uid", "metadata"),
        created=created,
        allocatable=read_allocatable(status),
        images=images,
        image_count=len(listed),
        conditions=conditions,
        ready_since=ready_since,
        annotations=_kept(child_texts(metadata, "annotations", "metadata")),
        leaving=metadata.get("deletionTimestamp") is not None,
    )


def read_allocatable(status: JSONObject) -> dict[str, int]:
    """Read `allocatable` of a Node's status, as kube-scheduler counts it. Raises OddPodError for what is no amount."""
    amounts = child_object(status, "allocatable", "status") or _NOTHING
    return {
        resource: _round_up(resource, _quantity(amount, f"status.allocatable.{resource}"))
        for resource, amount in amounts.items()
        if resource == PODS or _is_counted(resource)
    }


# Pods


def read_pod_state(
    body: object,
    keep_containers: bool = False,
    *,
    specs: MutableMapping[PodSpec, PodSpec] | None = None,
) -> PodState:
    """Read a Pod as the API's JSON has it.

    keep_containers: fill in `containers`. specs: a pool; a spec that equals one in it becomes that one.
    Raises OddPodError, and nothing else, when a part that is read has a wrong type.
    """
    if not isinstance(body, dict):
        raise OddPodError("the object is no JSON object")
    metadata, status = (child_object(body, part, "pod") or _NOTHING for part in ("metadata", "status"))
    spec = child_object(body, "spec", "pod")
    if spec is None:
        raise OddPodError("the pod has no spec")
    read = _read_spec(spec, status)
    return PodState(
        namespace=intern(child_text(metadata, "namespace", "metadata") or "default"),
        name=child_text(metadata, "name", "metadata"),
        uid=child_text(metadata, "uid", "metadata"),
        labels=_shared(child_texts(metadata, "labels", "metadata")),
        annotations=_kept(child_texts(metadata, "annotations", "metadata")),
        node_name=intern(child_text(spec, "nodeName", "spec")),
        nominated_node=child_text(status, "nominatedNodeName", "status"),
        phase=intern(child_text(status, "phase", "status") or "Pending"),
        leaving=metadata.get("deletionTimestamp") is not None,
        created=read_moment(metadata.get("creationTimestamp")) or 0.0,
        started=read_moment(status.get("startTime")),
        priority=_whole(spec, "priority", "spec"),
        preempts=spec.get("preemptionPolicy") != "Never",
        scheduler_name=intern(child_text(spec, "schedulerName", "spec") or DEFAULT_SCHEDULER),
        owner=_owner(metadata),
        spec=read if specs is None else specs.setdefault(read, read),
        containers=_container_states(spec, status) if keep_containers else (),
        preempted=any(
            condition.get("type") == "DisruptionTarget"
            and condition.get("status") == "True"
            and condition.get("reason") == "PreemptionByScheduler"
            for condition in _objects(status, "conditions", "status")
        ),
        gated=bool(child_list(spec, "schedulingGates", "spec")),
        claims=tuple(
            name
            for one in _objects(spec, "volumes", "spec")
            if (name := child_text(_part(one, "persistentVolumeClaim"), "claimName", "spec.volumes[]"))
        ),
        reason=intern(child_text(status, "reason", "status")),
        unschedulable_since=next(
            (
                read_moment(condition.get("lastTransitionTime"))
                for condition in _objects(status, "conditions", "status")
                if condition.get("type") == "PodScheduled"
                and condition.get("status") == "False"
                and condition.get("reason") == "Unschedulable"
            ),
            None,
        ),
    )


def read_pod_spec(spec: object) -> PodSpec:
    """Read a pod's or a pod template's `spec` on its own. Raises OddPodError as `read_pod_state` does."""
    if not isinstance(spec, dict):
        raise OddPodError("the spec is no JSON object")
    return _read_spec(spec, _NOTHING)


def read_requests(spec: JSONObject) -> tuple[tuple[str, int], ...]:
    """What a pod that isn't bound yet asks for in all, by resource. Raises OddPodError as `read_pod_state` does."""
    containers, inits = _objects(spec, "containers", "spec"), _objects(spec, "initContainers", "spec")
    return _requests(spec, _NOTHING, containers, inits)[0]


def _read_spec(spec: JSONObject, status: JSONObject) -> PodSpec:
    containers, inits = _objects(spec, "containers", "spec"), _objects(spec, "initContainers", "spec")
    amounts, non_zero, fit = _requests(spec, status, containers, inits)
    affinity = child_object(spec, "affinity", "spec") or _NOTHING
    node_affinity = child_object(affinity, "nodeAffinity", "spec.affinity") or _NOTHING
    where = "spec.affinity.nodeAffinity"
    required = child_object(node_affinity, REQUIRED, where)
    pod_affinity = child_object(affinity, "podAffinity", "spec.affinity") or _NOTHING
    pod_anti_affinity = child_object(affinity, "podAntiAffinity", "spec.affinity") or _NOTHING
    volumes = _objects(spec, "volumes", "spec")
    return PodSpec(
        requests=amounts,
        non_zero_cpu=non_zero.get(CPU, 0),
        non_zero_memory=non_zero.get(MEMORY, 0),
        fit_requests=amounts if fit == amounts else fit,
        node_selector=tuple(sorted(child_texts(spec, "nodeSelector", "spec").items())),
        required_node_terms=None if required is None else read_node_terms(required.get("nodeSelectorTerms")),
        preferred_node_terms=tuple(
            WeightedNodeTerm(weight, term)
            for one in _objects(node_affinity, PREFERRED, where)
            # kube-scheduler leaves out weight 0 and empty terms.
            if (weight := _whole(one, "weight", where)) and (term := read_node_term(one.get("preference"))) is not None
        ),
        tolerations=tuple(
            Toleration(
                child_text(one, "key", "spec.tolerations[]"),
                child_text(one, "operator", "spec.tolerations[]") or "Equal",
                child_text(one, "value", "spec.tolerations[]"),
                child_text(one, "effect", "spec.tolerations[]"),
            )
            for one in _objects(spec, "tolerations", "spec")
        ),
        required_affinity=tuple(_pod_term(one) for one in _objects(pod_affinity, REQUIRED, "spec.affinity")),
        required_anti_affinity=tuple(_pod_term(one) for one in _objects(pod_anti_affinity, REQUIRED, "spec.affinity")),
        preferred_affinity=_weighted_pod_terms(pod_affinity),
        preferred_anti_affinity=_weighted_pod_terms(pod_anti_affinity),
        spread_constraints=tuple(
            read_spread_constraint(one) for one in _objects(spec, "topologySpreadConstraints", "spec")
        ),
        host_ports=tuple(_host_ports(containers, inits)),
        images=tuple(child_text(one, "image", "spec.containers[]") for one in (*containers, *inits)),
        volume_images=tuple(
            reference
            for one in volumes
            if (reference := child_text(_part(one, "image"), "reference", "spec.volumes[]"))
        ),
    )


def read_node_term(term: object) -> NodeTerm | None:
    """Read a node selector term; None for an empty one and for one that can't be read: both match nothing."""
    if not isinstance(term, dict):
        return None
    found: list[tuple[Requirement, ...]] = []
    for key in ("matchExpressions", "matchFields"):
        requirements = []
        expressions = term.get(key) or ()
        if not isinstance(expressions, list | tuple):
            return None
        for expression in expressions:
            requirement = read_requirement(expression)
            if requirement is None:
                return None
            requirements.append(requirement)
        found.append(tuple(requirements))
    return NodeTerm(*found) if any(found) else None


def read_node_terms(terms: object) -> tuple[NodeTerm, ...]:
    """Read `nodeSelectorTerms`; those that match nothing are left out, so none left matches nothing."""
    if not isinstance(terms, list):
        return ()
    return tuple(term for one in terms if (term := read_node_term(one)) is not None)


def read_spread_constraint(body: JSONObject) -> SpreadConstraint:
    """Read one of `topologySpreadConstraints`, with the API's defaults. Raises OddPodError."""
    where = "spec.topologySpreadConstraints[]"
    keys = child_list(body, "matchLabelKeys", where) or ()
    return SpreadConstraint(
        topology_key=child_text(body, "topologyKey", where),
        max_skew=_whole(body, "maxSkew", where),
        required=child_text(body, "whenUnsatisfiable", where) == "DoNotSchedule",
        selector=read_label_selector(body.get("labelSelector")),
        min_domains=_whole(body, "minDomains", where) or 1,
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


def _weighted_pod_terms(affinity: JSONObject) -> tuple[WeightedPodTerm, ...]:
    return tuple(
        WeightedPodTerm(
            _whole(one, "weight", "spec.affinity"),
            _pod_term(child_object(one, "podAffinityTerm", "spec.affinity") or _NOTHING),
        )
        for one in _objects(affinity, PREFERRED, "spec.affinity")
    )


def _part(volume: JSONObject, key: str) -> JSONObject:
    return child_object(volume, key, "spec.volumes[]") or _NOTHING


def _is_sidecar(init_container: JSONObject) -> bool:
    return init_container.get("restartPolicy") == "Always"


def _host_ports(containers: Iterable[JSONObject], inits: Iterable[JSONObject]) -> Iterable[HostPort]:
    for container in (*containers, *(one for one in inits if _is_sidecar(one))):
        for port in _objects(container, "ports", "spec.containers[]"):
            number = _whole(port, "hostPort", "spec.containers[].ports[]")
            if number > 0:
                yield HostPort(
                    child_text(port, "hostIP", "spec.containers[].ports[]") or "0.0.0.0",  # noqa: S104 (Kubernetes' word for all addresses; nothing is bound here)
                    child_text(port, "protocol", "spec.containers[].ports[]") or "TCP",
                    number,
                )


# Requests

_Amounts = dict[str, Fraction]


def _requests(
    spec: JSONObject, status: JSONObject, containers: list[JSONObject], inits: list[JSONObject]
) -> tuple[tuple[tuple[str, int], ...], dict[str, int], tuple[tuple[str, int], ...]]:
    """What the pod asks for; what scores count once it is bound, of CPU and memory; what they count while it isn't."""
    statuses = {
        child_text(one, "name", "status"): one
        for key in ("containerStatuses", "initContainerStatuses")
        for one in _objects(status, key, "status")
    }
    infeasible = any(
        one.get("type") == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in _objects(status, "conditions", "status")
    )
    mains = [_effective(one, statuses, infeasible=infeasible) for one in containers]
    steps = [
        (_effective(one, statuses if _is_sidecar(one) else {}, infeasible=infeasible), _is_sidecar(one))
        for one in inits
    ]
    resources = child_object(spec, "resources", "spec") or _NOTHING
    whole = {
        name: amount
        for name, amount in _amounts(resources, "requests", "spec.resources").items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }
    overhead = _amounts(spec, "overhead", "spec")
    asked = _sum_up(mains, steps, whole, overhead, {})
    fit = _sum_up(mains, steps, {}, overhead, _NON_ZERO_DEFAULTS)
    counted = fit
    if whole:
        # With pod-level requests only what is asked for nowhere gets a default.
        defaults = {name: one for name, one in _NON_ZERO_DEFAULTS.items() if name not in asked}
        counted = _sum_up(mains, steps, whole, overhead, defaults)
    return (
        _rounded_up(asked),
        {name: _round_up(name, counted[name]) for name in (CPU, MEMORY) if name in counted},
        _rounded_up(fit),
    )


def _rounded_up(amounts: _Amounts) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, _round_up(name, one)) for name, one in amounts.items() if _is_counted(name)))


def _sum_up(
    mains: Iterable[_Amounts],
    steps: Iterable[tuple[_Amounts, bool]],
    whole: _Amounts,
    overhead: _Amounts,
    defaults: Mapping[str, Fraction],
) -> _Amounts:
    """Main containers and sidecars, or the largest moment of initialising; then pod-level requests and overhead."""
    total: _Amounts = {}
    for one in mains:
        _add(total, {**defaults, **one})
    sidecars: _Amounts = {}
    largest: _Amounts = {}
    for one, is_sidecar in steps:
        moment = {**defaults, **one}
        if is_sidecar:
            _add(total, moment)
            _add(sidecars, moment)
        else:
            _add(moment, sidecars)
            _raise_to(largest, moment)
    _raise_to(total, largest)
    total |= whole
    _add(total, overhead)
    return total


def _effective(container: JSONObject, statuses: Mapping[str, JSONObject], *, infeasible: bool) -> _Amounts:
    """A container's requests; during a resize in place the larger of what is wanted, granted and in force."""
    wanted = _amounts(child_object(container, "resources", "spec.containers[]") or _NOTHING, "requests", "resources")
    state = statuses.get(child_text(container, "name", "spec.containers[]")) if statuses else None
    if state is None or state.get("resources") is None:
        return wanted
    effective = {} if infeasible else dict(wanted)
    in_force = child_object(state, "resources", "status.containerStatuses[]") or _NOTHING
    _raise_to(effective, _amounts(in_force, "requests", "status.containerStatuses[]"))
    _raise_to(effective, _amounts(state, "allocatedResources", "status.containerStatuses[]"))
    return effective


def _amounts(parent: JSONObject, key: str, where: str) -> _Amounts:
    found = child_object(parent, key, where) or _NOTHING
    return {name: _quantity(amount, f"{where}.{key}.{name}") for name, amount in found.items()}


def _add(total: _Amounts, more: _Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _raise_to(total: _Amounts, other: _Amounts) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _is_counted(resource: str) -> bool:
    """Tell whether kube-scheduler keeps count of a resource: the plain three and those with a domain or a family."""
    return resource in _PLAIN_RESOURCES or "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def _round_up(resource: str, amount: Fraction) -> int:
    if resource == CPU:
        amount *= 1000
    return -(-amount.numerator // amount.denominator)


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> Fraction:
    return parse_quantity(text)


def _quantity(amount: object, where: str) -> Fraction:
    try:
        return _parse_text(amount) if isinstance(amount, str) else parse_quantity(amount)
    except ValueError:
        raise OddPodError(f"{where} is no quantity") from None


# Parts


def _container_states(spec: JSONObject, status: JSONObject) -> tuple[ContainerState, ...]:
    found = []
    for part, key in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        statuses = {child_text(one, "name", "status"): one for one in _objects(status, key, "status")}
        for container in _objects(spec, part, "spec"):
            name = child_text(container, "name", "spec")
            said = statuses.get(name, _NOTHING)
            state = child_object(said, "state", "status") or _NOTHING
            waiting = child_object(state, "waiting", "status") or _NOTHING
            found.append(
                ContainerState(
                    image=intern(child_text(container, "image", "spec") or child_text(said, "image", "status")),
                    image_id=intern(child_text(said, "imageID", "status")),
                    waiting_reason=child_text(waiting, "reason", "status"),
                    waiting_message=child_text(waiting, "message", "status"),
                    running=state.get("running") is not None,
                    ready=said.get("ready") is True,
                    init=part == "initContainers",
                    terminated=state.get("terminated") is not None,
                    name=intern(name),
                )
            )
    return tuple(found)


def _owner(metadata: JSONObject) -> Owner | None:
    for one in _objects(metadata, "ownerReferences", "metadata"):
        if one.get("controller") is True:
            where = "metadata.ownerReferences[]"
            return Owner(*(intern(child_text(one, key, where)) for key in ("kind", "name", "uid")))
    return None


def _shared(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The same labels, of texts that all records share: thousands of pods say the same of themselves."""
    return {intern(key): intern(value) for key, value in labels.items()} if labels else labels


def _kept(annotations: Mapping[str, str]) -> Mapping[str, str]:
    kept = {key: value for key, value in annotations.items() if is_kept_annotation(key)}
    return kept or _NOTHING


def _objects(parent: Mapping[str, Any], key: str, where: str) -> list[JSONObject]:
    found = child_list(parent, key, where)
    if found is None:
        return []
    for one in found:
        if not isinstance(one, dict):
            raise OddPodError(f"{where}.{key} holds something that is no object")
    return found


def _whole(parent: Mapping[str, Any], key: str, where: str) -> int:
    found = parent.get(key)
    if found is None:
        return 0
    if not isinstance(found, int) or isinstance(found, bool):
        raise OddPodError(f"{where}.{key} is no whole number")
    return found
