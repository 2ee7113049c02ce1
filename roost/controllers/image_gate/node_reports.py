"""Report a node's state to people: its condition, and Events about images that can't be pulled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from roost.controllers.contract.actions import Notice, SetCondition
from roost.controllers.image_gate.facts import PullFault
from roost.controllers.image_gate.node_share import NodeShare, count_any, join_references
from roost.controllers.image_gate.pull_fault_texts import describe_fault, find_cause
from roost_core.release.image_gate import ManagedImage

# A puller's pod is created within seconds of its node; longer without one is worth an Event.
NO_PULLER_SECONDS: Final = 120.0
# In place of a fault's cause: the node has no puller's pod.
NO_PULLER: Final = "no-puller"


def plan_condition(
    share: NodeShare, absent: tuple[ManagedImage, ...], faults: Mapping[str, PullFault]
) -> SetCondition | None:
    """Return the condition to write; None if the node has it already."""
    type_ = share.settings.condition_type
    set_condition = partial(SetCondition, node=share.node.name, uid=share.node.uid, type=type_)
    if not share.settings.node_condition:
        if type_ not in share.node.conditions:
            return None
        # It was written before the condition was switched off, and nothing would update it.
        return set_condition(status=None, reason="SwitchedOff", message="imageGate.nodeCondition is off")
    if not share.is_reporting:
        return None
    total = len(share.wanted)
    status, reason = "True", "ImagesPulled"
    message = count_any(share.wanted, "image is on the node", "images are on the node") or "no image is needed here"
    if absent:
        status, reason = "False", "PullFails" if faults else "ImagesMissing"
        message = f"{total - len(absent)} of {total} images are on the node; missing: {join_references(absent)}"
    is_transition = share.node.conditions.get(type_) != status
    written = share.context.conditions.get(share.node.name)
    if not is_transition and (written is None or written.uid != share.node.uid or written.message == message):
        return None
    return set_condition(status=status, reason=reason, message=message, is_transition=is_transition)


def tell_of_faults(share: NodeShare, faults: Mapping[str, PullFault]) -> None:
    """Warn of each pull that fails on the node. faults: those of missing images."""
    reported: set[str] = set()
    for pod in share.evidence if faults else ():
        for name, fault in pod.faults.items():
            message = describe_fault(fault, share.node.name, share.settings.mode)
            if name in faults and message not in reported:
                reported.add(message)
                subject = (fault.reference, find_cause(fault).value)
                notice = Notice.on_pod(pod.pod, "CannotPullImage", message, warning=True)
                share.notices.append((subject, notice))


def tell_of_no_puller(share: NodeShare, missing: tuple[ManagedImage, ...], waiting_since: float | None) -> None:
    """Warn if the node has lacked images for some time and no puller's pod runs there."""
    if not missing or share.evidence or waiting_since is None:
        return
    seconds_left = waiting_since + NO_PULLER_SECONDS - share.now.steady
    if seconds_left > 0:
        share.waits.append(seconds_left)
        return
    effect = count_any(missing, "image stays missing", "images stay missing")
    fix = "look for pending pods of the puller's DaemonSet, and at its tolerations"
    message = f"No puller pod runs on node {share.node.name}, so {effect} there; {fix}."
    notice = Notice.on_node(share.node.name, share.node.uid, "NoPullerPod", message, warning=True)
    share.notices.append((("", NO_PULLER), notice))
