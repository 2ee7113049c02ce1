"""Every rule of admission, each a small function, and the table of them.

A rule takes one pod, the rules of its class and the facts, and yields what should change. It does no I/O, reads no
clock and changes none of these; `webhook.rules.patch` implements the changes, and omits what the pod already has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Flag, auto
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.images import normalise_reference
from roost_core.objects.requests import read_requests
from roost_core.placement.classes import Classes
from roost_core.placement.image_holders import Holders
from roost_core.placement.labels import (
    HELD,
    HOME_TARGET_ANNOTATION,
    HOSTNAME_LABEL,
    PLACEHOLDER_SET_LABEL,
    POLICY_REVISION_ANNOTATION,
    PULLING,
    WARM_TARGET_ANNOTATION,
    attract_label,
    pulled_label,
    scheduler_name,
)
from roost_core.placement.lease_state import LeaseState
from roost_core.placement.pods import DEFAULT_SCHEDULER, Pod
from roost_core.placement.repositories import repository_of
from roost_core.placement.settings import (
    CONTROLLERS,
    SCHEDULER,
    GateMode,
    Home,
    MatchBy,
    PodClass,
    Settings,
    WhenNoHolder,
)
from webhook.rules.bounds import MAX_LABEL_VALUE, MAX_REFERENCE
from webhook.rules.home_finder import HomeFinder, HomeRequest
from webhook.rules.ledger import Ledger
from webhook.rules.patch import (
    Annotate,
    Change,
    DropBinderHubTerms,
    PreferNode,
    PreferPods,
    RequestByDefault,
    RequireNode,
    SetScheduler,
    is_binderhub_sticky_term,
    is_required,
    same_node_preference,
)
from webhook.rules.warm_finder import WarmChoice, WarmFinder, WarmRequest

if TYPE_CHECKING:
    from roost_core.objects.selectors import NodeRules
    from roost_core.placement.nodes import Nodes
    from webhook.rules.facts import Facts, WarmFacts

# Weight of the preference for the marked node; the StatefulSet of the placeholders has the same one.
_ATTRACT_WEIGHT: Final = 100
# From this weight on an author's preferred node term can outvote the repository's first home.
_OUTVOTING_WEIGHT: Final = 50
_AWAY_BECAUSE: Final = {
    LeaseState.STALE: "Roost's scheduler no longer renews its Lease",
    LeaseState.NEVER_HELD: "Roost's scheduler has never held its Lease",
}
_DEGRADED_BECAUSE: Final = {
    "no-holder": "no node that the pod may use holds the image of",
    "no-holder-fits": "no node that the pod may use and that is large enough for it holds the image of",
    "nodes-unknown": "nodes can't be read",
    "controllers-stale": "Roost's controllers don't seem to renew their Lease, so node labels may be outdated",
}
# Bounds the caches: authors of pods choose these strings, so there can be any number of them.
_MAX_REMEMBERED: Final = 4096


class Note(NamedTuple):
    """What a rule did or couldn't do, for the audit log. Of what the pod's author wrote it contains names only."""

    topic: str
    text: str
    # Also return it as a warning to the client that creates the pod.
    is_warning: bool = False


class Degraded(NamedTuple):
    """Why the gate doesn't keep a pod off nodes that are pulling its images.

    no-holder: no node that the pod's own rules admit has them; no-holder-fits: such nodes are too small for the pod;
    nodes-unknown; controllers-stale: the nodes' labels may be outdated.
    """

    reason: str


class LeftToCluster(NamedTuple):
    """The pod keeps the cluster's scheduler because Roost's is away; reason: stale or never-held."""

    reason: str


Verdict = Change | Note | Degraded | LeftToCluster


class Reads(Flag):
    """The parts of the facts that a rule reads: they are watched, and can change what the rule yields."""

    NOTHING = 0
    NODES = auto()
    BUILDERS = auto()
    HOMES = auto()
    WARM = auto()
    LEASES = auto()


_READS_FOR_WARM: Final = Reads.NODES | Reads.WARM


class ClassRules:
    """One class, with everything that can be computed before a pod arrives."""

    def __init__(self, settings: Settings, pod_class: PodClass) -> None:
        self.pod_class = pod_class
        self.name = pod_class.name
        self.scheduler_name = (
            scheduler_name(settings.release, settings.namespace, pod_class.profile)
            if settings.sets_scheduler and pod_class.profile
            else ""
        )
        self.revision = Annotate(POLICY_REVISION_ANNOTATION, settings.revision)
        self.preferred_nodes = [PreferNode(dict(term)) for term in pod_class.preferred_node_terms]
        self.warm = WarmFinder(pod_class.warm, pod_class.preferred_node_terms) if pod_class.warm is not None else None
        # By the weights of a scheduler that isn't Roost's, the class's `join` would outvote the warm set.
        self.joins_unless_warm = self.warm is not None and bool(pod_class.join) and not self.scheduler_name
        self.pods_nearby = _pod_preferences(settings, pod_class, at_home=True)
        self.pods_from_afar = _pod_preferences(settings, pod_class, at_home=False)
        self.requests = RequestByDefault(pod_class.resources)
        # startupTaint works on nodes, not on pods.
        gate = settings.gate.mode if pod_class.image_gate and settings.managed_images else GateMode.OFF
        self.prefers_pulled = gate in (GateMode.REQUIRE_LABEL, GateMode.PREFER)
        self.requires_pulled = gate is GateMode.REQUIRE_LABEL
        self.rules = tuple(rule for rule in RULES if rule.applies(self))
        # What they read, together.
        self.reads = reduce(or_, (rule.reads for rule in self.rules))


class GateTerms(NamedTuple):
    """One managed image as node selector expressions."""

    # The node's label.
    label: str
    # The node has the image.
    held: JSONObject
    # The node isn't pulling it. Nodes without the label match, such as an autoscaler's template nodes.
    not_pulling: JSONObject


class Rulebook:
    """The rules of one `Settings`, by class."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.classes = Classes(settings)
        self.rules = {name: ClassRules(settings, pod_class) for name, pod_class in settings.classes.items()}
        # Normalised references of the images that pullers bring to every node.
        self.brought_images = settings.managed_images if settings.pullers_run else frozenset[str]()
        self._attract: dict[str, PreferNode] = {}
        # Reference as written -> its expressions; None for images that the puller doesn't manage.
        self._gated: dict[str, GateTerms | None] = {}

    def gated(self, reference: str) -> GateTerms | None:
        """The gate's terms for an image; None when the puller doesn't manage it."""
        if reference in self._gated:
            return self._gated[reference]
        terms: GateTerms | None = None
        if normalise_reference(reference) in self.settings.managed_images:
            label = pulled_label(self.settings.release, self.settings.namespace, reference)
            terms = GateTerms(
                label,
                {"key": label, "operator": "In", "values": [HELD]},
                {"key": label, "operator": "NotIn", "values": [PULLING]},
            )
        if len(reference) <= MAX_REFERENCE:
            if len(self._gated) >= _MAX_REMEMBERED:
                self._gated = {}
            self._gated[reference] = terms
        return terms

    def attract(self, placeholder_set: str) -> PreferNode:
        """The preference for the node that is marked for a placeholder set."""
        attraction = self._attract.get(placeholder_set)
        if attraction is None:
            label = attract_label(self.settings.release, self.settings.namespace, placeholder_set)
            preference = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
            attraction = PreferNode({"weight": _ATTRACT_WEIGHT, "preference": preference})
            if len(placeholder_set) <= MAX_LABEL_VALUE:
                if len(self._attract) >= _MAX_REMEMBERED:
                    self._attract = {}
                self._attract[placeholder_set] = attraction
        return attraction


