"""Read the rules of one release from release.json, which the chart renders for the webhook.

Defaults are in chart/values.yaml alone: a missing key is a fault here, except where values may be null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise
from typing import Final, Literal

from roost_core.objects.images import normalise_reference
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.selectors import LABEL_SELECTOR_OPERATORS, NODE_SELECTOR_OPERATORS
from roost_core.placement.labels import USER_CLASS
from roost_core.placement.settings_reader import (
    DNS_LABEL,
    DNS_NAME,
    Document,
    Reader,
    SettingsError,
    load_document,
)
from roost_core.placement.warm_sets import MAX_NODES, Spare

VERSION: Final = 1
# Other resources make a pod invalid without an equal limit (huge pages, devices).
REQUESTABLE: Final = ("cpu", "memory", "ephemeral-storage")
MAX_WEIGHT: Final = 100
# Keys of `leases`.
SCHEDULER: Final = "scheduler"
CONTROLLERS: Final = "controllers"
# A class without `warm` has no default in chart/values.yaml to merge with.
DEFAULT_WARM_NODES: Final = 10
# `spare` as a share of a node.
_PERCENT: Final = re.compile(r"-?[0-9]{1,3}%")


class GateMode(StrEnum):
    """`imageGate.mode`."""

    REQUIRE_LABEL = "requireLabel"
    PREFER = "prefer"
    STARTUP_TAINT = "startupTaint"
    OFF = "off"


class MatchBy(StrEnum):
    """`home.matchBy`: how a preferred term names a node."""

    NAME = "name"
    HOSTNAME = "hostname"


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
    match_by: MatchBy
    # Node affinity weights of the first, second … node; decreasing.
    weights: tuple[int, ...]
    # Limit on a node: max(min_load, ceil(max_load x (running + 1) / nodes that the pod may use)); max_load 0: no limit.
    min_load: int
    max_load: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """`podClasses.<class>.warm`: prefer the nodes with the pod's images, in the smallest set that holds all pods."""

    # Pods of the class on one node; 0: as many of the pod's size as fit its allocatable.
    pods_per_node: int
    # Slots of the set beyond the present pods.
    spare: Spare
    # The most nodes named in one pod.
    nodes: int


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
    attract: bool
    # Requests for containers that have none: resource -> quantity.
    resources: Mapping[str, object]
    warm: Warm | None = None
    # Keys that only a rule of the webhook reads, as the document has them: the chart's schema has checked them.
    more: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_of_users(self) -> bool:
        """Whether its pods are users' servers: the class `user`, and those whose pods wait for images."""
        return not self.attract and (self.name == USER_CLASS or self.image_gate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The rules of one release, from one document."""

    # First 12 hex digits of the document's SHA-256; annotated on every placed pod.
    revision: str
    release: str
    namespace: str
    # False: pods keep the cluster's scheduler.
    sets_scheduler: bool
    classes: Mapping[str, PodClass]
    replace_schedulers: frozenset[str]
    gate: GateMode
    # Normalised references.
    managed_images: frozenset[str]
    # Names of the placeholder sets; pods that name none belong to the first.
    placeholder_sets: tuple[str, ...]
    # False: nodes can't be read, so there are never facts about them.
    reads_nodes: bool
    # Pullers stay on nodes and bring the managed images to each node that joins.
    pullers_run: bool = True
    # A label selector of the namespaces of all hubs that share nodes with this one; None: none does.
    shared_namespaces: Mapping[str, object] | None = None
    # Names of the Leases of Roost's other parts, in the release's namespace, by part (SCHEDULER, CONTROLLERS).
    leases: Mapping[str, str] = field(default_factory=dict)


def _read_selector(read: Reader, value: object, key: str) -> Document | None:
    if value is None:
        return None
    selector = read.mapping(value, key)
    read.known(selector, key, ("matchLabels", "matchExpressions"))
    read.labels(selector.get("matchLabels"), f"{key}.matchLabels")
    read.expressions(selector.get("matchExpressions"), f"{key}.matchExpressions", LABEL_SELECTOR_OPERATORS)
    return {name: part for name, part in selector.items() if part is not None}


def _read_weights(read: Reader, value: object, key: str) -> dict[str, int]:
    weights = read.mapping(value, key).items()
    return {name: read.whole(weight, f"{key}.{name}", 1, MAX_WEIGHT) for name, weight in weights if weight is not None}


def _read_terms(read: Reader, value: object, key: str) -> tuple[Document, ...]:
    terms: list[Document] = []
    for index, entry in enumerate(read.items(value, key)):
        at = f"{key}[{index}]"
        term = read.mapping(entry, at)
        read.known(term, at, ("weight", "preference"))
        read.whole(term.get("weight"), f"{at}.weight", 1, MAX_WEIGHT)
        preference = read.mapping(term.get("preference"), f"{at}.preference")
        read.known(preference, f"{at}.preference", ("matchExpressions", "matchFields"))
        expressions, fields = preference.get("matchExpressions"), preference.get("matchFields")
        read.expressions(expressions, f"{at}.preference.matchExpressions", NODE_SELECTOR_OPERATORS)
        read.expressions(fields, f"{at}.preference.matchFields", frozenset(), fields=True)
        if not expressions and not fields:
            read.fault(f"{at}.preference", preference, "matchExpressions or matchFields")
        terms.append(term)
    return tuple(terms)


def _read_key_source(read: Reader, value: object, at: str) -> KeySource:
    entry = read.mapping(value, at)
    if len(entry) == 1:
        ((kind, name),) = entry.items()
        if kind == "image":
            return KeySource("image")
        if isinstance(name, str) and name:
            if kind == "annotation":
                return KeySource("annotation", name)
            if kind == "label":
                return KeySource("label", name)
            if kind == "env":
                return KeySource("env", name)
    read.fault(at, value, "one of {annotation: NAME}, {label: NAME}, {env: NAME}, {image: repository}")
    return KeySource("image")


def _read_home(read: Reader, value: object, key: str) -> Home | None:
    if value is None:
        return None
    home = read.mapping(value, key)
    read.known(home, key, ("key", "builders", "matchBy", "weights", "minLoad", "maxLoad"))
    sources = read.items(home.get("key"), f"{key}.key")
    if not sources:
        read.fault(f"{key}.key", sources, "at least one place where the repository is named")
    builders = read.mapping(home.get("builders"), f"{key}.builders")
    read.known(builders, f"{key}.builders", ("labels",))
    weights = tuple(
        read.whole(weight, f"{key}.weights[{index}]", 1, MAX_WEIGHT)
        for index, weight in enumerate(read.items(home.get("weights"), f"{key}.weights"))
    )
    if not weights or any(first <= second for first, second in pairwise(weights)):
        read.fault(f"{key}.weights", list(weights), "at least one weight, each smaller than the one before")
    return Home(
        key=tuple(_read_key_source(read, source, f"{key}.key[{index}]") for index, source in enumerate(sources)),
        builder_labels=read.labels(builders.get("labels"), f"{key}.builders.labels"),
        match_by=read.choice(home.get("matchBy"), f"{key}.matchBy", MatchBy),
        weights=weights,
        min_load=read.whole(home.get("minLoad"), f"{key}.minLoad", 0, 1_000_000),
        max_load=read.number(home.get("maxLoad"), f"{key}.maxLoad"),
    )


def _read_warm(read: Reader, value: object, key: str) -> Warm | None:
    if value is None:
        return None
    warm = read.mapping(value, key)
    read.known(warm, key, ("podsPerNode", "spare", "nodes"))
    return Warm(
        pods_per_node=read.whole(warm.get("podsPerNode", 0), f"{key}.podsPerNode", 0, 1_000_000),
        spare=_read_spare(read, warm.get("spare", 0), f"{key}.spare"),
        nodes=read.whole(warm.get("nodes", DEFAULT_WARM_NODES), f"{key}.nodes", 1, MAX_NODES),
    )


def _read_spare(read: Reader, value: object, key: str) -> Spare:
    """Like Kubernetes' maxUnavailable: a number, or a percentage as a string."""
    if isinstance(value, str):
        if _PERCENT.fullmatch(value):
            return Spare(percent=int(value[:-1]))
        read.fault(key, value, "a number of pods, or a share of a node's slots as -999% to 999%")
        return Spare()
    return Spare(pods=read.whole(value, key, -1_000_000, 1_000_000))


def _read_requests(read: Reader, value: object, key: str) -> dict[str, object]:
    requests: dict[str, object] = {}
    for name, quantity in read.mapping(value, key).items():
        if quantity is None:
            continue
        if name not in REQUESTABLE:
            read.fault(f"{key}.{name}", quantity, f"only {', '.join(REQUESTABLE)}: others need an equal limit")
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
    "attract",
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
        read.fault(f"{key}.match.labels", labels, "at least one label: without one, the class would match every pod")
    return PodClass(
        name=name,
        labels=labels,
        namespace_selector=_read_selector(read, match.get("namespaceSelector"), f"{key}.match.namespaceSelector"),
        profile=read.text(body.get("profile"), f"{key}.profile"),
        image_gate=read.flag(body.get("imageGate", False), f"{key}.imageGate"),
        join=_read_weights(read, body.get("join"), f"{key}.join"),
        avoid=_read_weights(read, body.get("avoid"), f"{key}.avoid"),
        preferred_node_terms=_read_terms(read, body.get("preferredNodeTerms"), f"{key}.preferredNodeTerms"),
        home=_read_home(read, body.get("home"), f"{key}.home"),
        attract=read.flag(body.get("attract", False), f"{key}.attract"),
        resources=_read_requests(read, body.get("resources"), f"{key}.resources"),
        warm=_read_warm(read, body.get("warm"), f"{key}.warm"),
        more={name: part for name, part in body.items() if name not in _CLASS_KEYS},
    )


def _read_gate(read: Reader, gate: Document) -> GateMode:
    mode = gate.get("mode")
    # YAML 1.1 reads a bare `off` as false.
    return read.choice("off" if mode is False else mode, "imageGate.mode", GateMode)


def _read_managed_images(read: Reader, gate: Document) -> frozenset[str]:
    """The normalised references of all images that the pullers bring to nodes."""
    found: set[str] = set()
    for index, entry in enumerate(read.items(gate.get("pullers"), "imageGate.pullers")):
        at = f"imageGate.pullers[{index}]"
        for place, image in enumerate(read.items(read.mapping(entry, at).get("images"), f"{at}.images")):
            if reference := read.text(image, f"{at}.images[{place}]"):
                found.add(normalise_reference(reference))
    return frozenset(found)


def _read_target(read: Reader, value: object) -> bool:
    if value not in ("deploy", "none"):
        read.fault("schedulerTarget", value, "deploy or none")
    return value == "deploy"


def _read_placeholder_sets(read: Reader, value: object) -> tuple[str, ...]:
    """Names, given as strings or as entries of `placeholders` with a `name`."""
    names = [entry.get("name") if isinstance(entry, Mapping) else entry for entry in read.items(value, "placeholders")]
    return tuple(read.text(name, f"placeholders[{index}]") for index, name in enumerate(names))


def _read_leases(read: Reader, value: object) -> dict[str, str]:
    leases = read.mapping(value, "leases").items()
    return {part: read.name(name, f"leases.{part}", DNS_NAME, "a Lease's name") for part, name in leases}


def read_pod_classes(read: Reader, document: Document) -> dict[str, PodClass]:
    """Read `podClasses` of a document; faults go to the reader."""
    return {
        name: _read_class(read, name, value)
        for name, value in sorted(read.mapping(document.get("podClasses"), "podClasses").items())
        if value is not None
    }


def parse_settings(document: Mapping[str, object], revision: str = "") -> Settings:
    """Read the policy document. Raises SettingsError with all faults at once.

    Unknown top-level keys are ignored, so that a newer chart's document can be read while pods are replaced.
    """
    read = Reader()
    if document.get("version") != VERSION:
        read.fault("version", document.get("version"), str(VERSION))
    gate = read.mapping(document.get("imageGate"), "imageGate")
    classes = read_pod_classes(read, document)
    known = ", ".join(classes)
    for pod_class in classes.values():
        for side in ("join", "avoid"):
            for other in pod_class.join if side == "join" else pod_class.avoid:
                if other not in classes:
                    read.fault(f"podClasses.{pod_class.name}.{side}.{other}", other, f"one of {known}")
    settings = Settings(
        revision=revision,
        release=read.name(document.get("release"), "release", DNS_NAME, "a release's name"),
        namespace=read.name(document.get("namespace"), "namespace", DNS_LABEL, "a namespace's name"),
        sets_scheduler=_read_target(read, document.get("schedulerTarget")),
        classes=classes,
        replace_schedulers=frozenset(
            read.text(name, f"replaceSchedulers[{index}]")
            for index, name in enumerate(read.items(document.get("replaceSchedulers"), "replaceSchedulers"))
        ),
        gate=_read_gate(read, gate),
        managed_images=_read_managed_images(read, gate),
        placeholder_sets=_read_placeholder_sets(read, document.get("placeholders")),
        reads_nodes=read.flag(document.get("readNodes", True), "readNodes"),
        pullers_run=read.flag(document.get("pullersRun", True), "pullersRun"),
        shared_namespaces=_read_selector(read, document.get("sharedNamespaces"), "sharedNamespaces"),
        leases=_read_leases(read, document.get("leases")),
    )
    if read.faults:
        raise SettingsError(read.faults)
    return settings


def read_settings(text: bytes) -> Settings:
    """Read the policy document's bytes; the revision comes from their SHA-256. Raises SettingsError."""
    return parse_settings(load_document(text), revision_of(text))


def revision_of(text: bytes) -> str:
    """The revision of a document, by which pods and logs name it."""
    return sha256(text).hexdigest()[:12]
