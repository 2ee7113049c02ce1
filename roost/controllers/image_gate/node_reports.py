"""Tell people about a node by Events: images that can't be pulled, and pullers that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost.controllers.contract.actions import Notice
from roost.controllers.image_gate.facts import PullFault
from roost.controllers.image_gate.node_share import NodeShare, count_any
from roost.controllers.image_gate.pull_fault_texts import describe_fault, find_cause
from roost_core.release.image_gate import ManagedImage

# A puller's pod is created within seconds of its node; longer without one is worth an Event.
NO_PULLER_SECONDS: Final = 120.0
# In place of a fault's cause: the node has no puller's pod.
NO_PULLER: Final = "no-puller"


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


def tell_of_no_puller(
    share: NodeShare, missing: tuple[ManagedImage, ...], waiting_since: float | None
) -> None:
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
