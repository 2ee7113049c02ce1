"""Judge one node: what it holds, which labels, taint and condition that asks for, and what is worth telling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from controllers.plans.actions import ChangeNode, Notice, SetCondition
from controllers.plans.image_gate_facts import (
    LISTED_IMAGES,
    NO_TOKENS,
    Fact,
    Fault,
    Listing,
    PodEvidence,
    Token,
    look_up,
    seconds_until_doubt,
    weigh,
)
from controllers.plans.image_gate_faults import describe_fault, find_cause
from placement.labels import pulled_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controllers.plans.image_gate_settings import GateSettings, ManagedImage
    from controllers.plans.snapshot import Moment
    from placement.scheduling.objects import NodeState, PodState

# Webhooks learn of a new set within a kubelet's refresh of ConfigMaps; until then they may still require an old label.
LEFT_SET_SECONDS: Final = 90.0
# A puller's pod is made within seconds of its node; longer without one is worth telling.
NO_PULLER_SECONDS: Final = 120.0
# For a write to come back by the watch; then it is asked for again.
ECHO_SECONDS: Final = 10.0
HELD: Final = "true"
# Beside the causes of faults: no pod is there that could pull.
NO_PULLER: Final = "no-puller"
_NOTHING_UNWANTED: Final[Mapping[str, float]] = {}
_NO_FAULTS: Final[Mapping[str, Fault]] = {}


class NodeMemory(NamedTuple):
    """What is remembered of one node. Moments are steady seconds."""

    node: NodeState
    evidence: tuple[PodEvidence, ...]
    # By normalised reference.
    facts: Mapping[str, Fact]
    # What its groups bring, and what of that it lacks; both empty while no puller can come or the node isn't Ready.
    wanted: tuple[ManagedImage, ...]
    missing: tuple[ManagedImage, ...]
    # What it lacks of what belongs here, whether or not anybody can bring it; empty where the gate is off.
    absent: tuple[ManagedImage, ...]
    # Since when something is missing.
    waiting_since: float | None
    # As first read: later jumps of the clock don't move it.
    ready_since: float | None
    # Labels of images that don't belong here, and since when we know.
    unwanted: Mapping[str, float]
    # By normalised reference.
    faults: Mapping[str, Fault]
    # Nothing is left to do here until something changes.
    is_settled: bool


class RequiredLabels:
    """Which labels pending pods require; looked for only when somebody asks."""

    def __init__(self, pods: Iterable[PodState], prefix: str) -> None:
        self._pods = pods
        self._prefix = prefix
        self._found: frozenset[str] | None = None

    def __contains__(self, label: str) -> bool:
        if self._found is None:
            self._found = frozenset(key for pod in self._pods if _is_pending(pod) for key in self._keys(pod))
        return label in self._found

    def _keys(self, pod: PodState) -> Iterable[str]:
        yield from (key for key, _ in pod.spec.node_selector if key.startswith(self._prefix))
        for term in pod.spec.required_node_terms or ():
            yield from (one.key for one in term.expressions if one.key.startswith(self._prefix))


def _is_pending(pod: PodState) -> bool:
    return not pod.node_name and not pod.is_finished and not pod.leaving


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What is the same for all nodes of one plan."""

    settings: GateSettings
    now: Moment
    required: RequiredLabels
    # What was last written, by node.
    conditions: Mapping[str, SetCondition]
    # Sizes that lists gave, by normalised reference; nodes add theirs as they are judged.
    image_bytes: dict[str, int] = field(default_factory=dict)


class Told(NamedTuple):
    """A notice, and what it is about wherever it happens: one word of it from some nodes is enough."""

    subject: tuple[str, str]
    notice: Notice


class Judgement(NamedTuple):
    """One node's share of a plan."""

    memory: NodeMemory
    change: ChangeNode | None
    condition: SetCondition | None
    notices: tuple[Told, ...]
    wake_after_seconds: float | None


def judge_node(
    node: NodeState, evidence: tuple[PodEvidence, ...], before: NodeMemory | None, of: Circumstances
) -> Judgement:
    """Say what a node needs. `before`: what was remembered of this very node, None at the first look."""
    return _Look(node, evidence, before, of).judge()