def _pod_preferences(settings: Settings, pod_class: PodClass, *, at_home: bool) -> list[PreferPods]:
    """The class's join and avoid terms, for pods in the release's namespace (at_home) or in another one.

    A term without namespaces matches pods of its own pod's namespace only, so pods elsewhere would match nothing.
    """
    terms: list[PreferPods] = []
    for pairs, towards in ((pod_class.join, True), (pod_class.avoid, False)):
        for other_name, weight in pairs.items():
            other = settings.classes[other_name]
            term: JSONObject = {"labelSelector": {"matchLabels": dict(other.labels)}, "topologyKey": HOSTNAME_LABEL}
            if settings.shared_namespaces is not None:
                # The selector need not match the release's own namespace.
                term["namespaces"] = [settings.namespace]
                term["namespaceSelector"] = dict(settings.shared_namespaces)
            elif other.namespace_selector is not None:
                term["namespaceSelector"] = dict(other.namespace_selector)
            elif not at_home:
                term["namespaces"] = [settings.namespace]
            terms.append(PreferPods({"weight": weight, "podAffinityTerm": term}, towards))
    return terms


class Memory:
    """What is kept between pods: recent homes, which the facts don't show yet, and caches computed from the facts."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.homes = HomeFinder(self.ledger)
        self.holders = Holders()


class Case(NamedTuple):
    """One pod, with everything that its rules can read."""

    pod: Pod
    # The pod's key in facts and ledger.
    pod_key: str
    rules: ClassRules
    rulebook: Rulebook
    facts: Facts
    memory: Memory
    # Seconds of a monotonic clock.
    now: float


RuleFunction = Callable[[Case], Iterable[Verdict]]


def set_scheduler(case: Case) -> Iterator[Verdict]:
    """Give the pod its class's scheduler profile, unless its author chose a scheduler.

    "Unset" and "default-scheduler" can't be distinguished: the API server sets the default before it calls webhooks.
    While Roost's scheduler is away nothing would bind the pod, so the pod keeps the scheduler that it has.
    """
    chosen = case.pod.scheduler_name
    state = case.facts.leases.get(SCHEDULER, LeaseState.UNKNOWN)
    if not chosen or chosen == DEFAULT_SCHEDULER or chosen in case.rulebook.settings.replace_schedulers:
        if state.is_away:
            yield LeftToCluster(state.value)
            yield Note("scheduler", f"the pod keeps its schedulerName: {_AWAY_BECAUSE[state]}", is_warning=True)
        else:
            yield SetScheduler(case.rules.scheduler_name)
    elif chosen != case.rules.scheduler_name:
        yield Note("scheduler", "the pod's own schedulerName stays")


def prefer_pulled_images(case: Case) -> Iterator[Verdict]:
    """Prefer nodes that have the pod's images."""
    weight = case.rulebook.settings.gate.prefer_weight
    for image in _gated_images(case):
        yield PreferNode({"weight": weight, "preference": {"matchExpressions": [image.held]}})


