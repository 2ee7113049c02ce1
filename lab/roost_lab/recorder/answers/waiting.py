"""Of a pod that no scheduler has bound: what each node lacks for it, what Roost has to do with it, what would help."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from roost_lab.pages.phrases import plural, show_bytes, show_plain, show_time
from roost_lab.recorder.recording.shortfalls import CORDON, GATE, LABEL, OTHER, ROOM, TAINT
from roost_lab.recorder.store.records import DecisionKind, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roost_lab.recorder.answers.pod_story import PodStory, Row

CPU: Final = "cpu"
MEMORY: Final = "memory"
# Resources that are counted in bytes.
_IN_BYTES: Final = (MEMORY, "ephemeral-storage")
MAX_NODES: Final = 8
_MAX_NAMES: Final = 4
_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_IN_PLAIN_WORDS: Final[Mapping[str, str]] = {
    "volume node affinity conflict": "a volume of it can only be used in another zone than the nodes with room: add a "
    "node in the volume's zone (kubectl get pv)",
    "unbound immediate PersistentVolumeClaims": "a volume claim of it is not bound: kubectl describe pvc says why",
    "max volume count": "nodes have as many volumes attached as they can: add a node",
}
# Advice after which a new node is not what it needs most.
_SOON: Final = frozenset({"fits", "gate", "not-ready"})
_AUTOSCALER_REFUSES: Final = ("NotTriggerScaleUp", "FailedScaleUp", "FailedScheduling")


@dataclass(frozen=True, slots=True)
class NodeLack:
    """One node, and everything that it lacks for the pod; see recording/shortfalls.py."""

    name: str
    # Empty: the model finds that the pod fits there.
    lacks: Sequence[Mapping[str, Any]]
    # As a row of candidates; None when only the node itself is recorded.
    stood: Row | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What would help."""

    # A stable word for programs.
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Nodes:
    """What the nodes lack, at a time."""

    at_us: int
    # Nodes in all; `each` may have only those that lack least.
    number: int
    each: Sequence[NodeLack]
    # False: from nodes' sizes, taints and cordons alone, since what the scheduler saw is not recorded.
    is_examined: bool


def is_waiting(story: PodStory) -> bool:
    """Whether no scheduler has bound the pod (it may be gone)."""
    return story.bind is None and story.at(Phase.SCHEDULED) is None


def nodes_of(story: PodStory) -> Nodes:
    """What each node lacked at the last failed attempt, those that lacked least first."""
    waiting = story.waiting
    if waiting is not None:
        each = [NodeLack(row["node_name"], row["lacks"], row) for row in waiting["nodes"]]
        return Nodes(waiting["at_us"], waiting["number"], each, is_examined=True)
    each = [one for node in story.nodes if (one := NodeLack(node["name"], _by_size(story.pod, node), None)).lacks]
    each.sort(key=lambda one: (len(one.lacks), one.name))
    at_us = max([story.pod["created_us"], *(row["last_us"] for row in story.decisions)])
    return Nodes(at_us, len(story.nodes), each, is_examined=False)


def _by_size(pod: Row, node: Row) -> list[Mapping[str, Any]]:
    lacks: list[Mapping[str, Any]] = []
    if node["is_unschedulable"]:
        lacks.append({"kind": CORDON})
    if node["is_ready"] is False:
        lacks.append({"kind": TAINT, "taint": f"{_NOT_READY[0]}=:NoSchedule"})
    for resource, asks in ((CPU, pod["cpu_millicores"]), (MEMORY, pod["memory_bytes"])):
        has = node["allocatable"].get(resource)
        if has is not None and asks > has:
            lacks.append({"kind": ROOM, "resource": resource, "asks": asks, "free": None, "has": has})
    return lacks


# Node by node


