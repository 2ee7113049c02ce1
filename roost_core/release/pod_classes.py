"""Read `podClasses`: which pods a class has, and what they get."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import PLAIN_RESOURCES
from roost_core.objects.selectors import LABEL_SELECTOR_OPERATORS, NODE_SELECTOR_OPERATORS
from roost_core.placement.labels import PLACEHOLDER_CLASS, USER_CLASS
from roost_core.placement.warm_sets import Spare
from roost_core.release.reader import Document, Reader

# For a class whose `warm` has no `nodes`. chart/values.yaml has a default for the class `user`
# alone.
DEFAULT_WARM_NODES: Final = 10
# `spare` as a share of a node.
_PERCENT: Final = re.compile(r"-?[0-9]{1,3}%")


@dataclass(frozen=True, slots=True)
class KeySource:
    """One place where a pod may name its repository. `name` is "" for the image."""

    kind: Literal["annotation", "label", "env", "image"]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """`podClasses.<class>.home`: a fixed first choice of node for each repository."""

    key: tuple[KeySource, ...]
    # Labels of the pods, in the release's namespace, whose nodes have the caches. Empty: any node.
    builder_labels: Mapping[str, str]
    # Node affinity weights of the first, second … node; decreasing.
    weights: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """`podClasses.<class>.warm`: prefer the nodes with the pod's images, in the smallest set that
    holds all pods.
    """

    # Pods of the class on one node; 0: as many of the pod's size as fit its allocatable.
    pods_per_node: int
    # Slots of the set beyond the present pods.
    spare: Spare
    # The most nodes named in one pod.
    nodes: int


# The weight of an `avoid` that is to break ties and nothing else: left out wherever it would do
# more.
TIE_BREAK: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClass:
    """`podClasses.<name>`: what one kind of pod gets."""

    name: str
    labels: Mapping[str, str]
    # A metav1.LabelSelector; None: the release's own namespace.
    namespace_selector: Mapping[str, object] | None
    # "": the pod keeps its scheduler.
    profile: str
    image_gate: bool
    join: Mapping[str, int]
    avoid: Mapping[str, int]
    # PreferredSchedulingTerms.
    preferred_node_terms: tuple[Mapping[str, object], ...]
    home: Home | None
    # Requests for containers that have none: resource -> quantity.
    resources: Mapping[str, object]
    warm: Warm | None = None
    # Keys that only a rule of the webhook reads, as the document has them: the chart's schema has
    # checked them.
    more: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_of_placeholders(self) -> bool:
        """Whether its pods keep room for users, on the node that is marked for their set."""
        return self.name == PLACEHOLDER_CLASS

    @property
    def is_of_users(self) -> bool:
        """Whether its pods are users' servers: the class `user`, and those whose pods wait for
        images.
        """
        return not self.is_of_placeholders and (self.name == USER_CLASS or self.image_gate)


def read_selector(read: Reader, value: object, key: str) -> Document | None:
    """`value` as a metav1.LabelSelector without its nulls; None when it is null."""
    if value is None:
        return None
    selector = read.mapping(value, key)
    read.known(selector, key, ("matchLabels", "matchExpressions"))
    read.labels(selector.get("matchLabels"), f"{key}.matchLabels")
    read.expressions(
        selector.get("matchExpressions"), f"{key}.matchExpressions", LABEL_SELECTOR_OPERATORS
    )
    return {name: part for name, part in selector.items() if part is not None}


def _read_weights(read: Reader, value: object, key: str) -> dict[str, int]:
    weights = read.mapping(value, key).items()
    return {
        name: read.weight(weight, f"{key}.{name}") for name, weight in weights if weight is not None
    }


def _read_terms(read: Reader, value: object, key: str) -> tuple[Document, ...]:
    terms: list[Document] = []
    for index, entry in enumerate(read.items(value, key)):
        at = f"{key}[{index}]"
        term = read.mapping(entry, at)
        read.known(term, at, ("weight", "preference"))
        read.weight(term.get("weight"), f"{at}.weight")
        preference = read.mapping(term.get("preference"), f"{at}.preference")
        read.known(preference, f"{at}.preference", ("matchExpressions", "matchFields"))
        expressions = preference.get("matchExpressions")
        fields = preference.get("matchFields")
        read.expressions(expressions, f"{at}.preference.matchExpressions", NODE_SELECTOR_OPERATORS)
        read.expressions(fields, f"{at}.preference.matchFields", frozenset(), fields=True)
        if not expressions and not fields:
            read.fault(f"{at}.preference", preference, "matchExpressions or matchFields")
        terms.append(term)
    return tuple(terms)


# Kinds of a key's source that come with a name, by their word in the values.
_NAMED_SOURCES: Final[Mapping[str, Literal["annotation", "label", "env"]]] = {
    "annotation": "annotation",
    "label": "label",
    "env": "env",
}


def _read_key_source(read: Reader, value: object, at: str) -> KeySource:
    entry = read.mapping(value, at)
    if len(entry) == 1:
        ((kind, name),) = entry.items()
        if kind == "image":
            return KeySource("image")
        if kind in _NAMED_SOURCES and isinstance(name, str) and name:
            return KeySource(_NAMED_SOURCES[kind], name)
    read.fault(
        at, value, "one of {annotation: NAME}, {label: NAME}, {env: NAME}, {image: repository}"
    )
    return KeySource("image")


def _read_home(read: Reader, value: object, key: str) -> Home | None:
    if value is None:
        return None
    home = read.mapping(value, key)
    read.known(home, key, ("key", "builders", "weights"))
    sources = read.items(home.get("key"), f"{key}.key")
    if not sources:
        read.fault(f"{key}.key", sources, "at least one place where the repository is named")
    builders = read.mapping(home.get("builders"), f"{key}.builders")
    read.known(builders, f"{key}.builders", ("labels",))
    weights = tuple(
        read.weight(weight, f"{key}.weights[{index}]")
        for index, weight in enumerate(read.items(home.get("weights"), f"{key}.weights"))
    )
    if not weights or any(first <= second for first, second in pairwise(weights)):
        read.fault(
            f"{key}.weights", list(weights), "at least one weight, each smaller than the one before"
        )
    return Home(
        key=tuple(
            _read_key_source(read, source, f"{key}.key[{index}]")
            for index, source in enumerate(sources)
        ),
        builder_labels=read.labels(builders.get("labels"), f"{key}.builders.labels"),
        weights=weights,
    )


def _read_warm(read: Reader, value: object, key: str) -> Warm | None:
    if value is None:
        return None
    warm = read.mapping(value, key)
    read.known(warm, key, ("podsPerNode", "spare", "nodes"))
    return Warm(
        pods_per_node=read.integer(warm.get("podsPerNode", 0), f"{key}.podsPerNode"),
        spare=_read_spare(read, warm.get("spare", 0), f"{key}.spare"),
        nodes=read.integer(warm.get("nodes", DEFAULT_WARM_NODES), f"{key}.nodes"),
    )


def _read_spare(read: Reader, value: object, key: str) -> Spare:
    """Like Kubernetes' maxUnavailable: a number, or a percentage as a string."""
    if isinstance(value, str):
        if _PERCENT.fullmatch(value):
            return Spare(percent=int(value[:-1]))
        read.fault(key, value, "a number of pods, or a share of a node's slots as -999% to 999%")
        return Spare()
    return Spare(pods=read.integer(value, key))


