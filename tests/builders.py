"""Make pods, facts, rules and reviews for tests; each says only what the test is about."""

import base64
import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonpatch
import yaml

from generator.render.functions import pullers
from generator.render.manifests import render
from generator.values.files import parse_values
from generator.values.loader import load
from generator.values.release_name import Release
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.placement.labels import RELEASE_KEY, base_name, pulled_label
from roost_core.placement.nodes import Nodes
from roost_core.release.release_settings import ReleaseSettings
from tools.root import ROOT
from webhook.admission import Decision
from webhook.facts.facts import Facts
from webhook.review import Answer, Reviewer
from webhook.webhook_settings import parse_settings

RELEASE = "hub"
NAMESPACE = "jhub"
# As Helm installs it into a cluster of the newest minor.
HUB_RELEASE = Release(RELEASE, NAMESPACE, "v1.37.2")
CHART_VALUES = load((ROOT / "chart" / "values.yaml").read_bytes(), "chart/values.yaml")
IMAGE = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"
REPOSITORY = "https://github.com/binder-examples/requirements"


@cache
def _default_values() -> JSONObject:
    values: JSONObject = yaml.safe_load((ROOT / "chart" / "values.yaml").read_text())
    return values


def default_values() -> JSONObject:
    return copy.deepcopy(_default_values())


def without_mover_times(values: Mapping[str, Any]) -> tuple[JSONObject, JSONObject]:
    """Values, and what in `placeholderMover` is a time: the chart names none, release.json may."""
    mover = values.get("placeholderMover", {})
    times = {key: value for key, value in mover.items() if key.endswith("Seconds")}
    rest = {key: value for key, value in mover.items() if key not in times}
    return {**values, **({"placeholderMover": rest} if mover else {})}, times


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> JSONObject:
    """`base` with `over` laid on it as Helm does: maps merge, null deletes, all else replaces."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


@cache
def _rendered_document(text: str, namespace: str) -> str:
    bodies: list[Any] = [
        manifest.body
        for manifest in render(
            parse_values(text.encode(), "values.yaml").values, Release(RELEASE, namespace)
        )
    ]
    (document,) = (
        body["data"][RELEASE_KEY] for body in bodies if RELEASE_KEY in body.get("data", {})
    )
    return str(document)


def release_document(
    values: str | Mapping[str, Any] = "", namespace: str = NAMESPACE
) -> JSONObject:
    """release.json as it is rendered with these values over the defaults."""
    text = values if isinstance(values, str) else json.dumps(values)
    document: JSONObject = json.loads(_rendered_document(text, namespace))
    return document


def policy_document(**changes: object) -> JSONObject:
    """The release's document by default values, with one managed image; `changes` are merged at the
    top.

    `singleuser` and `prePuller` are the values' keys; the document has what pullers make of them.
    """
    values = default_values()
    singleuser = {
        "image": {"name": IMAGE.partition(":")[0], "tag": IMAGE.partition(":")[2]},
        "profileList": [],
    }
    hub: Any = changes.pop("singleuser", {})
    puller: Any = changes.pop("prePuller", {})
    pre_puller = merged(values["prePuller"], puller)
    document = {
        "version": 1,
        "release": RELEASE,
        "namespace": NAMESPACE,
        "scheduler": {"target": values["scheduler"]["target"]},
        "podClasses": values["podClasses"],
        "replaceSchedulers": values["replaceSchedulers"],
        "imageGate": {
            "mode": values["imageGate"]["mode"],
            "pullDeadlineSeconds": values["imageGate"]["pullDeadlineSeconds"],
            "pullers": pullers(base_name(RELEASE), merged(singleuser, hub), pre_puller),
        },
        "webhook": {"readNodes": values["webhook"]["readNodes"]},
        "prePuller": {"enabled": pre_puller["enabled"]},
        "pullersRun": pre_puller["enabled"],
        "placeholders": [{"name": "default"}],
    }
    return merged(document, changes)


def settings(**changes: object) -> ReleaseSettings:
    """The default rules; `changes` as for `policy_document`."""
    return parse_settings(policy_document(**changes), revision="revision0001")


def held(*images: str) -> dict[str, str]:
    return {pulled_label(RELEASE, NAMESPACE, image): "true" for image in images}


def node(
    name: str,
    *images: str,
    labels: Mapping[str, str] | None = None,
    ready: bool = True,
    **more: Any,
) -> Node:
    """A Ready node that holds `images`. Without `allocatable` its room isn't known."""
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return Node(name, {**usual, **held(*images), **(labels or {})}, ready=ready, **more)


def facts(
    *nodes: Node, builders: str = "", namespaces: Mapping[str, Mapping[str, str]] | None = None
) -> Facts:
    """Facts of these nodes. builders: names of nodes with a Ready builder."""
    return Facts(
        nodes=Nodes(nodes),
        builder_nodes={"build": frozenset(builders.split())},
        namespaces=namespaces,
    )


def builder_nodes(count: int = 5) -> list[Node]:
    return [node(f"node-{index}") for index in range(count)]


def pod(
    labels: Mapping[str, str], spec: Mapping[str, Any] | None = None, **metadata: object
) -> JSONObject:
    """A pod as it comes to a webhook: with the default scheduler, and one container without
    resources.
    """
    named = {"name": "a-pod", "namespace": NAMESPACE, "labels": dict(labels), **metadata}
    containers = [{"name": "main", "image": "example.org/other:1", "resources": {}}]
    usual = {"schedulerName": "default-scheduler", "containers": containers, **(spec or {})}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": usual}
    return copy.deepcopy(body)