def require_pulled_images(case: Case) -> Iterator[Verdict]:
    """Keep a pod off nodes that are pulling its images while another node that it could use has them.

    Only "isn't pulling now" is required: with a label that new nodes lack, autoscalers wouldn't add nodes for the pod.
    """
    missing = [image for image in _gated_images(case) if not is_required(case.pod, image.not_pulling)]
    if not missing:
        return
    required, reason = _satisfiable(case, missing)
    for image in required:
        yield RequireNode(image.not_pulling)
    if not reason:
        yield Note("gate", f"required {len(required)}")
        return
    yield Degraded(reason)
    labels = ", ".join(image.label for image in missing if image not in required)
    yield Note("gate", f"degraded to a preference: {_DEGRADED_BECAUSE[reason]}: {labels}", is_warning=True)


def _gated_images(case: Case) -> Iterable[GateTerms]:
    """The pod's images that the puller manages, each once."""
    return {image.label: image for image in map(case.rulebook.gated, case.pod.images) if image is not None}.values()


def _satisfiable(case: Case, missing: list[GateTerms]) -> tuple[list[GateTerms], str]:
    """Which images a pod may be made to wait for, earlier ones first, and why not for all of them ("": for all).

    One and the same node must hold them, be admitted by the pod's own rules and be large enough. Each image alone might
    be held by different nodes: with all of them required, the pod would wait for one more pull although it needn't.
    """
    nodes, rules = case.facts.nodes, case.pod.rules
    # None: the Lease isn't watched. A Lease that is watched but can't be read may be a dead leader's.
    if case.facts.leases.get(CONTROLLERS) not in (None, LeaseState.HELD):
        # A label may say "pulling" although no pull is running.
        return [], "controllers-stale"
    if nodes is None:
        return [], "nodes-unknown"
    if case.rulebook.settings.gate.when_no_holder is WhenNoHolder.WAIT:
        return missing, ""
    requests = _requests_if_readable(case)
    labels = tuple(image.label for image in missing)
    exists = case.memory.holders.exists
    if exists(nodes, rules, labels, requests):
        return missing, ""
    required: list[GateTerms] = []
    for image in missing:
        if exists(nodes, rules, tuple(other.label for other in (*required, image)), requests):
            required.append(image)
    return required, "no-holder-fits" if exists(nodes, rules, labels) else "no-holder"


