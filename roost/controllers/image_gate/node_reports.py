"""Report a node's state to people: its condition, and Events about images that can't be pulled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.contract.actions import Notice, SetCondition
from roost.controllers.image_gate.node_view import count_any, join_references
from roost.controllers.image_gate.pull_causes import describe_fault, find_cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost.controllers.image_gate.facts import Fault
    from roost.controllers.image_gate.node_view import NodeView
    from roost_core.release.pullers import ManagedImage

# A puller's pod is created within seconds of its node; longer without one is worth an Event.
NO_PULLER_SECONDS: Final = 120.0
# In place of a fault's cause: the node has no puller's pod.
NO_PULLER: Final = "no-puller"


class NodeNotice(NamedTuple):
    """A notice and its subject, equal on all nodes where the same happens: a few nodes' notices are enough."""

    subject: tuple[str, str]
    notice: Notice


def plan_condition(
    view: NodeView, absent: tuple[ManagedImage, ...], faults: Mapping[str, Fault]
) -> SetCondition | None:
    """Return the condition to write; None if the node has it already."""
    type_ = view.settings.condition_type
    if not view.settings.node_condition:
        if type_ not in view.node.conditions:
            return None
        # It was written before the condition was switched off, and nothing would update it.
        return SetCondition(
            node=view.node.name,
            uid=view.node.uid,
            type=type_,
            status=None,
            reason="SwitchedOff",
            message="imageGate.nodeCondition is off",
        )
    if not view.is_reporting:
        return None
    total = len(view.wanted)
    status, reason = "True", "ImagesPulled"
    message = count_any(view.wanted, "image is on the node", "images are on the node") or "no image is needed here"
    if absent:
        status, reason = "False", "PullFails" if faults else "ImagesMissing"
        message = f"{total - len(absent)} of {total} images are on the node; missing: {join_references(absent)}"
    is_transition = view.node.conditions.get(type_) != status
    written = view.context.conditions.get(view.node.name)
    if not is_transition and (written is None or written.uid != view.node.uid or written.message == message):
        return None
    return SetCondition(
        node=view.node.name,
        uid=view.node.uid,
        type=type_,
        status=status,
        reason=reason,
        message=message,
        is_transition=is_transition,
    )


def fault_notices(view: NodeView, faults: Mapping[str, Fault]) -> Iterable[NodeNotice]:
    """Yield a warning for each pull that fails on the node. faults: those of missing images."""
    reported: set[str] = set()
    for pod in view.evidence if faults else ():
        for name, fault in pod.faults.items():
            message = describe_fault(fault, view.node.name, view.settings.mode)
            if name in faults and message not in reported:
                reported.add(message)
                subject = (fault.reference, find_cause(fault).value)
                yield NodeNotice(subject, Notice.on_pod(pod.pod, "CannotPullImage", message, warning=True))


def puller_notices(
    view: NodeView, missing: tuple[ManagedImage, ...], waiting_since: float | None
) -> Iterable[NodeNotice]:
    """Yield a warning if the node has lacked images for some time and no puller's pod runs there."""
    if not missing or view.evidence or waiting_since is None:
        return
    seconds_left = waiting_since + NO_PULLER_SECONDS - view.now.steady
    if seconds_left > 0:
        view.waits.append(seconds_left)
        return
    effect = count_any(missing, "image stays missing", "images stay missing")
    fix = "look for pending pods of the puller's DaemonSet, and at its tolerations"
    message = f"No puller pod runs on node {view.node.name}, so {effect} there; {fix}."
    notice = Notice.on_node(view.node.name, view.node.uid, "NoPullerPod", message, warning=True)
    yield NodeNotice(("", NO_PULLER), notice)