def node_lines(story: PodStory) -> Iterator[str]:
    """A line for each node; nodes that lack the same, after the first ones, in one."""
    nodes = nodes_of(story)
    if not nodes.each:
        return
    pod = story.pod
    requests = [(CPU, pod["cpu_millicores"]), (MEMORY, pod["memory_bytes"])]
    asks = f"it asks {' and '.join(show_amount(*one) for one in requests if one[1]) or 'for nothing'}"
    if nodes.is_examined:
        yield f"Node by node at its last attempt, {show_time(nodes.at_us)} ({asks}):"
    else:
        yield f"Nodes that it cannot use, by their size and state alone ({asks}; what was free is not recorded):"
    for one in nodes.each[:MAX_NODES]:
        yield f"  {one.name}: {'; '.join(_lack_words(lack) for lack in one.lacks) or 'it would fit'}{_stood(one.stood)}"
    rest = nodes.number - MAX_NODES if nodes.is_examined else len(nodes.each) - MAX_NODES
    if rest > 0:
        reasons = Counter(reason for one in nodes.each[MAX_NODES:] for reason in {_lack_kind(x) for x in one.lacks})
        most = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
        yield f"  and {rest} more{f' ({most})' if most else ''}."


def show_amount(resource: str, amount: int) -> str:
    """An amount of a resource for people: 1.5 CPU, 2 GiB, 1 nvidia.com/gpu."""
    if resource == CPU:
        return f"{amount / 1000:g} CPU"
    return show_bytes(amount) if resource in _IN_BYTES else f"{amount} {show_plain(resource)}"


def _lack_words(lack: Mapping[str, Any]) -> str:
    match lack["kind"]:
        case str(kind) if kind == CORDON:
            return "is cordoned"
        case str(kind) if kind == TAINT and lack["taint"].startswith(_NOT_READY):
            return "is not ready"
        case str(kind) if kind == TAINT:
            return f"has the taint {show_plain(lack['taint'])}, which the pod does not tolerate"
        case str(kind) if kind == GATE:
            return "is still pulling an image of the pod, so the image gate keeps it off"
        case str(kind) if kind == LABEL:
            return f"lacks what the pod requires: {show_plain(lack['needs'])}"
        case str(kind) if kind == ROOM:
            return _room_words(lack)
    return show_plain(str(lack.get("why", lack["kind"])))


def _room_words(lack: Mapping[str, Any]) -> str:
    resource, asks, free, has = (lack[key] for key in ("resource", "asks", "free", "has"))
    if resource == "pods":
        return f"runs as many pods as it may ({has})"
    if asks > has:
        return f"is too small: asks {show_amount(resource, asks)}, the whole node has {show_amount(resource, has)}"
    left = show_amount(resource, max(0, free))
    return f"asks {show_amount(resource, asks)}, free {left} of {show_amount(resource, has)}"


def _lack_kind(lack: Mapping[str, Any]) -> str:
    if lack["kind"] == ROOM:
        return f"without room for its {lack['resource']}"
    if lack["kind"] == TAINT:
        return "not ready" if lack["taint"].startswith(_NOT_READY) else "with a taint"
    return {CORDON: "cordoned", GATE: "pulling its image", LABEL: "with other labels"}.get(lack["kind"], "otherwise")


def _stood(row: Row | None) -> str:
    if row is None:
        return ""
    pods = ", ".join(plural(row[f"{kind}s"], kind) for kind in ("user", "placeholder", "build") if row[f"{kind}s"])
    return f" ({f'{pods}, ' if pods else ''}{'has' if row['has_image'] else 'lacks'} the image)"


# Roost's part in it