def _requests_if_readable(case: Case) -> tuple[tuple[str, int], ...]:
    try:
        return _requests_of(case)
    except MalformedObjectError:
        # The API server will reject the pod and say why.
        return ()


def prefer_warm(case: Case) -> Iterator[Verdict]:
    """Prefer nodes of the smallest set that carries the class: first those known to hold the images."""
    yield from _prefer_chosen(choose_warm_nodes(case))


def _prefer_chosen(choice: WarmChoice | str | None) -> Iterator[Verdict]:
    if choice is None:
        return
    if isinstance(choice, str):
        yield Note("warm", f"nothing preferred: {choice}")
        return
    if not choice.nodes:
        yield Note("warm", f"nothing preferred: no node has room; {choice.set_size} in the set")
        return
    for node, weight in choice.nodes:
        yield PreferNode({"weight": weight, "preference": _is_named(node)})
    first, _ = choice.nodes[0]
    yield Annotate(WARM_TARGET_ANNOTATION, first)
    known = f"{choice.holding} of {len(choice.nodes)} preferred nodes hold the images"
    yield Note("warm", f"{first}; {known}; {choice.set_size} nodes in the set")


def prefer_warm_or_join(case: Case) -> Iterator[Verdict]:
    """As `prefer_warm`, or, where no set is used, prefer nodes with pods of the classes that the pod's class joins."""
    choice = choose_warm_nodes(case)
    yield from _prefer_chosen(choice)
    if isinstance(choice, str):
        yield from pods_to_join(case)


def pods_to_join(case: Case) -> list[PreferPods]:
    """The `join` terms of the pod's class."""
    return [term for term in _terms_about_pods(case) if term.towards]


class WarmNeeds(NamedTuple):
    """What a pod itself says of its warm nodes: the same for all pods with the same spec."""

    rules: NodeRules
    requests: tuple[tuple[str, int], ...]
    # As written, and normalised.
    images: Sequence[tuple[str, str]]
    # Pullers bring all of these images to every node.
    are_brought: bool


def read_warm_needs(case: Case) -> WarmNeeds:
    """What the case's pod says of its warm nodes. Raises MalformedObjectError for requests that can't be read."""
    images = [(reference, normalise_reference(reference)) for reference in case.pod.images]
    brought = case.rulebook.brought_images
    return WarmNeeds(case.pod.rules, _requests_of(case), images, all(normalised in brought for _, normalised in images))