class _Look:
    """One look at one node."""

    def __init__(
        self, node: NodeState, evidence: tuple[PodEvidence, ...], before: NodeMemory | None, of: Circumstances
    ) -> None:
        self.node = node
        self.evidence = evidence
        self.before = before
        self.of = of
        self.settings = of.settings
        self.now = of.now
        # Seconds after which it should be looked at again.
        self.waits: list[float] = []
        # Only a Ready node's kubelet speaks of now.
        self.is_heard = node.fact.ready and not node.leaving
        self.wanted = of.settings.images_for(node.fact)

    def judge(self) -> Judgement:
        facts = self._facts()
        absent = tuple(
            image for image in self.wanted if image.normalised not in facts or not facts[image.normalised].holds
        )
        is_served = self.is_heard and self.settings.taint_against_pullers(self.node.fact) is None
        missing = absent if is_served else ()
        ready_since = self._ready_since()
        waiting_since = self._waiting_since(ready_since) if missing else None
        faults = self._faults(missing) if missing else _NO_FAULTS
        unwanted = self._unwanted()
        change = None if self.node.leaving else self._change(facts, absent, unwanted, ready_since)
        condition = None if self.node.leaving else self._condition(absent, faults)
        notices = (*self._fault_notices(faults), *self._puller_notices(missing, waiting_since))
        if change is not None or condition is not None:
            self.waits.append(ECHO_SECONDS)
        memory = NodeMemory(
            node=self.node,
            evidence=self.evidence,
            facts=facts,
            wanted=self.wanted if is_served else (),
            missing=missing,
            absent=absent if self.settings.labels_nodes else (),
            waiting_since=waiting_since,
            ready_since=ready_since,
            unwanted=unwanted,
            faults=faults,
            is_settled=not (self.waits or unwanted or notices),
        )
        return Judgement(memory, change, condition, notices, min(self.waits, default=None))

    # What is there

    def _facts(self) -> Mapping[str, Fact]:
        known = self.before.facts if self.before is not None else {}
        if not self.is_heard:
            return known
        labels = self.node.fact.labels
        found: dict[str, Fact] = {}
        for image in self.wanted:
            name = image.normalised
            listing = look_up(self.node, image, self.of.image_bytes.get(name))
            if listing is Listing.YES:
                listed = self.node.images
                self.of.image_bytes[name] = next(listed[one] for one in image.spellings if one in listed)
            elif listing is Listing.SILENT and self._is_refuted(image):
                listing = Listing.NO
            tokens = self._tokens(name)
            is_labelled = labels.get(image.label) == HELD
            fact = found[name] = weigh(known.get(name), listing, tokens, labelled=is_labelled, now=self.now)
            doubt_after = seconds_until_doubt(fact, listing, self.now)
            if doubt_after is not None:
                self.waits.append(doubt_after)
        return found

    def _tokens(self, name: str) -> frozenset[Token]:
        """What the puller's pods here say for an image; nearly always there is one pod."""
        if len(self.evidence) == 1:
            return self.evidence[0].tokens.get(name, NO_TOKENS)
        return NO_TOKENS.union(*(pod.tokens.get(name, NO_TOKENS) for pod in self.evidence))

    def _is_refuted(self, image: ManagedImage) -> bool:
        """Tell whether a kubelet failed to pull this very image, which it tries only where the image isn't."""
        for pod in self.evidence:
            fault = pod.faults.get(image.normalised) if pod.faults else None
            if fault is not None and fault.reference == image.reference:
                return True
        return False

    def _faults(self, missing: tuple[ManagedImage, ...]) -> Mapping[str, Fault]:
        return {
            image.normalised: fault
            for image in missing
            for pod in self.evidence
            if pod.faults and (fault := pod.faults.get(image.normalised)) is not None
        }

    def _ready_since(self) -> float | None:
        if self.before is not None and self.before.ready_since is not None:
            return self.before.ready_since
        if self.node.ready_since is None:
            return None
        return self.now.steady - max(0.0, self.now.wall - self.node.ready_since)

    def _waiting_since(self, ready_since: float | None) -> float:
        if self.before is not None and self.before.waiting_since is not None:
            return self.before.waiting_since
        created = max((pod.pod.created for pod in self.evidence), default=None)
        if created is None or ready_since is None or (self.before is not None and self.before.wanted):
            return self.now.steady
        # We are new here, and the puller's pod knows since when its images are awaited.
        return max(ready_since, self.now.steady - max(0.0, self.now.wall - created))

    # Labels and taint

    def _unwanted(self) -> Mapping[str, float]:
        prefix = self.settings.label_prefix
        ours = [label for label in self.node.fact.labels if label.startswith(prefix)]
        if not ours:
            return _NOTHING_UNWANTED
        belongs = {image.label for image in self.wanted} if self.settings.labels_nodes else set()
        known = self.before.unwanted if self.before is not None else _NOTHING_UNWANTED
        return {label: known.get(label, self.now.steady) for label in ours if label not in belongs}

    def _change(
        self,
        facts: Mapping[str, Fact],
        absent: tuple[ManagedImage, ...],
        unwanted: Mapping[str, float],
        ready_since: float | None,
    ) -> ChangeNode | None:
        labels = self.node.fact.labels
        come, left = [], []
        if self.is_heard and self.settings.labels_nodes:
            for image in self.wanted:
                if facts[image.normalised].holds:
                    if labels.get(image.label) != HELD:
                        come.append(image.label)
                elif image.label in labels:
                    left.append(image.label)
        out_of_set = [label for label, since in unwanted.items() if self._may_go(label, since)]
        lifted_because = self._lift_taint(absent, ready_since)
        if not (come or left or out_of_set or lifted_because):
            return None
        why = [
            lifted_because or (_count(len(come), "image is there", "images are there") if come else ""),
            _count(len(left), "image left the node", "images left the node") if left else "",
            _count(len(out_of_set), "image doesn't belong here", "images don't belong here") if out_of_set else "",
        ]
        return ChangeNode(
            node=self.node.name,
            uid=self.node.uid,
            set_labels=dict.fromkeys(come, HELD),
            remove_labels=frozenset((*left, *out_of_set)),
            remove_taints=frozenset({self.settings.taint_key} if lifted_because else ()),
            why="; ".join(filter(None, why)),
        )

    def _may_go(self, label: str, since: float) -> bool:
        """Tell whether a label that doesn't belong here may be taken away."""
        rest = since + LEFT_SET_SECONDS - self.now.steady
        if rest > 0:
            self.waits.append(rest)
            return False
        return label not in self.of.required or (self.is_heard and self._is_disproved(label))

    def _is_disproved(self, label: str) -> bool:
        """Tell whether the node's whole list holds no image of that label, whatever the image is called."""
        listed = self.node.images
        if not listed or (self.node.image_count or len(listed)) >= LISTED_IMAGES:
            return False
        return all(pulled_label(self.settings.release, self.settings.namespace, name) != label for name in listed)

    def _lift_taint(self, absent: tuple[ManagedImage, ...], ready_since: float | None) -> str:
        """Why the startup taint goes now; "": it stays, or isn't there."""
        if all(taint.key != self.settings.taint_key for taint in self.node.fact.taints):
            return ""
        if not self.settings.labels_nodes:
            return "the image gate is off"
        if not self.wanted:
            return "no image belongs on this node"
        if not self.is_heard:
            return ""
        if not absent:
            return _count(len(self.wanted), "image is there", "images are there")
        deadline = self.settings.startup_taint_deadline_seconds
        rest = deadline - (self.now.steady - ready_since if ready_since is not None else 0.0)
        if rest > 0:
            self.waits.append(rest)
            return ""
        taint = self.settings.taint_against_pullers(self.node.fact)
        kept_away = f", as taint {taint.key} keeps the puller away" if taint is not None else ""
        return f"its deadline of {deadline} s has passed, and it still lacks {_names(absent)}{kept_away}"

    # What is told

    def _condition(self, absent: tuple[ManagedImage, ...], faults: Mapping[str, Fault]) -> SetCondition | None:
        if not self.settings.node_condition:
            return self._stale_condition()
        if not self.is_heard:
            return None
        total = len(self.wanted)
        status, reason = "True", "ImagesPulled"
        message = _count(total, "image is there", "images are there") if total else "no image belongs on this node"
        if absent:
            status, reason = "False", "PullFails" if faults else "ImagesMissing"
            message = f"{total - len(absent)} of {total} images are there; missing: {_names(absent)}"
        is_transition = self.node.conditions.get(self.settings.condition_type) != status
        written = self.of.conditions.get(self.node.name)
        if not is_transition and (written is None or written.uid != self.node.uid or written.message == message):
            return None
        return SetCondition(
            node=self.node.name,
            uid=self.node.uid,
            type=self.settings.condition_type,
            status=status,
            reason=reason,
            message=message,
            is_transition=is_transition,
        )

    def _stale_condition(self) -> SetCondition | None:
        """Take away what was written before the condition was switched off: nobody keeps it true."""
        type_ = self.settings.condition_type
        if type_ not in self.node.conditions:
            return None
        return SetCondition(
            node=self.node.name,
            uid=self.node.uid,
            type=type_,
            status=None,
            reason="SwitchedOff",
            message="imageGate.nodeCondition is off",
        )

    def _fault_notices(self, faults: Mapping[str, Fault]) -> Iterable[Told]:
        told: set[str] = set()
        for pod in self.evidence if faults else ():
            for name, fault in pod.faults.items():
                message = describe_fault(fault, self.node.name, self.settings.mode)
                if name in faults and message not in told:
                    told.add(message)
                    subject = (fault.reference, find_cause(fault).value)
                    yield Told(subject, self._warning("CannotPullImage", message, pod.pod))

    def _puller_notices(self, missing: tuple[ManagedImage, ...], waiting_since: float | None) -> Iterable[Told]:
        if not missing or self.evidence or waiting_since is None:
            return
        rest = waiting_since + NO_PULLER_SECONDS - self.now.steady
        if rest > 0:
            self.waits.append(rest)
            return
        what = _count(len(missing), "image stays missing", "images stay missing")
        fix = "look for pending pods of the puller's DaemonSet, and at its tolerations"
        message = f"No puller pod runs on node {self.node.name}, so {what} there; {fix}."
        yield Told(("", NO_PULLER), self._warning("NoPullerPod", message))

    def _warning(self, reason: str, message: str, pod: PodState | None = None) -> Notice:
        about = ("Node", "", self.node.name, self.node.uid)
        if pod is not None:
            about = ("Pod", pod.namespace, pod.name, pod.uid)
        kind, namespace, name, uid = about
        return Notice(kind=kind, namespace=namespace, name=name, uid=uid, reason=reason, message=message, warning=True)


def _names(images: tuple[ManagedImage, ...]) -> str:
    return ", ".join(image.reference for image in images)


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
