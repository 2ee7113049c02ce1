"""Check that the Go webhook and Roost patch every pod alike, and degrade gates for the same
reasons.

Only equals can be compared. `python -m benchmarks.equality`: 0 when all are equal, 1 with the
differences otherwise. `admission.py` runs it first. The Go webhook is frozen: it knows the
rules of lab/benchmarks/values.yaml, and the two are compared under these values alone. Pods: those
of the benchmarks, variants of them that reach every rule, and the recorded ones.
"""

from __future__ import annotations

import base64
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonpatch

from benchmarks.figures import say
from benchmarks.policy import RELEASE, write_policy
from benchmarks.programs import program
from benchmarks.stage import PODS
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.objects.quantities import parse_quantity
from roost_core.placement.labels import OPT_OUT_ANNOTATION, pulled_label
from roost_core.placement.nodes import Nodes
from tests.recorded_data import PODS as RECORDED_PODS
from tests.recorded_data import REVIEWS
from webhook.facts.facts import Facts
from webhook.review import Reviewer
from webhook.watching.builders import read_builder
from webhook.webhook_settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.admission import Decision


NAMESPACE: Final = "hub"
# Both images of lab/benchmarks/values.yaml.
SCIENCE: Final = "quay.io/benchmark/science:2026.11"
TOOLS: Final = "quay.io/benchmark/network-tools:2026.11"


def differences() -> list[str]:
    """One text for each pod that the two make differently, or of whose gate they say something
    else.
    """
    found: list[str] = []
    with tempfile.TemporaryDirectory(prefix="roost-equality-") as scratch:
        folder = Path(scratch)
        cases = dict(_pods())
        policy = write_policy(folder / "release.json", NAMESPACE)
        known = _facts_objects()
        reviews = {name: _review(pod, number) for number, (name, pod) in enumerate(cases.items())}
        ours = _placed_by_roost(policy, known, reviews)
        changed = sum(
            mine["pod"] != _tidy(review["request"]["object"])
            for mine, review in zip(ours, reviews.values(), strict=True)
        )
        degraded = sum("gate" in mine for mine in ours)
        say(
            f"equality: {len(cases)} pods, {changed} of them changed; the gate of {degraded}"
            " degraded"
        )
        theirs = _placed_by_go(folder, policy, known, reviews)
        for name, mine, other in zip(cases, ours, theirs, strict=True):
            if mine != other:
                patch = jsonpatch.make_patch(other, mine).to_string()
                found.append(f"{name}: from what Go made to what Roost made: {patch}")
    return found


def _placed_by_roost(
    policy: Path, known: JSONObject, reviews: dict[str, JSONObject]
) -> list[JSONObject]:
    settings = read_settings(policy.read_bytes())
    facts = facts_of(known, "build")
    decisions: list[Decision] = []
    reviewer = Reviewer(
        lambda: settings,
        lambda: facts,
        lambda: 1.0,
        lambda decision, *_: decisions.append(decision),
    )
    placed = []
    for review in reviews.values():
        pod = copy.deepcopy(review["request"]["object"])
        response = json.loads(reviewer.review(json.dumps(review).encode()).body)["response"]
        if "patch" in response:
            pod = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))
        placed.append(_tidy({"pod": pod, "gate": decisions[-1].degraded}))
    return placed


def facts_of(known: JSONObject, home_class: str) -> Facts:
    """Roost's facts from the objects that the Go webhook is given as a file."""
    builders = {
        node
        for pod in known["pods"]
        if pod["metadata"]["labels"].get("component") == "image-builder"
        and (node := read_builder(pod)) is not None
    }
    return Facts(
        nodes=Nodes([read_node(node, with_images=False) for node in known["nodes"]]),
        builder_nodes={home_class: frozenset(builders)},
    )