def rules(story: PodStory) -> list[str]:
    """Which of Roost's rules keep it from nodes, in sentences."""
    nodes = nodes_of(story)
    if not nodes.is_examined:
        return []
    found = []
    gated = [one for one in nodes.each if any(lack["kind"] == GATE for lack in one.lacks)]
    if gated:
        found.append(
            f"The image gate keeps it off {names_of(gated)}, still pulling its image. It opens such a node once the "
            "image is there, or when the pod has waited for nothing else for a while (imageGate.openAfterSeconds)."
        )
    else:
        found.append("The image gate keeps it off no node.")
    if story.pod["pod_class"] == "placeholder":
        return found
    placeholders = sum(one.stood["placeholders"] for one in nodes.each if one.stood is not None)
    holders = [one for one in nodes.each if one.stood is not None and one.stood["placeholders"]]
    nominated = [row["node_name"] for row in story.decisions if row["kind"] == DecisionKind.NOMINATE]
    if nominated:
        found.append(f"Placeholders, or other pods of lower priority, make room for it on {nominated[-1]}.")
    elif placeholders:
        found.append(
            f"{plural(placeholders, 'placeholder')} on {names_of(holders)} did not make room for it: what they hold is "
            "too little, or the pod may not use these nodes, or its priority is not above theirs."
        )
    elif nodes.number == len(nodes.each):
        found.append("No placeholder is there to make room for it.")
    found.append("Warm set, home and marks only rank nodes: they keep it off none.")
    return found


# What would help


def advise(story: PodStory) -> list[Advice]:
    """Next steps, the most useful first."""
    pod = story.pod
    gates = sorted({row["detail"] for row in story.phases if row["phase"] == Phase.GATED})
    if gates and story.at(Phase.UNGATED) is None:
        named = show_plain(", ".join(filter(None, gates)))
        return [Advice("scheduling-gate", f"Whatever set its scheduling gate must remove it: {named}.")]
    failures = [row for row in story.decisions if row["kind"] == DecisionKind.FAIL]
    if not failures and story.waiting is None:
        scheduler = show_plain(pod["scheduler"]) or "its scheduler"
        return [
            Advice(
                "no-attempt",
                f"No scheduler is known to have tried it. Does {scheduler} run? While it does, it renews its Lease: "
                "kubectl get leases --all-namespaces",
            )
        ]
    nodes = nodes_of(story)
    too_large = list(_too_large(story, nodes))
    if too_large:
        return [*too_large, *_autoscaler_says(story)]
    soon = list(_of_nodes(nodes))
    volumes = list(_of_reasons(failures))
    if volumes or any(one.code in _SOON for one in soon):
        return [*volumes, *soon, *(_autoscaler_says(story) if story.autoscaler else ())]
    return [*soon, *_room(nodes), *_autoscaler_says(story)]


def _too_large(story: PodStory, nodes: Nodes) -> Iterator[Advice]:
    """Resources of which no node has as much, all pods away."""
    pod = story.pod
    asked = {CPU: pod["cpu_millicores"], MEMORY: pod["memory_bytes"]}
    most = {
        resource: max((node["allocatable"].get(resource, 0) for node in story.nodes), default=None)
        for resource in asked
    }
    for one in nodes.each:
        for lack in one.lacks:
            if lack["kind"] == ROOM and lack["resource"] not in (CPU, MEMORY, "pods"):
                asked[lack["resource"]] = lack["asks"]
    if nodes.is_examined and len(nodes.each) == nodes.number:
        for resource in asked.keys() - most.keys():
            every = [_lack_of(one, resource) for one in nodes.each]
            # A node that doesn't lack it has it.
            most[resource] = None if None in every else max((lack["has"] for lack in every if lack), default=None)
    for resource, asks in asked.items():
        has = most.get(resource)
        if has is not None and asks > has:
            yield Advice(
                "too-large",
                f"It asks {show_amount(resource, asks)}, the largest node has {show_amount(resource, has)}: ask for "
                "less (the hub's or the profile's guarantee), or add larger nodes.",
            )


def _lack_of(one: NodeLack, resource: str) -> Mapping[str, Any] | None:
    return next((lack for lack in one.lacks if lack["kind"] == ROOM and lack["resource"] == resource), None)