def choose_warm_nodes(case: Case, needs: WarmNeeds | None = None) -> WarmChoice | str | None:
    """The nodes that `prefer_warm` prefers, none if all are full; or why no set is used. None: the pod has its nodes.

    needs: what `read_warm_needs` found for a pod with the same spec.
    """
    pod, finder = case.pod, case.rules.warm
    if finder is None or _keeps_target(pod, WARM_TARGET_ANNOTATION, _is_named):
        return None
    nodes, facts = case.facts.nodes, case.facts.warm.get(case.rules.name)
    if nodes is None or facts is None:
        return "nodes can't be read"
    try:
        needs = needs or read_warm_needs(case)
    except MalformedObjectError:
        # The API server will reject the pod and say why; the other rules don't need requests.
        return "the pod's requests can't be read"
    if needs.are_brought and facts.uses_only(case.rulebook.brought_images):
        # Nothing is to be chosen, and the scheduler packs better than a set of the oldest nodes.
        return "pullers bring all images of the class to every node"
    images = [(normalised, _labelled_holders(case, nodes, reference)) for reference, normalised in needs.images]
    holders = [_known_holders(facts, reference, labelled) for reference, labelled in images]
    request = WarmRequest(needs.rules, needs.requests, holders, images)
    return finder.find(request, nodes, facts)


def _requests_of(case: Case) -> tuple[tuple[str, int], ...]:
    """The pod's requests, or those that its class gives to pods without any. Raises MalformedObjectError."""
    pod, by_default = case.pod, case.rules.requests.requests
    own = read_requests(pod.spec)
    if own or not by_default:
        return own
    return read_requests({"containers": [{"resources": {"requests": by_default}} for _ in pod.containers]})


def _labelled_holders(case: Case, nodes: Nodes, reference: str) -> frozenset[str]:
    """Nodes whose label says that they have an image."""
    gated = case.rulebook.gated(reference)
    return frozenset() if gated is None else nodes.holders.get(gated.label, frozenset())


def _known_holders(facts: WarmFacts, reference: str, labelled: frozenset[str]) -> list[frozenset[str]]:
    """Nodes that have an image, because a pod of the class ran there or because their label says so."""
    brought = facts.holders(reference)
    return [brought, labelled] if brought and labelled else [labelled or brought]


def prefer_home(case: Case) -> Iterator[Verdict]:
    """Prefer the first nodes of the repository's ring, with falling weights.

    A ring made without builders yields to BinderHub's own sticky term: BinderHub has seen builders that Roost hasn't.
    Its spreading term goes in any case: it would scatter a repository over cold caches.
    """
    pod, home = case.pod, case.rules.pod_class.home
    repository = repository_of(pod, home.key) if home is not None else ""
    if home is None or not repository:
        return
    if _keeps_target(pod, HOME_TARGET_ANNOTATION, partial(_is_node, home=home, facts=case.facts)):
        return
    request = HomeRequest(case.rules.name, home, repository, pod.rules, case.pod_key)
    choice = case.memory.homes.find(request, case.facts, case.now)
    is_settled = choice.without_builders and any(map(is_binderhub_sticky_term, pod.preferred_node_terms))
    if not choice.nodes or is_settled:
        yield DropBinderHubTerms(sticky=False, spread=True)
        yield Note("home", "BinderHub's choice stays: no builder is ready" if is_settled else "no node is known")
        return
    yield DropBinderHubTerms(sticky=True, spread=True)
    for weight, node in zip(home.weights, choice.nodes, strict=False):
        yield PreferNode({"weight": weight, "preference": _is_node(node, home, case.facts)})
    yield Annotate(HOME_TARGET_ANNOTATION, choice.nodes[0])
    why = f" of {choice.admitted}" + (", without ready builders" if choice.without_builders else "")
    yield Note("home", ", ".join(choice.nodes) + why)
    if any(map(_can_outvote_home, pod.preferred_node_terms)):
        text = (
            f"a preferred node term of weight {_OUTVOTING_WEIGHT} or more adds to the repository's home, may outvote it"
        )
        yield Note("home-outvoted", text, is_warning=True)


def _keeps_target(pod: Pod, annotation: str, is_node: Callable[[str], JSONObject]) -> bool:
    """Return whether Roost chose the pod's nodes already: a pod reviewed again keeps them, whatever the load is."""
    target = pod.annotations.get(annotation)
    if not target:
        return False
    preference = is_node(target)
    return any(
        type(term) is dict and same_node_preference(term.get("preference"), preference)
        for term in pod.preferred_node_terms
    )