def _placed_by_go(
    folder: Path, policy: Path, known: JSONObject, reviews: dict[str, JSONObject]
) -> list[JSONObject]:
    facts_file = folder / "facts.json"
    facts_file.write_text(json.dumps(known))
    files = []
    for number, review in enumerate(reviews.values()):
        path = folder / f"{number:03d}.json"
        path.write_text(json.dumps(review))
        files.append(str(path))
    command = [
        str(program("webhook")),
        "-apply",
        f"-policy={policy}",
        f"-facts={facts_file}",
        *files,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the Go webhook failed: {done.stderr.strip()}")
    return [_tidy(json.loads(line)) for line in done.stdout.splitlines()]


def _tidy(value: Any) -> Any:  # noqa: ANN401 (any JSON)
    """One form for what a typed decoder writes otherwise: nulls and empty members as absent,
    1073741824 as "1Gi".
    """
    if isinstance(value, dict):
        tidied = {
            key: _amounts(item) if key in ("requests", "limits") else _tidy(item)
            for key, item in value.items()
        }
        return {key: item for key, item in tidied.items() if item not in (None, {}, [], "")}
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def _amounts(quantities: Any) -> JSONObject:  # noqa: ANN401 (any JSON)
    return {name: str(parse_quantity(amount)) for name, amount in (quantities or {}).items()}


# What there is


_DEDICATED: Final = {"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}


def _facts_objects() -> JSONObject:
    """Six nodes, five of them with builders; some hold images, one pulls, some are small, full of
    builds or shut.
    """
    tools, science = (pulled_label(RELEASE, NAMESPACE, image) for image in (TOOLS, SCIENCE))
    labels: dict[str, dict[str, str]] = {
        "node-a": {tools: "true", "hub.jupyter.org/node-purpose": "user"},
        "node-b": {science: "true"},
        "node-c": {tools: "true", science: "true", "kubernetes.io/hostname": "another-name"},
        "node-d": {tools: "pulling"},
        "node-e": {},
        "node-f": {},
    }
    nodes = [
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **own}},
            "spec": {
                "unschedulable": name == "node-e",
                "taints": (
                    [{"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}]
                    if name == "node-c"
                    else []
                ),
            },
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "False" if name == "node-f" else "True"}
                ],
                # Of one nothing is known, one is too small for nearly all pods, one has a GPU.
                "allocatable": (
                    {
                        "node-a": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                        "node-b": {},
                        "node-c": {
                            "cpu": "8",
                            "memory": "16Gi",
                            "pods": "110",
                            "nvidia.com/gpu": "1",
                        },
                        "node-d": {"cpu": "100m", "memory": "128Mi", "pods": "110"},
                    }.get(name, {"cpu": "16", "memory": "64Gi", "pods": "110"})
                ),
            },
        }
        for name, own in labels.items()
    ]
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    pods = [
        {
            "metadata": {
                "name": f"dind-{name}",
                "namespace": NAMESPACE,
                "labels": {"component": "image-builder", "app": "binder"},
            },
            "spec": {"nodeName": name},
            "status": ready,
        }
        for name in labels
        if name != "node-d"
    ]
    pods += [
        {
            "metadata": {
                "name": f"running-{number}",
                "namespace": NAMESPACE,
                "labels": {"component": "binderhub-build"},
            },
            "spec": {"nodeName": "node-a"},
            "status": {"phase": "Succeeded" if number == 0 else "Running"},
        }
        for number in range(5)
    ]
    return {"nodes": nodes, "pods": pods}


def _pods() -> Iterator[tuple[str, JSONObject]]:
    for kind in ("user", "build", "placeholder"):
        pod = json.loads((PODS / f"{kind}.json").read_text())
        yield kind, pod
        for name, change in VARIANTS.items():
            other = copy.deepcopy(pod)
            other["metadata"]["name"] = f"{other['metadata']['name']}-{name.replace(' ', '-')}"
            change(other)
            yield f"{kind}, {name}", other
    for file in sorted(RECORDED_PODS.glob("*.json")):
        yield f"fixture {file.stem}", json.loads(file.read_text())
    for file in sorted(REVIEWS.glob("*.json")):
        yield f"fixture review {file.stem}", json.loads(file.read_text())["request"]["object"]


