"""Say in a dozen lines what an install creates: what runs, what it requests, which pods it changes
and which rights it gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from generator.faults import count_of, some
from generator.render.manifests import Manifest
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import requested

Object = Mapping[str, Any]

_GIB: Final = 2**30
_MIB: Final = 2**20
_READING: Final = frozenset({"get", "list", "watch"})
# What a DaemonSet's pods request, they request on each node.
_PER_NODE: Final = "DaemonSet"
_RUNS: Final = ("Deployment", "StatefulSet", _PER_NODE)


def summarize(manifests: Sequence[Manifest]) -> str:
    """The lines, each with its end.

    manifests: all objects of one install.
    """
    bodies: list[Object] = [manifest.body for manifest in manifests]
    return "".join(f"{line}\n" for line in _lines(bodies))


def _lines(bodies: Sequence[Object]) -> Iterator[str]:
    namespaces = sorted({_namespace(body) for body in bodies} - {""})
    inside = [body for body in bodies if _namespace(body)]
    cluster_wide = [body for body in bodies if not _namespace(body)]
    if not bodies:
        yield "nothing: these values render no object"
        return
    if inside:
        yield f"{count_of(len(inside), 'object')} in namespace {some(namespaces)}:"
    for body in inside:
        if body["kind"] in _RUNS:
            yield f"  runs     {_program(body)}"
    others = Counter(body["kind"] for body in inside if body["kind"] not in _RUNS)
    if others:
        counts = ", ".join(f"{kind} {number}" for kind, number in sorted(others.items()))
        yield f"  besides  {counts}"
    for role, verbs in _rights(bodies, "Role"):
        yield f"  rights   {role} may {verbs} here"
    if cluster_wide:
        yield f"{count_of(len(cluster_wide), 'object')} for the whole cluster:"
        yield from _cluster_wide(bodies, cluster_wide)
    yield _sum(bodies)


def _namespace(body: Object) -> str:
    return str(body["metadata"].get("namespace", ""))


def _program(body: Object) -> str:
    """One workload: its kind, name, number of pods, and what each requests."""
    spec = body["spec"]
    cpu, memory = _requests(spec["template"]["spec"])
    number = "one on each node" if body["kind"] == _PER_NODE else f"{spec.get('replicas', 1)}"
    return (
        f"{body['kind']} {body['metadata']['name']}: {number},"
        f" each requests {_cpu(cpu)} and {_memory(memory)}"
    )


def _requests(pod: Object) -> tuple[Fraction, Fraction]:
    """CPUs and bytes that a pod's containers request. Init containers need less than the sum."""
    cpu = Fraction(0)
    memory = Fraction(0)
    for container in pod["containers"]:
        requests = requested(container.get("resources", {}))
        cpu += parse_quantity(requests.get("cpu", 0))
        memory += parse_quantity(requests.get("memory", 0))
    return cpu, memory


def _cpu(cpus: Fraction) -> str:
    return f"{float(cpus):g} CPU"


def _memory(size: Fraction) -> str:
    return f"{float(size / _GIB):.3g} GiB" if size >= _GIB else f"{float(size / _MIB):.3g} MiB"


def _rights(bodies: Sequence[Object], kind: str) -> Iterator[tuple[str, str]]:
    """Each role of this kind by its name, with what it allows: its writing verbs one by one, then
    what it reads.

    Reading is one phrase: its resources are many.
    """
    for body in bodies:
        if body["kind"] != kind:
            continue
        parts: list[str] = []
        read: list[str] = []
        for rule in body["rules"]:
            resources = "/".join(rule["resources"])
            names = f" {some(rule['resourceNames'], 2)}" if rule.get("resourceNames") else ""
            writing = [verb for verb in rule["verbs"] if verb not in _READING]
            if writing:
                parts.append(f"{'/'.join(writing)} {resources}{names}")
            if not _READING.isdisjoint(rule["verbs"]) and resources not in read:
                read.append(resources)
        if read:
            parts.append(f"read {', '.join(read)}")
        yield body["metadata"]["name"], "; ".join(parts)


def _cluster_wide(bodies: Sequence[Object], cluster_wide: Sequence[Object]) -> Iterator[str]:
    for body in cluster_wide:
        if body["kind"] == "MutatingWebhookConfiguration":
            yield f"  changes  {_changes(body)}"
    for role, verbs in _rights(bodies, "ClusterRole"):
        yield f"  rights   {role} may {verbs} everywhere"
    rendered = {body["metadata"]["name"] for body in bodies if body["kind"] == "ClusterRole"}
    for body in cluster_wide:
        if body["kind"] == "ClusterRoleBinding" and body["roleRef"]["name"] not in rendered:
            yield f"  rights   {_subject(body)} has Kubernetes' own role {body['roleRef']['name']}"
    limiting = [body for body in cluster_wide if body["kind"] == "ValidatingAdmissionPolicy"]
    if limiting:
        accounts = "admission policies bind Roost's own accounts, and nobody else's"
        yield f"  limits   {len(limiting)} {accounts}"
    changing = [body for body in cluster_wide if body["kind"] == "MutatingAdmissionPolicy"]
    if changing:
        yield f"  changes  pods as they are created, by {len(changing)} MutatingAdmissionPolicies"
    classes = [
        f"{body['metadata']['name']} ({body['value']})"
        for body in cluster_wide
        if body["kind"] == "PriorityClass"
    ]
    if classes:
        yield f"  besides  PriorityClasses {', '.join(classes)}"


def _subject(body: Object) -> str:
    return "/".join(subject["name"] for subject in body.get("subjects", [])) or "nobody"


def _changes(body: Object) -> str:
    """Which pods a webhook changes, and what happens to them without it."""
    entries = body["webhooks"]
    selected = sorted({_labels(entry.get("objectSelector", {})) for entry in entries})
    refuses = any(entry.get("failurePolicy", "Fail") == "Fail" for entry in entries)
    fate = "are refused" if refuses else "start unchanged"
    return f"new pods with {' or '.join(selected)}; without the webhook they {fate}"


def _labels(selector: Object) -> str:
    labels = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    labels += [
        f"{term['key']} {term['operator']} {','.join(term.get('values', []))}".strip()
        for term in selector.get("matchExpressions", [])
    ]
    return " and ".join(labels) or "any labels"


def _sum(bodies: Sequence[Object]) -> str:
    """What all of it requests, placeholders apart: users take their room."""
    cpu, memory = _total(bodies, "Deployment")
    text = f"Programs request {_cpu(cpu)} and {_memory(memory)} in all"
    # Roost has no other StatefulSets than sets of placeholders.
    spare_cpu, spare_memory = _total(bodies, "StatefulSet")
    if spare_cpu or spare_memory:
        text += (
            f"; placeholders {_cpu(spare_cpu)} and {_memory(spare_memory)}, which users take when"
            " they come"
        )
    return f"{text}."


def _total(bodies: Sequence[Object], kind: str) -> tuple[Fraction, Fraction]:
    """CPUs and bytes that all pods of the workloads of a kind request."""
    total_cpu = Fraction(0)
    total_memory = Fraction(0)
    for body in bodies:
        if body["kind"] == kind:
            number = body["spec"].get("replicas", 1)
            cpu, memory = _requests(body["spec"]["template"]["spec"])
            total_cpu += number * cpu
            total_memory += number * memory
    return total_cpu, total_memory
