"""Turn the changes that rules request into the JSON Patch (RFC 6902) that makes a pod carry them.

Owns what a patch may say. Guarantees: it applies to the pod it was made for, whatever parents that
pod lacks (the API server refuses a pod whose patch doesn't apply, even with failurePolicy Ignore);
nothing that is there already is added again, so patching twice is patching once; apart from
BinderHub's own placement terms nothing of the author's goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, assert_never

from roost_core.objects.fields import JSONObject, MalformedObjectError, child_object
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.objects.pod_body import PodBody
from roost_core.objects.selectors import is_empty_term, read_label_selector, read_node_term
from webhook.binderhub_terms import is_binderhub_spread_term, is_binderhub_sticky_term

Operation = dict[str, object]

_AFFINITY: Final = "/spec/affinity"
# All keys and values together. Source: k8s.io/apimachinery/pkg/api/validation,
# TotalAnnotationSizeLimitB.
MAX_ANNOTATIONS_BYTES: Final = 256 * 1024


class SetScheduler(NamedTuple):
    """Give the pod to this scheduler."""

    name: str


class Annotate(NamedTuple):
    """Write an annotation of Roost's own; an older one gives way."""

    key: str
    value: str


class RequireNode(NamedTuple):
    """Add an expression to every way (term) in which the pod may match a node."""

    expression: JSONObject


class PreferNode(NamedTuple):
    """Add a preferred node term ({weight, preference}), unless one with an equal preference is
    there.
    """

    term: JSONObject


class PreferPods(NamedTuple):
    """Add a preferred pod term ({weight, podAffinityTerm}), unless an equal one, whatever its
    weight, is there.
    """

    term: JSONObject
    # True: towards pods; False: away from them.
    towards: bool


class DropBinderHubTerms(NamedTuple):
    """Remove the preferred terms of BinderHub's exact shape: Roost's own take their place."""

    sticky: bool
    spread: bool


class RequestByDefault(NamedTuple):
    """Give these requests to each main container of a pod that requests nothing in any."""

    requests: Mapping[str, object]


Change = (
    SetScheduler
    | Annotate
    | RequireNode
    | PreferNode
    | PreferPods
    | DropBinderHubTerms
    | RequestByDefault
)


def node_rule(preference: object) -> object | None:
    """What a node selector term asks for: the same for two whose parts are in another order; None:
    it can't be read.
    """
    if type(preference) is dict and not preference.get("matchExpressions"):
        fields = preference.get("matchFields")
        if type(fields) is list and len(fields) == 1:
            # A short way for the usual preference, which names a node: its field is the whole
            # rule.
            return fields
    term = read_node_term(preference)
    return None if term is None else tuple(map(frozenset, term))


def pod_rule(term: object) -> object | None:
    """What a pod affinity term asks for, as `node_rule` says it of a node term.

    None, too, for a term with keys that aren't compared.
    """
    if type(term) is not dict or term.get("matchLabelKeys") or term.get("mismatchLabelKeys"):
        return None
    namespaces = term.get("namespaces")
    names = (
        {name for name in namespaces if type(name) is str} if type(namespaces) is list else set()
    )
    rule: list[object] = [term.get("topologyKey"), names]
    for selector in (term.get("labelSelector"), term.get("namespaceSelector")):
        read = None if selector is None else read_label_selector(selector)
        if selector is not None and read is None:
            return None
        rule.append(read)
    return tuple(rule)


def named_node(name: str) -> JSONObject:
    """The node selector term that only the node of this name meets; a field may name one value
    only.
    """
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def prefers_node(pod: PodBody, preference: JSONObject) -> bool:
    """Whether one of the pod's preferred node terms has this preference."""
    rule = node_rule(preference)
    return any(
        type(term) is dict and node_rule(term.get("preference")) == rule
        for term in pod.preferred_node_terms
    )


def is_required(pod: PodBody, expression: JSONObject) -> bool:
    """Return whether each of the pod's required terms that can match a node holds the expression
    already.
    """
    terms = [term for term in pod.required_node_terms or () if not is_empty_term(term)]
    return bool(terms) and all(_holds(term, expression) for term in terms)


def _holds(term: JSONObject, expression: JSONObject) -> bool:
    expressions = term.get("matchExpressions")
    return type(expressions) is list and expression in expressions


