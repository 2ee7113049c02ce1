"""Of a pod that no scheduler has bound: what each node lacks for it, what Roost has to do with it,
what would help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from roost_core.objects.requests import CPU, MEMORY, PODS
from roost_lab.pages.phrases import plural, show_bytes, show_time
from roost_lab.recorder.answers.pod_story import PodStory, Row
from roost_lab.recorder.recording.shortfalls import CORDON, GATE, LABEL, OTHER, ROOM, TAINT
from roost_lab.recorder.store.records import DecisionKind, Phase

MAX_NODES: Final = 8
_MAX_NAMES: Final = 4
_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
# What a lack is called in a sentence about a node ...
_OF_A_NODE: Final[Mapping[str, str]] = {
    CORDON: "is cordoned",
    TAINT: "has the taint {taint}, which the pod does not tolerate",
    GATE: "is still pulling an image of the pod, so the image gate keeps it off",
    LABEL: "lacks what the pod requires: {needs}",
    OTHER: "{why}",
}
# ... and where nodes are counted.
_OF_NODES: Final[Mapping[str, str]] = {
    CORDON: "cordoned",
    TAINT: "with a taint",
    GATE: "pulling its image",
    LABEL: "with other labels",
    OTHER: "otherwise",
}
# What would help with nodes that lack one kind of thing only, and not room: a code and a sentence.
# "": nothing.
_FITS: Final = (
    "Nothing that is known keeps it off {names}: its next attempt may succeed. If not, look at what"
    " the scheduler says: it knows of volumes and devices, too."
)
_HELP: Final[Mapping[str, tuple[str, str]]] = {
    "": ("fits", _FITS),
    GATE: ("gate", "{names} will take it when the image is there, or when the gate opens: wait."),
    CORDON: ("cordoned", "{names} would take it, but is cordoned: kubectl uncordon {node}"),
    TAINT: ("taint", "{names} would take it if it tolerated {lacks}."),
    LABEL: ("label", "{names} would take it if it did not require {lacks}."),
    OTHER: ("other", "{names} would take it but for: {lacks}."),
}
_HELP_NOT_READY: Final = (
    "not-ready",
    "{names} would take it when ready: kubectl describe node {node}",
)
# The field by which lacks of one kind are told apart.
_LACK_FIELD: Final[Mapping[str, str]] = {TAINT: "taint", LABEL: "needs", OTHER: "why"}
_IN_PLAIN_WORDS: Final[Mapping[str, str]] = {
    "volume node affinity conflict": (
        "A volume of it can only be used in another zone than the nodes with room: add a "
        "node in the volume's zone (kubectl get pv)."
    ),
    "unbound immediate PersistentVolumeClaims": (
        "A volume claim of it is not bound: kubectl describe pvc says why."
    ),
    "cannot allocate all claims": (
        "Devices that it claims are in use, or on no node with room: kubectl get "
        "resourceclaims,resourceslices."
    ),
    "max volume count": "Nodes have as many volumes attached as they can: add a node.",
}
# Advice after which a new node is not what it needs most.
_SOON: Final = frozenset({"fits", "gate", "not-ready"})
_AUTOSCALER_REFUSES: Final = ("NotTriggerScaleUp", "FailedScaleUp", "FailedScheduling")


def _requests(pod: Row) -> tuple[tuple[str, int], ...]:
    return (CPU, pod["cpu_millicores"]), (MEMORY, pod["memory_bytes"])


# Node by node


def node_lines(story: PodStory) -> Iterator[str]:
    """A line for each node; nodes that lack the same, after the first ones, in one."""
    waiting = story.waiting
    if waiting is None or not waiting["nodes"]:
        return
    nodes = waiting["nodes"]
    requests = [_amount(resource, amount) for resource, amount in _requests(story.pod) if amount]
    asks = f"it asks {' and '.join(requests) or 'for nothing'}"
    yield f"Node by node at its last attempt, {show_time(waiting['at_us'])} ({asks}):"
    for row in nodes[:MAX_NODES]:
        lacks = "; ".join(_lack_words(lack) for lack in row["lacks"]) or "it would fit"
        yield f"  {row['node_name']}: {lacks}{_stood(row)}"
    hidden = waiting["number"] - MAX_NODES
    if hidden > 0:
        reasons: Counter[str] = Counter()
        for row in nodes[MAX_NODES:]:
            reasons.update({_lack_kind(lack) for lack in row["lacks"]})
        most = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
        in_brackets = f" ({most})" if most else ""
        yield f"  and {hidden} more{in_brackets}."


def _amount(resource: str, amount: int) -> str:
    """An amount of a resource for people: 1.5 CPU, 2 GiB, 1 nvidia.com/gpu."""
    if resource == CPU:
        return f"{amount / 1000:g} CPU"
    return show_bytes(amount) if is_in_bytes(resource) else f"{amount} {resource}"


def is_in_bytes(resource: str) -> bool:
    """Whether amounts of a resource are bytes."""
    return resource in (MEMORY, "ephemeral-storage") or resource.startswith("hugepages-")


def _is_not_ready(lack: Row) -> bool:
    return lack["kind"] == TAINT and str(lack["taint"]).startswith(_NOT_READY)


def _lack_words(lack: Row) -> str:
    if _is_not_ready(lack):
        return "is not ready"
    return _room_words(lack) if lack["kind"] == ROOM else _OF_A_NODE[lack["kind"]].format(**lack)


def _room_words(lack: Row) -> str:
    resource = lack["resource"]
    if resource == PODS:
        return f"runs as many pods as it may ({lack['has']})"
    asks = _amount(resource, lack["asks"])
    has = _amount(resource, lack["has"])
    if lack["asks"] > lack["has"]:
        return f"is too small: asks {asks}, the whole node has {has}"
    return f"asks {asks}, free {_amount(resource, max(0, lack['free']))} of {has}"


def _lack_kind(lack: Row) -> str:
    if _is_not_ready(lack):
        return "not ready"
    if lack["kind"] == ROOM:
        return f"without room for its {lack['resource']}"
    return _OF_NODES[lack["kind"]]


def _stood(row: Row) -> str:
    """What a node had then."""
    pods = ", ".join(
        plural(row[f"{kind}s"], kind)
        for kind in ("user", "placeholder", "build")
        if row[f"{kind}s"]
    )
    image = "has the image" if row["has_image"] else "lacks the image"
    return f" ({pods}, {image})" if pods else f" ({image})"


# Roost's part in it


def rules(story: PodStory) -> list[str]:
    """Which of Roost's rules keep it from nodes, in sentences."""
    if story.waiting is None:
        return []
    nodes = story.waiting["nodes"]
    sentences = []
    gated = [row for row in nodes if GATE in {lack["kind"] for lack in row["lacks"]}]
    if gated:
        sentences.append(
            f"The image gate keeps it off {names_of(gated)}, still pulling its image. It opens such"
            " a node once the image is there, or when the pod has waited for nothing else for a"
            " while (imageGate.openAfterSeconds)."
        )
    else:
        sentences.append("The image gate keeps it off no node.")
    if story.pod["pod_class"] == "placeholder":
        return sentences
    holders = [row for row in nodes if row["placeholders"]]
    placeholders = sum(row["placeholders"] for row in holders)
    nominated = story.of_kind(DecisionKind.NOMINATE)
    if nominated:
        sentences.append(
            "Placeholders, or other pods of lower priority, make room for it on"
            f" {nominated[-1]['node_name']}."
        )
    elif holders:
        sentences.append(
            f"{plural(placeholders, 'placeholder')} on {names_of(holders)} did not make room for"
            " it: what they hold is too little, or the pod may not use these nodes, or its"
            " priority is not above theirs."
        )
    elif story.waiting["number"] == len(nodes):
        sentences.append("No placeholder is there to make room for it.")
    sentences.append("Warm set, home and marks only rank nodes: they keep it off none.")
    return sentences