def _of_nodes(nodes: Nodes) -> Iterator[Advice]:
    """Nodes that lack one kind of thing only, and not room."""
    if not nodes.is_examined:
        return

    def only(kind: str) -> list[NodeLack]:
        return [one for one in nodes.each if one.lacks and {lack["kind"] for lack in one.lacks} == {kind}]

    if fitting := [one for one in nodes.each if not one.lacks]:
        yield Advice(
            "fits",
            f"Nothing that is known keeps it off {names_of(fitting)}: its next attempt may succeed. If not, look at "
            "what the scheduler says: it knows of volumes and devices, too.",
        )
    if gated := only(GATE):
        yield Advice("gate", f"{names_of(gated)} will take it when the image is there, or when the gate opens: wait.")
    if cordoned := only(CORDON):
        node = show_plain(cordoned[0].name)
        yield Advice("cordoned", f"{names_of(cordoned)} would take it, but is cordoned: kubectl uncordon {node}")
    by_taint: dict[str, list[NodeLack]] = {}
    for one in only(TAINT):
        by_taint.setdefault(", ".join(lack["taint"] for lack in one.lacks), []).append(one)
    for taints, those in by_taint.items():
        if taints.startswith(_NOT_READY):
            node = show_plain(those[0].name)
            yield Advice("not-ready", f"{names_of(those)} would take it when ready: kubectl describe node {node}")
        else:
            yield Advice("taint", f"{names_of(those)} would take it if it tolerated {show_plain(taints)}.")
    by_label: dict[str, list[NodeLack]] = {}
    for one in only(LABEL):
        by_label.setdefault(", ".join(lack["needs"] for lack in one.lacks), []).append(one)
    for needs, those in by_label.items():
        yield Advice("label", f"{names_of(those)} would take it if it did not require {show_plain(needs)}.")
    by_why: dict[str, list[NodeLack]] = {}
    for one in only(OTHER):
        by_why.setdefault(", ".join(lack["why"] for lack in one.lacks), []).append(one)
    for why, those in by_why.items():
        yield Advice("other", f"{names_of(those)} would take it but for: {show_plain(why)}.")


def _of_reasons(failures: Sequence[Row]) -> Iterator[Advice]:
    """What the model doesn't know, from the scheduler's own message."""
    last = max(failures, key=lambda row: int(row["last_us"]), default=None)
    for text, words in _IN_PLAIN_WORDS.items():
        if last is not None and text in last["message"] + last["reasons"]:
            yield Advice("volume", f"{words[0].upper()}{words[1:]}.")


def _room(nodes: Nodes) -> Iterator[Advice]:
    without_room = [
        one
        for one in nodes.each
        if one.lacks and all(lack["kind"] == ROOM and lack["asks"] <= lack["has"] for lack in one.lacks)
    ]
    if without_room:
        nearest = min(without_room, key=_distance)
        lacking = " and ".join(
            show_amount(lack["resource"], lack["asks"] - lack["free"])
            for lack in nearest.lacks
            if lack["free"] is not None and lack["resource"] != "pods"
        )
        if lacking:
            node = show_plain(nearest.name)
            yield Advice("room", f"It needs a new node, or {lacking} more free on {node}, which comes nearest.")


def _distance(one: NodeLack) -> tuple[int, float]:
    short = [(lack["asks"] - (lack["free"] or 0)) / max(1, lack["asks"]) for lack in one.lacks]
    return len(short), sum(short)


def _autoscaler_says(story: PodStory) -> Iterator[Advice]:
    if not story.autoscaler:
        yield Advice(
            "no-autoscaler", "No autoscaler has said anything about it: none runs, or none of its node groups suits."
        )
        return
    last = max(story.autoscaler, key=lambda row: int(row["last_us"]))
    message = f"{show_plain(last['reason'])}: {show_plain(last['message'])}"
    if last["reason"] in _AUTOSCALER_REFUSES:
        yield Advice("autoscaler-refuses", f"The autoscaler adds no node ({message}).")
    else:
        when = show_time(last["last_us"])
        yield Advice("autoscaler-acts", f"An autoscaler acted for it at {when} ({message}): wait for its node.")


def names_of(nodes: Sequence[NodeLack]) -> str:
    """Names of nodes, the first ones."""
    names = [show_plain(one.name) for one in nodes]
    if len(names) <= _MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MAX_NAMES - 1])} and {len(names) - _MAX_NAMES + 1} more"
