"""Judge one node: what it holds, which labels, taint and condition that asks for, and what is worth telling."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.contract.actions import ChangeNode, Notice, SetCondition
from roost.controllers.image_gate.facts import (
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
from roost.controllers.image_gate.marks import (
    NO_MARK,
    NO_PULLER_OPENS_SECONDS,
    SENTENCES,
    STUCK_REASONS,
    Absence,
    Mark,
    Opening,
    find_mark,
    is_startup_taint,
)
from roost.controllers.image_gate.pull_faults import describe_fault, find_cause
from roost_core.placement.labels import HELD, OPENED, PULLING, pulled_label
from roost_core.placement.leaving_taints import LEAVING_TAINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost.controllers.contract.snapshot import Moment
    from roost.controllers.image_gate.settings import GateSettings
    from roost_core.placement.pullers import ManagedImage
    from roost_core.scheduler.objects import NodeState, PodState

# Webhooks learn of a new set within a kubelet's refresh of ConfigMaps; until then they may still require an old label.
LEFT_SET_SECONDS: Final = 90.0
# A puller's pod is made within seconds of its node; longer without one is worth telling.
NO_PULLER_SECONDS: Final = 120.0
# For a write to come back by the watch; then it is asked for again.
ECHO_SECONDS: Final = 10.0
# Beside the causes of faults: no pod is there that could pull.
NO_PULLER: Final = "no-puller"
_NOTHING_UNWANTED: Final[Mapping[str, float]] = {}
_NOTHING_CLOSED: Final[frozenset[str]] = frozenset()
_NOTHING_OPENED: Final[Mapping[str, Opening]] = {}
_HELD: Final = Mark(HELD)
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
    # Labels of images whose users keep off while they are pulled; what was opened, by label, and why.
    closed: frozenset[str] = frozenset()
    opened: Mapping[str, Opening] = _NOTHING_OPENED
    # Since when no puller's pod is at an image that the node lacks, by its normalised reference.
    alone: Mapping[str, float] = _NOTHING_UNWANTED
    # It has been Ready since we know it.
    was_heard: bool = False


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
            # "Isn't pulling it" is true without the label, too.
            yield from (
                one.key for one in term.expressions if one.operator != "NotIn" and one.key.startswith(self._prefix)
            )


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
    # A puller's pod can be expected on every node where it may go.
    has_puller: bool
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
        was_heard = self.before is not None and self.before.was_heard
        is_expected = self.is_heard or not was_heard
        ready_since = self._ready_since()
        waiting_since = self._waiting_since(ready_since) if missing else None
        faults = self._faults(missing) if missing else _NO_FAULTS
        unwanted = self._unwanted()
        alone = self._alone(absent)
        marks = self._marks(facts, alone, ready_since)
        change = None if self.node.leaving else self._change(marks, absent, unwanted, ready_since)
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
            # Also one that was never ready, which it will soon be; not one that was and is silent.
            closed=frozenset(label for label, mark in marks.items() if mark.value == PULLING and is_expected)
            or _NOTHING_CLOSED,
            opened=self._opened(marks),
            alone=alone,
            was_heard=self.is_heard or was_heard,
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
            if self.before is None and not fact.holds:
                # We are new here: the puller's pod may know since when the image is awaited.
                fact = found[name] = fact._replace(since=self._waiting_since(self._ready_since()))
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

    def _alone(self, absent: tuple[ManagedImage, ...]) -> Mapping[str, float]:
        """Since when no puller's pod is at an image that is missing."""
        if not self.is_heard or not absent or not self.settings.closes_nodes:
            return _NOTHING_UNWANTED
        known = self.before.alone if self.before is not None else _NOTHING_UNWANTED
        return {
            image.normalised: known.get(image.normalised, self.now.steady)
            for image in absent
            if not any(image.normalised in pod.images for pod in self.evidence)
        }

    def _marks(
        self, facts: Mapping[str, Fact], alone: Mapping[str, float], ready_since: float | None
    ) -> Mapping[str, Mark]:
        """What the labels of the images that belong here should be, by label."""
        if not self.settings.labels_nodes:
            return {}
        labels = self.node.fact.labels
        if not self.is_heard:
            return {image.label: self._mark_before_ready(image, labels.get(image.label)) for image in self.wanted}
        found: dict[str, Mark] = {}
        taint = self.settings.taint_against_pullers(self.node.fact)
        for image in self.wanted:
            fact = facts[image.normalised]
            if fact.holds:
                found[image.label] = _HELD
            elif not self.settings.closes_nodes:
                found[image.label] = NO_MARK
            elif self._is_going():
                # Nobody is bound here. Of a group's last node cluster-autoscaler keeps a copy, labels included, which
                # must not say that it pulls.
                found[image.label] = Mark(OPENED) if labels.get(image.label) == OPENED else NO_MARK
            elif taint is not None:
                found[image.label] = self._mark_under_taint(labels.get(image.label), ready_since)
            else:
                found[image.label] = find_mark(self._absence(image, fact, alone), self.settings.pull_deadline_seconds)
        self.waits += [mark.wait_seconds for mark in found.values() if mark.wait_seconds is not None]
        return found

    def _mark_before_ready(self, image: ManagedImage, label: str | None) -> Mark:
        """Close a new node before anybody can be bound there; what is written on others stays as it is."""
        is_new = self.before is None or not self.before.was_heard
        if self._is_kept_from_pullers():
            # No puller comes. The taint may be one of the start that we don't know, which Karpenter looks past
            # (a NodePool's startupTaints): a user whom it means the node for would count as kept off by the gate.
            return NO_MARK if is_new and label == PULLING else Mark(label)
        if (
            label is None
            and is_new
            and self.settings.closes_nodes
            and self.of.has_puller
            and not self.node.leaving
            and not any(spelling in self.node.images for spelling in image.spellings)
        ):
            return Mark(PULLING)
        return Mark(label)

    def _is_going(self) -> bool:
        """Tell whether somebody drains the node, or says that it goes or may go."""
        fact = self.node.fact
        return fact.unschedulable or any(taint.key in LEAVING_TAINTS for taint in fact.taints)

    def _is_kept_from_pullers(self) -> bool:
        """Tell whether a taint keeps the puller away that isn't known to go by itself."""
        fact = self.node.fact
        lasting = tuple(taint for taint in fact.taints if not is_startup_taint(taint))
        return self.settings.taint_against_pullers(replace(fact, taints=lasting)) is not None

    def _mark_under_taint(self, label: str | None, ready_since: float | None) -> Mark:
        """Keep a node closed for as long as a taint of its start keeps everybody away: it goes without warning."""
        if self._is_kept_from_pullers() or not self.of.has_puller:
            return NO_MARK
        if label == OPENED:
            return Mark(OPENED)
        ready_seconds = 0.0 if ready_since is None else self.now.steady - ready_since
        rest = NO_PULLER_OPENS_SECONDS - ready_seconds
        return Mark(PULLING, None, rest) if rest > 0 else NO_MARK

    def _absence(self, image: ManagedImage, fact: Fact, alone: Mapping[str, float]) -> Absence:
        name = image.normalised
        faults = [pod.faults[name] for pod in self.evidence if name in pod.faults]
        return Absence(
            label=self.node.fact.labels.get(image.label),
            is_coming=any(pod.still_brings(name) for pod in self.evidence),
            is_stuck=bool(faults) and all(fault.reason in STUCK_REASONS for fault in faults),
            was_brought=any(name in pod.images for pod in self.evidence),
            is_expected=self.of.has_puller,
            missing_seconds=self.now.steady - fact.since,
            alone_seconds=self.now.steady - alone.get(name, self.now.steady),
        )

    def _opened(self, marks: Mapping[str, Mark]) -> Mapping[str, Opening]:
        """Why each open label was opened."""
        if not any(mark.value == OPENED for mark in marks.values()):
            return _NOTHING_OPENED
        known = self.before.opened if self.before is not None else _NOTHING_OPENED
        return {
            label: mark.why or known.get(label, Opening.EARLIER)
            for label, mark in marks.items()
            if mark.value == OPENED
        }

    def _change(
        self,
        marks: Mapping[str, Mark],
        absent: tuple[ManagedImage, ...],
        unwanted: Mapping[str, float],
        ready_since: float | None,
    ) -> ChangeNode | None:
        labels = self.node.fact.labels
        come = [label for label, mark in marks.items() if mark.value == HELD != labels.get(label)]
        closed = [label for label, mark in marks.items() if mark.value == PULLING != labels.get(label)]
        opened = [label for label, mark in marks.items() if mark.value == OPENED != labels.get(label)]
        left = [label for label, mark in marks.items() if labels.get(label) == HELD != mark.value]
        unmarked = [label for label, mark in marks.items() if mark.value is None and label in labels]
        out_of_set = [label for label, since in unwanted.items() if self._may_go(label, since)]
        lifted_because = self._lift_taint(absent, ready_since)
        if not (come or closed or opened or unmarked or out_of_set or lifted_because):
            return None
        no_longer = len(unmarked) - len([label for label in unmarked if label in left])
        why = [
            lifted_because or (_count(len(come), "image is there", "images are there") if come else ""),
            _count(len(left), "image left the node", "images left the node") if left else "",
            _count(len(closed), "image is being pulled", "images are being pulled") if closed else "",
            *(self._why_opened(label, marks[label]) for label in opened),
            _count(no_longer, "image is awaited no more", "images are awaited no more") if no_longer else "",
            _count(len(out_of_set), "image doesn't belong here", "images don't belong here") if out_of_set else "",
        ]
        return ChangeNode(
            node=self.node.name,
            uid=self.node.uid,
            set_labels={
                **dict.fromkeys(come, HELD),
                **dict.fromkeys(closed, PULLING),
                **dict.fromkeys(opened, OPENED),
            },
            remove_labels=frozenset((*unmarked, *out_of_set)),
            remove_taints=frozenset({self.settings.taint_key} if lifted_because else ()),
            why="; ".join(filter(None, why)),
        )

    def _why_opened(self, label: str, mark: Mark) -> str:
        image = next(image.reference for image in self.wanted if image.label == label)
        return describe_opening(image, mark.why or Opening.EARLIER)

    def _may_go(self, label: str, since: float) -> bool:
        """Tell whether a label that doesn't belong here may be taken away."""
        if self.node.fact.labels[label] != HELD:
            return True
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
        deadline = self.settings.pull_deadline_seconds
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


def describe_opening(image: str, why: Opening) -> str:
    """Say that a node is open to users of an image that it lacks."""
    return f"opened to users of {image}, as {SENTENCES[why]}"


def _names(images: tuple[ManagedImage, ...]) -> str:
    return ", ".join(image.reference for image in images)


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