def _is_node(node: str, home: Home, facts: Facts) -> JSONObject:
    """The node selector term that only `node` meets; a field may name one value only."""
    if home.match_by is MatchBy.NAME:
        return _is_named(node)
    known = facts.nodes.get_node(node) if facts.nodes is not None else None
    hostname = known.labels.get(HOSTNAME_LABEL, node) if known is not None else node
    return {"matchExpressions": [{"key": HOSTNAME_LABEL, "operator": "In", "values": [hostname]}]}


def _is_named(node: str) -> JSONObject:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


def _can_outvote_home(term: object) -> bool:
    if type(term) is not dict or is_binderhub_sticky_term(term):
        return False
    weight = term.get("weight")
    return type(weight) is int and weight >= _OUTVOTING_WEIGHT


def join_and_avoid(case: Case) -> Iterable[Verdict]:
    """Prefer nodes with pods of some classes, and nodes without pods of others."""
    return _terms_about_pods(case)


def avoid(case: Case) -> Iterable[Verdict]:
    """Prefer nodes without pods of some classes."""
    return [term for term in _terms_about_pods(case) if not term.towards]


def _terms_about_pods(case: Case) -> list[PreferPods]:
    return case.rules.pods_nearby if _is_at_home(case) else case.rules.pods_from_afar


def _is_at_home(case: Case) -> bool:
    return case.pod.namespace == case.rulebook.settings.namespace


def prefer_nodes(case: Case) -> Iterable[Verdict]:
    """Add the class's preferred node terms."""
    return case.rules.preferred_nodes


def go_to_marked_node(case: Case) -> Iterator[Verdict]:
    """Attract a placeholder to the node that is marked for its set."""
    sets = case.rulebook.settings.placeholder_sets
    placeholder_set = case.pod.labels.get(PLACEHOLDER_SET_LABEL) or (sets[0] if sets else "")
    if placeholder_set:
        yield case.rulebook.attract(placeholder_set)


def request_by_default(case: Case) -> Iterator[Verdict]:
    """Give requests to pods without any: otherwise kube-scheduler never considers their nodes full."""
    yield case.rules.requests


def name_revision(case: Case) -> Iterator[Verdict]:
    """Annotate the pod with the revision of the policy."""
    yield case.rules.revision


class Rule(NamedTuple):
    """What a rule yields for a pod, the classes it is for, and the facts it reads.

    A rule that yields nothing for a pod yields nothing for it whatever the facts are.
    """

    apply: RuleFunction
    applies: Callable[[ClassRules], bool]
    reads: Reads = Reads.NOTHING


RULES: Final[tuple[Rule, ...]] = (
    Rule(name_revision, lambda _: True),
    Rule(set_scheduler, lambda rules: bool(rules.scheduler_name), Reads.LEASES),
    Rule(prefer_pulled_images, lambda rules: rules.prefers_pulled),
    Rule(require_pulled_images, lambda rules: rules.requires_pulled, Reads.NODES | Reads.LEASES),
    Rule(prefer_warm, lambda rules: rules.warm is not None and not rules.joins_unless_warm, _READS_FOR_WARM),
    Rule(prefer_warm_or_join, lambda rules: rules.joins_unless_warm, _READS_FOR_WARM),
    Rule(prefer_home, lambda rules: rules.pod_class.home is not None, Reads.NODES | Reads.BUILDERS | Reads.HOMES),
    Rule(prefer_nodes, lambda rules: bool(rules.preferred_nodes)),
    Rule(go_to_marked_node, lambda rules: rules.pod_class.attract),
    Rule(join_and_avoid, lambda rules: bool(rules.pods_nearby) and not rules.joins_unless_warm),
    Rule(avoid, lambda rules: bool(rules.pod_class.avoid) and rules.joins_unless_warm),
    Rule(request_by_default, lambda rules: bool(rules.pod_class.resources)),
)