# What would help


def advise(story: PodStory) -> list[tuple[str, str]]:
    """Next steps, the most useful first: a stable word for programs, and a sentence."""
    if story.gates and story.at(Phase.UNGATED) is None:
        named = ", ".join(gate for gate in story.gates if gate)
        return [("scheduling-gate", f"Whatever set its scheduling gate must remove it: {named}.")]
    failures = story.of_kind(DecisionKind.FAIL)
    if not failures and story.waiting is None:
        scheduler = story.pod["scheduler"] or "its scheduler"
        text = (
            f"No scheduler is known to have tried it. Does {scheduler} run? While it does, it"
            " renews its Lease: kubectl get leases --all-namespaces"
        )
        return [("no-attempt", text)]
    nodes: Sequence[Row] = story.waiting["nodes"] if story.waiting is not None else ()
    too_large = list(_too_large(story, nodes))
    if too_large:
        return [*too_large, _autoscaler_says(story)]
    soon = list(_of_nodes(nodes))
    volumes = list(_of_reasons(failures))
    if volumes or any(code in _SOON for code, _ in soon):
        advice = [*volumes, *soon]
        if story.autoscaler:
            advice.append(_autoscaler_says(story))
        return advice
    return [*soon, *_room(nodes), _autoscaler_says(story)]


