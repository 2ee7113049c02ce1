"""Create the pods of a replay, as hub, StatefulSet controller and BinderHub post them and as the
webhook changes them.

The webhook's own code decides here; its decision for equal pods is cached as long as the facts that
it read.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jsonpatch

from roost_core.objects.fields import JSONObject
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.node import HOSTNAME_LABEL
from roost_core.objects.pod_body import PodBody, read_pod_body
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.selectors import NodeTerm, Requirement, read_label_selector
from roost_core.placement.labels import (
    DO_NOT_DISRUPT_ANNOTATION,
    NODE_PURPOSE_LABEL,
    PLACEHOLDER_CLASS,
    SAFE_TO_EVICT_ANNOTATION,
    USER_CLASS,
    WARM_TARGET_ANNOTATION,
)
from roost_core.release.class_of_pod import namespace_matches
from roost_lab.traces.attempt import Attempt, other_scheduler
from webhook.admission import ReviewResult, decide
from webhook.facts.facts import Facts
from webhook.facts.placed_pod import PlacedPod
from webhook.patch import Operation, patch_for
from webhook.rules import Rulebook
from webhook.rules.contract import Case, Note, Reads, Rule
from webhook.rules.join_and_avoid import joins_unless_warm, pods_to_join
from webhook.rules.warm import NoWarmSet, WarmChoice, WarmNeeds, choose_warm_nodes, read_warm_needs

if TYPE_CHECKING:
    from roost_core.objects.pod import Pod, PodSpec
    from roost_core.placement.nodes import Nodes
    from roost_core.release.pod_classes import PodClass
    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.policy import PlaceholderStatefulSet, Policy


# Where images are whose names are made up: see `image_reference`.
MADE_UP_REGISTRY: Final = "r2d.invalid"
USER: Final = USER_CLASS
PLACEHOLDER: Final = PLACEHOLDER_CLASS
BUILD: Final = "build"
# Ends what a trace calls an image, after the repository: the commit, or the time of a push.
_COMMIT: Final = re.compile(r"(@[0-9a-f]{40}|\+[0-9]+)\Z", re.ASCII)
# The most cached pods; beyond that the least recently used is dropped.
_KEPT: Final = 8192
USER_LABELS: Final = {
    "app": "jupyterhub",
    "component": "singleuser-server",
    "app.kubernetes.io/component": "singleuser-server",
    "app.kubernetes.io/name": "jupyterhub",
}
BUILD_LABELS: Final = {"component": "binderhub-build"}
# Hubs write these so that no autoscaler moves a user.
_STAYS: Final = {SAFE_TO_EVICT_ANNOTATION: "false", DO_NOT_DISRUPT_ANNOTATION: "true"}
_USER_NODES: Final = {
    "matchExpressions": [{"key": NODE_PURPOSE_LABEL, "operator": "In", "values": ["user"]}]
}
_PREFERS_USER_NODES: Final = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": _USER_NODES}
        ]
    }
}
# Rules have decided on the pod.
_PLACED: Final = (ReviewResult.PATCHED, ReviewResult.UNCHANGED)


class _WarmPod(NamedTuple):
    """A pod whose warm nodes are still to be chosen."""

    # As it was posted.
    body: PodBody
    pod_class: PodClass
    needs: WarmNeeds


class _PodTemplate(NamedTuple):
    """The last pod of one kind, and the facts that it depends on."""

    state: Pod
    # The facts that it depends on, and the nodes among them.
    reads: Reads = Reads.NOTHING
    nodes: Nodes | None = None
    # The webhook's patch.
    operations: Sequence[Operation] = ()
    # None: it has all its terms.
    warm: _WarmPod | None = None
    # The same pod where no warm set is used, if it then gets other terms.
    cold: Pod | None = None

    def holds(self, facts: Facts) -> bool:
        """Whether the next pod would be equal; of builds each is decided anew."""
        return Reads.BUILDERS not in self.reads and (
            Reads.NODES not in self.reads or self.nodes is facts.nodes
        )


class PodMaker:
    """Makes pods under one policy."""

    def __init__(
        self,
        policy: Policy,
        assumptions: Assumptions,
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """namespaces: labels of the cluster's namespaces, as the webhook's facts have them."""
        self._policy = policy
        # Labels by name; None: no class asks for them.
        self.namespaces = namespaces
        self._assumptions = assumptions
        self._rulebook = None if policy.webhook is None else Rulebook(policy.webhook)
        settings = policy.webhook
        # Whose pods count in warm sets, too; None: no other namespaces'.
        selector = None if settings is None else settings.shared_namespaces
        self._shared = None if selector is None else read_label_selector(selector)
        # Comparisons of rules put another one here.
        self.choose_warm_nodes: Callable[[Case, WarmNeeds], WarmChoice | NoWarmSet | None] = (
            choose_warm_nodes
        )
        self._kept: OrderedDict[tuple[object, ...], _PodTemplate] = OrderedDict()
        self._last_of_kind: dict[tuple[object, ...], _PodTemplate] = {}
        self._classes: dict[tuple[int, str], tuple[Mapping[str, str], PodClass | None]] = {}
        self._named: dict[tuple[str, int], tuple[int, NodeTerm]] = {}
        self._specs: dict[PodSpec, PodSpec] = {}

    @cached_property
    def homes(self) -> tuple[str, ...]:
        """The classes whose pods have a home: the facts must include these pods."""
        classes = {} if self._policy.webhook is None else self._policy.webhook.classes
        return tuple(name for name, pod_class in classes.items() if pod_class.home is not None)

    @cached_property
    def warm_classes(self) -> tuple[str, ...]:
        """The classes whose pods prefer warm nodes: the facts must include these pods, too."""
        classes = {} if self._policy.webhook is None else self._policy.webhook.classes
        return tuple(name for name, pod_class in classes.items() if pod_class.warm is not None)

    def warm_pod(self, state: Pod, *, is_starting: bool) -> tuple[str, PlacedPod] | None:
        """The class of a pod, and what it adds to its class's warm set; None for pods of a class
        without one.
        """
        pod_class = self._class_of(state)
        if pod_class is None and state.node_name:
            pod_class = self._class_of_others(state)
        if pod_class is None or pod_class.warm is None:
            return None
        if not state.node_name:
            return pod_class.name, PlacedPod(
                pod_class.name, state.annotations.get(WARM_TARGET_ANNOTATION, "")
            )
        return pod_class.name, PlacedPod(
            pod_class.name, state.node_name, _normalised(state.spec.images), is_starting
        )

    def _class_of_others(self, state: Pod) -> PodClass | None:
        """The class that a bound pod of a hub on shared nodes would belong to: as the webhook's
        watch counts them.
        """
        if self._shared is None or self._rulebook is None:
            return None
        if not namespace_matches(self._shared, state.namespace, self.namespaces):
            return None
        return self._rulebook.classes.classify(
            state.labels, self._policy.namespace, self.namespaces
        )

    def user(self, attempt: Attempt, name: str, created: float, facts: Facts) -> Pod:
        """A user's pod."""
        kind = (attempt.cpu_millicores, attempt.memory_bytes, attempt.hub)
        key = (USER, attempt.image, attempt.repository, *kind)
        return self._make(
            key, name, created, facts, lambda: self._user_body(attempt, name), kind=kind
        )

    def placeholder(
        self, placeholders: PlaceholderStatefulSet, name: str, created: float, facts: Facts
    ) -> Pod:
        """A pod of a StatefulSet of placeholders."""
        set_name = placeholders.name
        owner = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": set_name,
            "uid": set_name,
            "controller": True,
        }
        metadata = {"name": name, "labels": dict(placeholders.labels), "ownerReferences": [owner]}
        body = {"metadata": metadata, "spec": placeholders.spec}
        return self._make((PLACEHOLDER, set_name), name, created, facts, lambda: body)

    def build(self, repository: str, name: str, created: float, facts: Facts) -> Pod:
        """A build pod of BinderHub."""
        builds = {"labelSelector": {"matchLabels": BUILD_LABELS}, "topologyKey": HOSTNAME_LABEL}
        apart = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": builds}
            ]
        }
        containers = [{"name": "builder", "image": "builder", "resources": {}}]
        metadata = {
            "name": name,
            "labels": BUILD_LABELS | {"name": name},
            "annotations": {"binder-repo": repository},
        }
        body = {
            "metadata": metadata,
            "spec": {"affinity": {"podAntiAffinity": apart}, "containers": containers},
        }
        return self._make((BUILD, repository), name, created, facts, lambda: body)

    def _class_of(self, state: Pod) -> PodClass | None:
        if self._rulebook is None:
            return None
        # Pods of one kind share their labels.
        key = (id(state.labels), state.namespace)
        if key not in self._classes:
            if len(self._classes) > _KEPT:
                self._classes.clear()
            pod_class = self._rulebook.classes.classify(
                state.labels, state.namespace, self.namespaces
            )
            # The labels are kept, so that this id stays their own.
            self._classes[key] = (state.labels, pod_class)
        return self._classes[key][1]

    def _user_body(self, attempt: Attempt, name: str) -> JSONObject:
        assumed = self._assumptions
        cpu = attempt.cpu_millicores
        if cpu is None:
            cpu = assumed.user_cpu_millicores
        memory = attempt.memory_bytes
        if memory is None:
            memory = assumed.user_memory_bytes
        spec: JSONObject = {
            "affinity": _PREFERS_USER_NODES,
            "containers": [
                {
                    "name": "notebook",
                    "image": image_reference(attempt.image),
                    "env": [{"name": "BINDER_REPO_URL", "value": attempt.repository}],
                    "resources": {"requests": {"cpu": f"{cpu}m", "memory": str(memory)}},
                }
            ],
        }
        if self._policy.user_class:
            spec["priorityClassName"] = self._policy.user_class
        metadata = {"name": name, "labels": dict(USER_LABELS), "annotations": dict(_STAYS)}
        if attempt.hub in self._policy.outsiders:
            spec.pop("priorityClassName", None)
            spec["schedulerName"] = other_scheduler(attempt.hub)
            metadata["namespace"] = attempt.hub
        return {"metadata": metadata, "spec": spec}

    def _make(
        self,
        key: tuple[object, ...],
        name: str,
        created: float,
        facts: Facts,
        body: Callable[[], JSONObject],
        *,
        kind: tuple[object, ...] = (),
    ) -> Pod:
        """A pod. key: the same for pods that differ in names alone; kind: the same for pods that
        differ in images and environment, too.
        """
        known = self._kept.get(key)
        if known is None or not known.holds(facts):
            before = known or self._last_of_kind.get(kind)
            known = self._admit(body(), before, facts, created)
            self._kept[key] = known
            if kind:
                if len(self._last_of_kind) > _KEPT:
                    self._last_of_kind.clear()
                self._last_of_kind[kind] = known
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        if known.warm is None:
            return replace(known.state, name=name, uid=name, created=created)
        return self._with_warm_nodes(known, known.warm, facts, name, created)

    def _admit(
        self, body: JSONObject, before: _PodTemplate | None, facts: Facts, now: float
    ) -> _PodTemplate:
        """The pod after the webhook; before: one that differs at most in images and environment."""
        namespace = body["metadata"].setdefault("namespace", self._policy.namespace)
        if self._rulebook is None or namespace != self._policy.namespace:
            return _PodTemplate(self.read(body))
        pod = read_pod_body(body, namespace)
        # Warm nodes differ from pod to pod, and mostly nothing else does: they are added
        # afterwards.
        decision = decide(pod, self._rulebook, facts, now=now, selects=_reads_no_warm_pods)
        if before is not None and before.operations == decision.operations:
            # Applying a patch and reading the pod again costs most of an admission.
            state = before.state
            images = tuple(pod.images)
            if state.spec.images != images:
                spec = replace(state.spec, images=images)
                state = replace(state, spec=self._specs.setdefault(spec, spec))
        else:
            # Without a patch, the body itself.
            patched = body
            if decision.operations:
                patched = jsonpatch.apply_patch(body, decision.operations)
            state = self.read(patched)
        settings = self._rulebook.settings
        pod_class = settings.classes.get(decision.pod_class or "")
        warm = None
        cold = None
        if pod_class is not None and pod_class.warm is not None and decision.result in _PLACED:
            case = Case(pod, pod_class, settings, facts, now)
            warm = _WarmPod(pod, pod_class, read_warm_needs(case))
            if joins_unless_warm(settings, pod_class):
                joins = [verdict for verdict in pods_to_join(case) if not isinstance(verdict, Note)]
                operations = patch_for(pod, [*decision.changes, *joins])
                cold = self.read(jsonpatch.apply_patch(body, operations))
        return _PodTemplate(
            state=state,
            reads=decision.reads,
            nodes=facts.nodes if Reads.NODES in decision.reads else None,
            operations=decision.operations,
            warm=warm,
            cold=cold,
        )

    def _with_warm_nodes(
        self, known: _PodTemplate, warm: _WarmPod, facts: Facts, name: str, now: float
    ) -> Pod:
        """A pod created now, with the terms and annotations of the webhook's rule of warm sets."""
        state = known.state
        changes: dict[str, Any] = {"name": name, "uid": name, "created": now}
        if self._rulebook is not None:
            # The rule alone: what `decide` adds, a patch above all, is known from the first pod of
            # its kind.
            case = Case(warm.body, warm.pod_class, self._rulebook.settings, facts, now)
            choice = self.choose_warm_nodes(case, warm.needs)
            if isinstance(choice, NoWarmSet):
                state = known.cold or state
            elif choice is not None and choice.nodes:
                named = [self._named_term(name, weight) for name, weight in choice.nodes]
                terms = (*state.spec.preferred_node_terms, *named)
                changes["spec"] = replace(state.spec, preferred_node_terms=terms)
                changes["annotations"] = {
                    **state.annotations,
                    WARM_TARGET_ANNOTATION: choice.nodes[0][0],
                }
        return replace(state, **changes)

    def _named_term(self, name: str, weight: int) -> tuple[int, NodeTerm]:
        """The preference for a node of that name with that weight; the same object each time."""
        term = self._named.get((name, weight))
        if term is None:
            if len(self._named) > _KEPT:
                self._named.clear()
            fields = (Requirement("metadata.name", "In", frozenset((name,))),)
            term = (weight, NodeTerm((), fields))
            self._named[name, weight] = term
        return term

    def read(self, body: JSONObject) -> Pod:
        """A pod as it was posted."""
        state = read_pod(body, specs=self._specs)
        if len(self._specs) > _KEPT:
            self._specs.clear()
        policy = self._policy
        priority = policy.priorities.get(
            body["spec"].get("priorityClassName", ""), policy.default_priority
        )
        return replace(state, priority=priority.value, preempts=priority.preempts)


@lru_cache(maxsize=65536)
def _normalised(images: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(normalise_reference(image) for image in images)


def _reads_no_warm_pods(rule: Rule) -> bool:
    return Reads.WARM not in rule.reads


def image_reference(image: str) -> str:
    """The reference of a trace's image: its text where that is a reference, otherwise one derived
    from it.

    As BinderHub's, it has the repository in its name and the commit in its tag.
    """
    _, slash, name = image.rpartition("/")
    is_address = " " in image or image.startswith("http")
    if slash and ":" in name and not is_address:
        return image
    commit = _COMMIT.search(image)
    if commit is None:
        return f"{MADE_UP_REGISTRY}/{_digest(image)}:1"
    return f"{MADE_UP_REGISTRY}/{_digest(image[: commit.start()])}:{_digest(commit[0])}"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=10).hexdigest()
