"""A Pod as programs keep it: a small frozen record of what placement, scheduling and starts need.

Controllers and the simulator keep ten thousands of pods, so they don't keep the JSON. Amounts are
whole numbers, as kube-scheduler counts them: CPU in millicores, everything else in bytes or pieces.
They are rounded up once for the whole pod. Source: kube-scheduler's framework.NodeInfo and PodInfo,
Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from roost_core.objects.selectors import NodeTerm, Requirement, Toleration

DEFAULT_SCHEDULER: Final = "default-scheduler"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
# The greatest weight of a preferred term. Source: Kubernetes' API, PreferredSchedulingTerm.weight.
MAX_WEIGHT: Final = 100
FINISHED_PHASES: Final = frozenset({"Succeeded", "Failed"})


class PodTerm(NamedTuple):
    """One pod (anti-)affinity term of a pod."""

    topology_key: str
    # None matches no pod, the empty set every pod.
    selector: frozenset[Requirement] | None
    # Empty without a namespace selector: the namespace of the pod that has the term.
    namespaces: frozenset[str]
    # None: none given. The empty set matches every namespace.
    namespace_selector: frozenset[Requirement] | None


class SpreadConstraint(NamedTuple):
    """One of `spec.topologySpreadConstraints`."""

    topology_key: str
    max_skew: int
    # DoNotSchedule, else ScheduleAnyway.
    required: bool
    # None matches no pod.
    selector: frozenset[Requirement] | None
    min_domains: int
    # Which nodes count: with honor_affinity, only those that the pod's node affinity admits; with
    # honor_taints, only those that its tolerations admit.
    honor_affinity: bool
    honor_taints: bool
    match_label_keys: tuple[str, ...]


class HostPort(NamedTuple):
    """A host port of a pod; `ip` is "0.0.0.0" for all addresses."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PodSpec:
    """What kube-scheduler's filters and scores need of `spec`.

    Specs are compared by value, so pods with equal specs can share an object. Volumes and resource
    claims aren't kept: in the model, no node is refused because of them.
    """

    # Sorted by name. Resources that no container requests are absent. A resource that is requested
    # as "0" is present.
    requests: tuple[tuple[str, int], ...] = ()
    # What scores count for the pod once it is bound: for a container without requests, 100m and
    # 200 MiB.
    non_zero_cpu: int = 0
    non_zero_memory: int = 0
    # What NodeResourcesFit's score counts for the pod while it is placed: as above, but without
    # pod-level requests.
    fit_requests: tuple[tuple[str, int], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    # None: no required node affinity. Empty: it matches nothing.
    required_node_terms: tuple[NodeTerm, ...] | None = None
    # Preferred terms, each with its weight.
    preferred_node_terms: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    required_affinity: tuple[PodTerm, ...] = ()
    required_anti_affinity: tuple[PodTerm, ...] = ()
    preferred_affinity: tuple[tuple[int, PodTerm], ...] = ()
    preferred_anti_affinity: tuple[tuple[int, PodTerm], ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    # As written, of main containers first, then of init containers.
    images: tuple[str, ...] = ()
    # As written, of image volumes.
    volume_images: tuple[str, ...] = ()

    @property
    def has_pod_terms(self) -> bool:
        """Whether it has a pod affinity or anti-affinity term, required or preferred."""
        required = self.required_affinity or self.required_anti_affinity
        return bool(required or self.preferred_affinity or self.preferred_anti_affinity)


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A kubelet's status of one container, main or init."""

    # As written in the spec; if the spec isn't known, as in the status.
    image: str
    # "" until the image is on the node.
    image_id: str = ""
    # "": it isn't waiting.
    waiting_reason: str = ""
    waiting_message: str = ""
    running: bool = False
    ready: bool = False
    init: bool = False
    # A finished init container, or a main container that finished or crashed.
    terminated: bool = False
    name: str = ""
    # Its kubelet asks the registry for the image although the node holds it.
    pulls_always: bool = False


class Owner(NamedTuple):
    """The controller of an object, from its ownerReferences."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod at one time; times are Unix time."""

    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    # Only those that `kept_annotations` keeps.
    annotations: Mapping[str, str] = field(default_factory=dict)
    # "" while it isn't bound.
    node_name: str = ""
    nominated_node: str = ""
    phase: str = "Pending"
    # It has a deletionTimestamp.
    leaving: bool = False
    created: float = 0.0
    started: float | None = None
    priority: int = 0
    # The name in its spec; "": it names none.
    priority_class: str = ""
    # Its preemptionPolicy isn't Never.
    preempts: bool = True
    scheduler_name: str = DEFAULT_SCHEDULER
    owner: Owner | None = None
    spec: PodSpec = PodSpec()
    # As `PodSpec.requests`; nothing but quotas counts them.
    limits: tuple[tuple[str, int], ...] = ()
    # It has an activeDeadlineSeconds.
    has_deadline: bool = False
    # Empty unless the pod's reader keeps them.
    containers: tuple[ContainerState, ...] = ()
    # A scheduler pre-empted it.
    preempted: bool = False
    # It has a scheduling gate.
    gated: bool = False
    # status.reason: Evicted, OutOfcpu, DeadlineExceeded, ...; mostly "".
    reason: str = ""
    # Since when its scheduler has reported it unschedulable; None: it hasn't.
    unschedulable_since: float | None = None
    # When it was bound to its node; None: it isn't bound, or its status doesn't say.
    bound_at: float | None = None
    # Its kubelet says that its volumes and its sandbox are there.
    has_sandbox: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_of_node(self) -> bool:
        """Whether a DaemonSet or its node owns the pod, so that it comes and goes with the node."""
        return self.owner is not None and self.owner.kind in ("DaemonSet", "Node")

    @property
    def is_finished(self) -> bool:
        """Whether it succeeded or failed, and so takes no room."""
        return self.phase in FINISHED_PHASES