def _too_large(story: PodStory, nodes: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Resources of which no node has as much, all pods away."""
    asked = dict(_requests(story.pod))
    asked |= {
        lack["resource"]: lack["asks"]
        for row in nodes
        for lack in row["lacks"]
        if lack["kind"] == ROOM and lack["resource"] != PODS
    }
    if story.nodes:
        for resource, asks in asked.items():
            has = max(node["allocatable"].get(resource, 0) for node in story.nodes)
            if asks > has:
                text = (
                    f"It asks {_amount(resource, asks)}, the largest node has"
                    f" {_amount(resource, has)}: ask for less (the hub's or the profile's"
                    " guarantee), or add larger nodes."
                )
                yield "too-large", text


def _of_nodes(nodes: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Nodes that lack one kind of thing only, and not room; those that lack the same together."""
    for kind, of_kind in _HELP.items():
        # "" is the kind of nodes that lack nothing.
        only_kind = {kind} if kind else set()
        alike: dict[str, list[Row]] = {}
        for row in nodes:
            if {lack["kind"] for lack in row["lacks"]} == only_kind:
                lacks = ""
                if kind in _LACK_FIELD:
                    lacks = ", ".join(lack[_LACK_FIELD[kind]] for lack in row["lacks"])
                alike.setdefault(lacks, []).append(row)
        for lacks, rows in alike.items():
            code, text = of_kind
            if kind == TAINT and lacks.startswith(_NOT_READY):
                code, text = _HELP_NOT_READY
            yield code, text.format(names=names_of(rows), node=rows[0]["node_name"], lacks=lacks)


def _of_reasons(failures: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """What the model doesn't know, from the scheduler's own message."""
    last = max(failures, key=lambda row: int(row["last_us"]), default=None)
    for text, words in _IN_PLAIN_WORDS.items():
        if last is not None and text in last["message"] + last["reasons"]:
            yield "volume", words


def _room(nodes: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """How much the node lacks that lacks nothing but room, and least of it."""

    def distance(row: Row) -> tuple[int, float]:
        shares = [
            (lack["asks"] - (lack["free"] or 0)) / max(1, lack["asks"]) for lack in row["lacks"]
        ]
        return len(shares), sum(shares)

    def is_near(row: Row) -> bool:
        return bool(row["lacks"]) and all(
            lack["kind"] == ROOM and lack["asks"] <= lack["has"] for lack in row["lacks"]
        )

    nearest = min((row for row in nodes if is_near(row)), key=distance, default=None)
    if nearest is None:
        return
    lacking = " and ".join(
        _amount(lack["resource"], lack["asks"] - lack["free"])
        for lack in nearest["lacks"]
        if lack["free"] is not None and lack["resource"] != PODS
    )
    if lacking:
        name = nearest["node_name"]
        yield "room", f"It needs a new node, or {lacking} more free on {name}, which comes nearest."


def _autoscaler_says(story: PodStory) -> tuple[str, str]:
    last = max(story.autoscaler, key=lambda row: int(row["last_us"]), default=None)
    if last is None:
        silence = (
            "No autoscaler has said anything about it: none runs, or none of its node groups suits."
        )
        return "no-autoscaler", silence
    message = f"{last['reason']}: {last['message']}"
    if last["reason"] in _AUTOSCALER_REFUSES:
        return "autoscaler-refuses", f"The autoscaler adds no node ({message})."
    when = show_time(last["last_us"])
    text = f"An autoscaler acted for it at {when} ({message}): wait for its node."
    return "autoscaler-acts", text


def names_of(nodes: Sequence[Row]) -> str:
    """Names of nodes, the first ones."""
    names = [row["node_name"] for row in nodes]
    if len(names) <= _MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MAX_NAMES - 1])} and {len(names) - _MAX_NAMES + 1} more"