def _set(*path: str | int, to: object) -> Callable[[JSONObject], None]:
    def change(pod: JSONObject) -> None:
        parent: Any = pod
        for step in path[:-1]:
            parent = parent.setdefault(step, {}) if isinstance(step, str) else parent[step]
        parent[path[-1]] = to

    return change


_ZONE: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
_ANY_LINUX: Final = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
VARIANTS: Final[dict[str, Callable[[JSONObject], None]]] = {
    "opted out": _set("metadata", "annotations", OPT_OUT_ANNOTATION, to="true"),
    "bound": _set("spec", "nodeName", to="node-a"),
    "own scheduler": _set("spec", "schedulerName", to="my-scheduler"),
    "no affinity": _set("spec", "affinity", to=None),
    "two ored terms and an empty one": _set(
        "spec",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        to={"nodeSelectorTerms": [_ZONE, {}, _ANY_LINUX]},
    ),
    "a selector that no node meets": _set("spec", "nodeSelector", to={"zone": "moon"}),
    "a selector for one node": _set(
        "spec", "nodeSelector", to={"kubernetes.io/hostname": "node-b"}
    ),
    "no tolerations": _set("spec", "tolerations", to=[]),
    "another image": _set("spec", "containers", 0, "image", to=TOOLS),
    "unknown image": _set(
        "spec", "containers", 0, "image", to="registry.example:5000/other@sha256:abc"
    ),
    "limits only": _set("spec", "containers", 0, "resources", to={"limits": {"cpu": "2"}}),
    "own preferred pod terms": _set(
        "spec",
        "affinity",
        "podAntiAffinity",
        to={
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"component": "binderhub-build"}},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                },
                {
                    "weight": 7,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"component": "singleuser-server"}},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                },
            ]
        },
    ),
    "daemon set's term": _set(
        "spec",
        "affinity",
        "nodeAffinity",
        to={
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["node-a"]}
                        ]
                    }
                ]
            }
        },
    ),
    "one of Roost's own programs": _set(
        "metadata", "labels", "app.kubernetes.io/part-of", to="roost"
    ),
    "a second container that asks for something": (
        lambda pod: pod["spec"]["containers"].append(
            {"name": "side", "image": TOOLS, "resources": {"requests": {"cpu": "1m"}}}
        )
    ),
    "as large as one holder": _set(
        "spec",
        "containers",
        0,
        to={"name": "notebook", "image": TOOLS, "resources": {"requests": {"memory": "12Gi"}}},
    ),
    "larger than any holder": _set(
        "spec",
        "containers",
        0,
        to={"name": "notebook", "image": TOOLS, "resources": {"requests": {"memory": "60Gi"}}},
    ),
    "a GPU": _set(
        "spec",
        "containers",
        0,
        "resources",
        to={"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}},
    ),
    "an init container that asks for much": _set(
        "spec",
        "initContainers",
        to=[
            {
                "name": "load",
                "image": TOOLS,
                "resources": {"requests": {"cpu": "6", "memory": "1Gi"}},
            }
        ],
    ),
    "another repository": _set(
        "metadata", "annotations", "binder-repo", to="https://github.com/benchmark-org/other"
    ),
    "in a strange namespace": _set("metadata", "namespace", to="elsewhere"),
}


def _review(pod: JSONObject, number: int) -> JSONObject:
    pod = copy.deepcopy(pod)
    # What the API server fills in before webhooks.
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    namespace = pod["metadata"].setdefault("namespace", NAMESPACE)
    pod["spec"].setdefault("schedulerName", "default-scheduler")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": namespace,
            "name": pod["metadata"].get("name", ""),
            "object": pod,
            "userInfo": {"username": "benchmark"},
        },
    }


def main(_argv: Sequence[str] = ()) -> int:
    """Print the differences."""
    found = differences()
    print(
        "\n".join(found)
        or "equal: the Go webhook and Roost make the same pods,"
        " and degrade gates for the same reasons"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
