"""Reject values whose pods cannot be scheduled on any simulated node, before anything is replayed.

A placeholder that never runs, or an image that nobody pulls, would otherwise look like the policy's
fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from generator.faults import Fault, KeyPath, show_path
from roost.controllers.contract.bookings import read_booking_settings
from roost.controllers.contract.release import ReleaseDocument
from roost_core.objects.node import HOSTNAME_LABEL, Node
from roost_core.objects.pod import Pod
from roost_core.placement.nodes import Nodes
from roost_core.release.reader import Reader
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine.node_template import make_node
from roost_lab.simulator.engine.pods import PodMaker
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.policy import PlaceholderStatefulSet, Policy
from webhook.facts.facts import Facts

_FIX: Final = "Lay values for the replay over these (FILE,OTHER), or change the nodes with --set."


def check_policy(policy: Policy, assumptions: Assumptions) -> None:
    """Raises AssumptionsError with the parts of the policy that can never take effect with these
    nodes.
    """
    made = make_node(policy, assumptions, "node", 0.0)
    # Once its startup taint is removed.
    node = replace(made, taints=())
    faults = [*_placeholders(policy, assumptions, node), *_pullers(policy, node)]
    if faults:
        raise AssumptionsError(faults)


def _fault(policy: Policy, path: KeyPath, found: str, expected: str, fix: str) -> Fault:
    file, line = policy.merged.places.of(path)
    return Fault(file, line, show_path(path), found, expected, fix)


def _may_grow(policy: Policy, placeholders: PlaceholderStatefulSet) -> bool:
    """Whether the controllers change its number: by the clock, as learned, or for booked events."""
    document = policy.controllers or {}
    has_events = read_booking_settings(Reader(), document) is not None
    sets = ReleaseDocument(Reader(), document).placeholder_sets
    own = [entry for entry in sets if entry.stateful_set == placeholders.name]
    return any(has_events or entry.windows or entry.learn is not None for entry in own)


def _placeholders(policy: Policy, assumptions: Assumptions, node: Node) -> Iterator[Fault]:
    maker = PodMaker(policy, assumptions)
    facts = Facts(nodes=Nodes())
    pods: dict[KeyPath, Pod] = {
        ("placeholders", index): maker.placeholder(
            placeholders, f"{placeholders.name}-0", 0.0, facts
        )
        for index, placeholders in enumerate(policy.placeholders)
        if placeholders.replicas or _may_grow(policy, placeholders)
    }
    if assumptions.with_builds:
        pods["podClasses", "build"] = maker.build("repository", "build", 0.0, facts)
    for path, pod in pods.items():
        why = _why_not(pod, policy, node)
        if why:
            yield _fault(policy, path, f"pods that fit no node ({why})", _shown(node), _FIX)


def _why_not(pod: Pod, policy: Policy, node: Node) -> str:
    """Why a pod doesn't fit the empty node; "": it fits."""
    # Pods that it must run beside may come later.
    alone = replace(pod, spec=replace(pod.spec, required_affinity=()))
    profile = policy.profile_of(pod.scheduler_name)
    decision = schedule(alone, ClusterState([node]), profile, with_preemption=False)
    if decision.node is not None:
        return ""
    return ", ".join(sorted(decision.reasons)) or decision.message


def _pullers(policy: Policy, node: Node) -> Iterator[Fault]:
    labels = node.labels
    for puller in policy.pullers:
        missing = {
            key: value for key, value in puller.node_selector.items() if labels.get(key) != value
        }
        if missing:
            present = {key: labels[key] for key in missing if key in labels}
            found = f"users of nodes with {_pairs(missing)}"
            expected = f"nodes with {_pairs(present)}, as the other profiles select"
            fix = (
                "Nodes are all of one pool: leave out the profiles of others in values for the"
                " replay."
            )
            yield _fault(policy, ("singleuser",), found, expected, fix)


def _shown(node: Node) -> str:
    """What the node has, for people."""
    amounts = ", ".join(f"{name} {amount:,}" for name, amount in node.allocatable.items())
    labels = {key: value for key, value in node.labels.items() if key != HOSTNAME_LABEL}
    return f"such as fit an empty one of {amounts} and labels {_pairs(labels)}"


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