def _read_requests(read: Reader, value: object, key: str) -> dict[str, object]:
    requests: dict[str, object] = {}
    for name, quantity in read.mapping(value, key).items():
        if quantity is None:
            continue
        # Others make a pod invalid without an equal limit (huge pages, devices).
        if name not in PLAIN_RESOURCES:
            read.fault(
                f"{key}.{name}",
                quantity,
                f"only {', '.join(PLAIN_RESOURCES)}: others need an equal limit",
            )
            continue
        try:
            is_amount = parse_quantity(quantity) > 0
        except ValueError:
            is_amount = False
        if not is_amount:
            read.fault(f"{key}.{name}", quantity, "a Kubernetes quantity above 0, like 100m or 1Gi")
        # API servers accept a number, too, but return a string.
        requests[name] = quantity if isinstance(quantity, str) else str(quantity)
    return requests


_CLASS_KEYS: Final = (
    "match",
    "profile",
    "imageGate",
    "join",
    "avoid",
    "preferredNodeTerms",
    "home",
    "resources",
    "warm",
)


def _read_class(read: Reader, name: str, value: object) -> PodClass:
    key = f"podClasses.{name}"
    body = read.mapping(value, key)
    match = read.mapping(body.get("match"), f"{key}.match")
    read.known(match, f"{key}.match", ("labels", "namespaceSelector"))
    labels = read.labels(match.get("labels"), f"{key}.match.labels")
    if not labels:
        read.fault(
            f"{key}.match.labels",
            labels,
            "at least one label: without one, the class would match every pod",
        )
    return PodClass(
        name=name,
        labels=labels,
        namespace_selector=read_selector(
            read, match.get("namespaceSelector"), f"{key}.match.namespaceSelector"
        ),
        profile=read.text(body.get("profile"), f"{key}.profile"),
        image_gate=read.flag(body.get("imageGate", False), f"{key}.imageGate"),
        join=_read_weights(read, body.get("join"), f"{key}.join"),
        avoid=_read_weights(read, body.get("avoid"), f"{key}.avoid"),
        preferred_node_terms=_read_terms(
            read, body.get("preferredNodeTerms"), f"{key}.preferredNodeTerms"
        ),
        home=_read_home(read, body.get("home"), f"{key}.home"),
        resources=_read_requests(read, body.get("resources"), f"{key}.resources"),
        warm=_read_warm(read, body.get("warm"), f"{key}.warm"),
        more={name: part for name, part in body.items() if name not in _CLASS_KEYS},
    )


def read_pod_classes(read: Reader, value: object) -> dict[str, PodClass]:
    """`podClasses` by name; faults go to the reader."""
    entries = read.mapping(value, "podClasses").items()
    classes = {
        name: _read_class(read, name, entry) for name, entry in sorted(entries) if entry is not None
    }
    known = ", ".join(classes)
    for pod_class in classes.values():
        for other in pod_class.join.keys() - classes.keys():
            read.fault(f"podClasses.{pod_class.name}.join.{other}", other, f"one of {known}")
        for other in pod_class.avoid.keys() - classes.keys():
            # A weight of TIE_BREAK is the chart's own, and the operator removed that class.
            if pod_class.avoid[other] != TIE_BREAK:
                read.fault(f"podClasses.{pod_class.name}.avoid.{other}", other, f"one of {known}")
    return classes