def without_overflow(pod: PodBody, changes: Sequence[Change]) -> tuple[Sequence[Change], list[str]]:
    """Leave out annotations for which the pod has no room; return the other changes, and the keys
    that were left out.

    The API server would refuse the whole pod, even with failurePolicy Ignore.
    """
    annotations = pod.annotations
    room_bytes = MAX_ANNOTATIONS_BYTES - sum(
        _size(key) + _size(value) for key, value in annotations.items()
    )
    fitting: list[Change] = []
    dropped: list[str] = []
    for change in changes:
        if isinstance(change, Annotate):
            key, value = change
            previous = annotations.get(key)
            more_bytes = (
                _size(value) + _size(key) if previous is None else _size(value) - _size(previous)
            )
            if more_bytes > max(0, room_bytes):
                dropped.append(key)
                continue
            room_bytes -= more_bytes
        fitting.append(change)
    return fitting, dropped


def _size(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def pointer(step: str) -> str:
    """One step of a JSON Pointer (RFC 6901)."""
    return step.replace("~", "~0").replace("/", "~1")


def _add(path: str, value: object) -> Operation:
    # `add` on a member that is there replaces it, so a null needs no case of its own.
    return {"op": "add", "path": path, "value": value}


def patch_for(pod: PodBody, changes: Sequence[Change]) -> list[Operation]:
    """JSON Patch that makes the pod carry `changes`; [] when it does already.

    The operations share objects with `changes`: serialize them. Raises MalformedObjectError when a
    place that has to change isn't of a pod's shape.
    """
    annotations: dict[str, str] = {}
    required: list[JSONObject] = []
    nodes: list[JSONObject] = []
    pods: dict[str, list[JSONObject]] = {"podAffinity": [], "podAntiAffinity": []}
    scheduler = pod.scheduler_name
    drops = DropBinderHubTerms(sticky=False, spread=False)
    by_default: Mapping[str, object] = {}
    for change in changes:
        if isinstance(change, PreferNode):
            nodes.append(change.term)
        elif isinstance(change, RequireNode):
            required.append(change.expression)
        elif isinstance(change, PreferPods):
            pods["podAffinity" if change.towards else "podAntiAffinity"].append(change.term)
        elif isinstance(change, Annotate):
            annotations[change.key] = change.value
        elif isinstance(change, SetScheduler):
            scheduler = change.name
        elif isinstance(change, RequestByDefault):
            by_default = change.requests
        elif isinstance(change, DropBinderHubTerms):
            drops = change
        else:
            assert_never(change)
    operations: list[Operation] = []
    if annotations:
        _patch_annotations(pod, annotations, operations)
    if scheduler != pod.scheduler_name:
        operations.append(_add("/spec/schedulerName", scheduler))
    branches = {"nodeAffinity": _node_affinity(pod, required, nodes, drop_sticky=drops.sticky)}
    for name, terms in pods.items():
        branches[name] = _pod_affinity(
            pod, name, terms, drop_spread=drops.spread and name == "podAntiAffinity"
        )
    _patch_affinity(pod, branches, operations)
    if by_default:
        _patch_requests(pod, by_default, operations)
    return operations


def _patch_annotations(
    pod: PodBody, annotations: dict[str, str], operations: list[Operation]
) -> None:
    metadata = pod.body.get("metadata")
    if metadata is None:
        operations.append(_add("/metadata", {"annotations": annotations}))
    elif metadata.get("annotations") is None:
        operations.append(_add("/metadata/annotations", annotations))
    else:
        for key, value in annotations.items():
            if pod.annotations.get(key) != value:
                operations.append(_add(f"/metadata/annotations/{pointer(key)}", value))


def _new(
    terms: list[JSONObject],
    present: Sequence[object],
    part: str,
    rule_of: Callable[[object], object | None],
) -> list[JSONObject]:
    """The terms to add: those whose `part` (what is preferred) stands in no term that is present,
    nor in an earlier term to add.

    rule_of: what the `part` of a term asks for; two terms are equal by it. It is never None for
    Roost's own terms, so a term that can't be read equals none of them.
    """
    if not terms:
        return []
    rules = [rule_of(other.get(part)) for other in present if type(other) is dict]
    new_terms = []
    for term in terms:
        rule = rule_of(term[part])
        if rule not in rules:
            new_terms.append(term)
            rules.append(rule)
    return new_terms


class _Branch(NamedTuple):
    """What the changes make of one part of an affinity."""

    # The whole part, for a pod that doesn't have it; {}: it needs none.
    if_absent: JSONObject
    # What to do to the part of a pod that has it.
    if_there: Sequence[Operation]


def _patch_affinity(
    pod: PodBody, branches: Mapping[str, _Branch], operations: list[Operation]
) -> None:
    if pod.spec.get("affinity") is None:
        affinity = {name: branch.if_absent for name, branch in branches.items() if branch.if_absent}
        if affinity:
            operations.append(_add(_AFFINITY, affinity))
        return
    for name, branch in branches.items():
        if branch.if_absent and pod.affinity.get(name) is None:
            operations.append(_add(f"{_AFFINITY}/{name}", branch.if_absent))
        else:
            operations.extend(branch.if_there)


def _node_affinity(
    pod: PodBody, required: list[JSONObject], preferred: list[JSONObject], *, drop_sticky: bool
) -> _Branch:
    """What the changes make of `nodeAffinity`. Both results are made in one pass: `if_absent` gets
    what is new, `operations` the steps that bring it into the pod's own.
    """
    path = f"{_AFFINITY}/nodeAffinity"
    operations: list[Operation] = []
    if_absent: JSONObject = {}
    if required:
        terms = pod.required_node_terms
        if terms is None:
            if_absent[REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": required}]}
            operations.append(_add(f"{path}/{REQUIRED}", if_absent[REQUIRED]))
        else:
            _require_in_every_term(
                terms, required, f"{path}/{REQUIRED}/nodeSelectorTerms", operations
            )
    remaining: Sequence[object] = pod.preferred_node_terms
    if drop_sticky and remaining:
        operations += _removals(remaining, is_binderhub_sticky_term, path)
        remaining = [term for term in remaining if not is_binderhub_sticky_term(term)]
    if added := _new(preferred, remaining, "preference", node_rule):
        if_absent[PREFERRED] = added
        _append(pod.node_affinity, path, added, operations)
    return _Branch(if_absent, operations)


def _removals(
    terms: Sequence[object], goes: Callable[[object], bool], path: str
) -> list[Operation]:
    """Remove the preferred terms that go, from the end, so that the places of those before stay
    true.
    """
    places = [index for index, term in enumerate(terms) if goes(term)]
    return [{"op": "remove", "path": f"{path}/{PREFERRED}/{index}"} for index in reversed(places)]


def _require_in_every_term(
    terms: list[Any], required: list[JSONObject], path: str, operations: list[Operation]
) -> None:
    """Terms are ORed, so a demand belongs into each; one that matches nothing must go on matching
    nothing.
    """
    for index, term in enumerate(terms):
        if is_empty_term(term):
            continue
        missing = [expression for expression in required if not _holds(term, expression)]
        if not missing:
            continue
        expressions = term.get("matchExpressions")
        if expressions is None:
            operations.append(_add(f"{path}/{index}/matchExpressions", missing))
        elif type(expressions) is not list:
            raise MalformedObjectError("a node selector term.matchExpressions is not a list")
        else:
            operations.extend(
                _add(f"{path}/{index}/matchExpressions/-", expression) for expression in missing
            )


def _append(
    affinity: JSONObject, path: str, added: list[JSONObject], operations: list[Operation]
) -> None:
    if affinity.get(PREFERRED) is None:
        operations.append(_add(f"{path}/{PREFERRED}", added))
    else:
        operations.extend(_add(f"{path}/{PREFERRED}/-", term) for term in added)


def _pod_affinity(
    pod: PodBody, name: str, preferred: list[JSONObject], *, drop_spread: bool
) -> _Branch:
    """What the changes make of `podAffinity` or `podAntiAffinity`."""
    if not preferred and not drop_spread:
        return _Branch({}, ())
    present = pod.preferred_pod_terms.get(name)
    if present is None:
        if not preferred:
            return _Branch({}, ())
        return _Branch({PREFERRED: _new(preferred, (), "podAffinityTerm", pod_rule)}, ())
    path = f"{_AFFINITY}/{name}"
    operations: list[Operation] = []
    remaining: Sequence[object] = present
    if drop_spread:
        operations += _removals(remaining, is_binderhub_spread_term, path)
        remaining = [term for term in remaining if not is_binderhub_spread_term(term)]
    if added := _new(preferred, remaining, "podAffinityTerm", pod_rule):
        _append(pod.affinity[name], path, added, operations)
    return _Branch({}, operations)


def _patch_requests(
    pod: PodBody, requests: Mapping[str, object], operations: list[Operation]
) -> None:
    if pod.spec.get("resources"):
        # Requests of the pod as a whole bound those of its containers: one more could make it
        # invalid.
        return
    resources_by_container = [
        child_object(container, "resources", "spec.containers[]") or {}
        for container in pod.containers
    ]
    if any(
        child_object(resources, "requests", "spec.containers[].resources")
        for resources in resources_by_container
    ):
        # The pod's author has thought of what it needs.
        return
    for index, resources in enumerate(resources_by_container):
        path = f"/spec/containers/{index}/resources"
        if not resources:
            operations.append(_add(path, {"requests": requests}))
            continue
        limits = child_object(resources, "limits", "spec.containers[].resources") or {}
        # What has a limit and no request is requested at its limit: Kubernetes' own default, and a
        # request above a limit would make the pod invalid.
        missing = {name: amount for name, amount in requests.items() if name not in limits}
        if missing:
            operations.append(_add(f"{path}/requests", missing))