def user_pod(*images: str, **spec: object) -> JSONObject:
    """A user's pod with a container for each image, IMAGE when none is given."""
    containers = [
        {"name": f"container-{index}", "image": image, "resources": {"requests": {"memory": "1Gi"}}}
        for index, image in enumerate(images or (IMAGE,))
    ]
    return pod(
        {"component": "singleuser-server", "app": "jupyterhub"}, {"containers": containers, **spec}
    )


def build_pod(repository: str = REPOSITORY, /, name: str = "build-1", **spec: object) -> JSONObject:
    """A build's pod, without BinderHub's own placement terms."""
    annotations = {"binder-repo": repository} if repository else {}
    return pod({"component": "binderhub-build"}, spec, name=name, annotations=annotations)


def placeholder_pod(labels: Mapping[str, str] | None = None, **spec: object) -> JSONObject:
    return pod({"component": "user-placeholder", **(labels or {})}, spec)


def sticky_term(node_name: str) -> JSONObject:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    return {"weight": 100, "preference": {"matchExpressions": [expression]}}


def spread_term() -> JSONObject:
    """BinderHub's term for a build that isn't sticky."""
    term = {
        "labelSelector": {"matchLabels": {"component": "binderhub-build"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"weight": 100, "podAffinityTerm": term}


def prefers_nodes(*terms: JSONObject) -> JSONObject:
    return {"nodeAffinity": {PREFERRED: list(terms)}}


def requires_nodes(*terms: object) -> JSONObject:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, *values: str, operator: str = "In") -> JSONObject:
    return {"key": key, "operator": operator, "values": list(values)}


def review(body: object, namespace: str = NAMESPACE, **request: object) -> bytes:
    of_core = {"group": "", "version": "v1"}
    whose = {
        "uid": "00000000-0000-4000-8000-000000000001",
        "namespace": namespace,
        "operation": "CREATE",
    }
    what = {"kind": {**of_core, "kind": "Pod"}, "resource": {**of_core, "resource": "pods"}}
    asked = {**whose, **what, "object": body, "dryRun": False, **request}
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    ).encode()


class Desk:
    """A Reviewer with rules, facts and a clock that a test sets."""

    def __init__(self, rules: ReleaseSettings | None = None, known: Facts | None = None) -> None:
        self.rules = rules or settings()
        self.facts = known or facts()
        self.now = 1000.0
        self.outcomes: list[tuple[Decision, bool, float]] = []
        self.reviewer = Reviewer(
            lambda: self.rules, lambda: self.facts, lambda: self.now, self.count
        )

    @property
    def decisions(self) -> list[Decision]:
        return [decision for decision, _, _ in self.outcomes]

    def count(self, decision: Decision, is_dry_run: bool, seconds: float) -> None:
        self.outcomes.append((decision, is_dry_run, seconds))

    def answer(self, body: object, namespace: str = NAMESPACE, **request: object) -> JSONObject:
        """The response to the creation of `body`; every answer must be a plain `allowed`."""
        answer = self.reviewer.review(review(body, namespace, **request))
        return allowed(answer)

    def place(self, body: JSONObject, namespace: str = NAMESPACE, **request: object) -> JSONObject:
        return patched(body, self.answer(body, namespace, **request))


def allowed(answer: Answer) -> JSONObject:
    assert answer.status == 200
    document: JSONObject = json.loads(answer.body)
    assert document["apiVersion"] == "admission.k8s.io/v1"
    assert document["kind"] == "AdmissionReview"
    response: JSONObject = document["response"]
    assert response["allowed"] is True
    return response


def patch_of(response: JSONObject) -> list[JSONObject]:
    """The operations of a response, [] when it has none."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    operations: list[JSONObject] = json.loads(base64.b64decode(response["patch"]))
    assert operations, "an empty patch is no patch"
    return operations


def patched(body: JSONObject, response: JSONObject) -> JSONObject:
    """`body` after the response's patch, by an implementation of RFC 6902 that isn't ours."""
    result: JSONObject = jsonpatch.apply_patch(copy.deepcopy(body), patch_of(response))
    return result


def place(
    body: JSONObject, known: Facts | None = None, rules: ReleaseSettings | None = None
) -> JSONObject:
    return Desk(rules, known).place(body)


def node_terms(body: JSONObject) -> list[JSONObject]:
    found: list[JSONObject] = (
        body["spec"].get("affinity", {}).get("nodeAffinity", {}).get(PREFERRED, [])
    )
    return found


def required_terms(body: JSONObject) -> list[JSONObject] | None:
    """The pod's required node terms, None when it has no required affinity."""
    found: JSONObject | None = (
        body["spec"].get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    )
    return None if found is None else found["nodeSelectorTerms"]


def pod_terms(body: JSONObject, kind: str) -> list[JSONObject]:
    found: list[JSONObject] = body["spec"].get("affinity", {}).get(kind, {}).get(PREFERRED, [])
    return found


def homes_of(body: JSONObject) -> list[tuple[int, str]]:
    """Weights and names of the nodes that the pod prefers by name, as they stand in it."""
    return [
        (term["weight"], term["preference"]["matchFields"][0]["values"][0])
        for term in node_terms(body)
        if term["preference"].get("matchFields", [{}])[0].get("operator") == "In"
    ]
