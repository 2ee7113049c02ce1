"""Reject values whose pods cannot be scheduled on any simulated node, before anything is replayed.

A placeholder that never runs, or an image that nobody pulls, would otherwise look like the policy's fault.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from generator.faults import Fault, show_path
from roost.controllers.contract.bookings import read_booking_settings
from roost.controllers.headroom.settings import CountBy, read_headroom_sets
from roost_core.objects.pod import copy_pod, copy_spec
from roost_core.placement.classes import Classes
from roost_core.placement.labels import HOSTNAME_LABEL
from roost_core.placement.nodes import Nodes
from roost_core.placement.settings_reader import Reader
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.state import ClusterState
from roost_lab.simulator.engine.node_groups import make_groups, make_node
from roost_lab.simulator.engine.pods import BUILD_LABELS, USER_LABELS, PodMaker
from roost_lab.simulator.engine.pool import namespace_labels
from roost_lab.simulator.setup.checks import AssumptionsError
from webhook.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from generator.faults import Path
    from roost_core.objects.node import Node
    from roost_core.objects.pod import Pod
    from roost_lab.simulator.engine.node_groups import NodeGroup
    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.policy import PlaceholderSet, Policy

_POOLS_FIX: Final = "Compare node_selector, tolerations and requests with the pools' labels, taints and machines."
_FIX: Final = "Lay values for the replay over these (FILE,OTHER), or change the nodes with --set."


def check_policy(policy: Policy, assumptions: Assumptions) -> None:
    """Raises AssumptionsError with the parts of the policy that can never take effect with these nodes."""
    nodes = [_template(policy, group) for group in make_groups(policy, assumptions)]
    faults = [
        *_buffers(policy),
        *_users(policy, assumptions, nodes),
        *_placeholders(policy, assumptions, nodes),
        *_pullers(policy, nodes),
        *_classes(policy, with_builds=assumptions.with_builds),
    ]
    if faults:
        raise AssumptionsError(faults)


def _template(policy: Policy, group: NodeGroup) -> Node:
    """A node of a group once its startup taint is removed."""
    node = make_node(policy, group, f"node-of-{group.name}" if group.name else "node", 0.0)
    return replace(node, taints=group.taints)


def _users(policy: Policy, assumptions: Assumptions, nodes: Sequence[Node]) -> Iterator[Fault]:
    """Users who fit no pool; of a single pool the assumptions are checked."""
    pools = assumptions.pools
    if pools is None:
        return
    maker = PodMaker(policy, assumptions)
    if not pools.profiles:
        why = _why_not(maker.user_of_profile(None), policy, nodes)
        if why:
            yield _fault(policy, ("singleuser",), f"users who fit no pool ({why})", _shown(nodes), _POOLS_FIX)
    for place, (profile, line) in enumerate(zip(pools.profiles, pools.profile_lines, strict=True)):
        why = _why_not(maker.user_of_profile(profile), policy, nodes) if profile.share else ""
        if why:
            found = f"{profile.name}, whose users fit no pool ({why})"
            yield Fault(pools.file, line, f"profileList[{place}]", found, _shown(nodes), _POOLS_FIX)


def _fault(policy: Policy, path: Path, found: str, expected: str, fix: str) -> Fault:
    file, line = policy.place_of(path)
    return Fault(file, line, show_path(path), found, expected, fix)


def _buffers(policy: Policy) -> Iterator[Fault]:
    if policy.has_capacity_buffers:
        fix = "Set it for the replay: StatefulSets keep as much room, but with pods that are scheduled."
        yield _fault(
            policy, ("placeholder", "backend"), "capacityBuffer", "statefulset, as others aren't simulated", fix
        )


def _may_grow(policy: Policy, placeholders: PlaceholderSet) -> bool:
    """Whether the controllers change its number: by the clock, as learned, or for booked events."""
    document = policy.controllers or {}
    has_events = read_booking_settings(Reader(), document) is not None
    return any(
        each.stateful_set == placeholders.name
        and (each.windows or each.learn is not None or (has_events and each.count_by is CountBy.PODS))
        for each in read_headroom_sets(Reader(), document)
    )


def _placeholders(policy: Policy, assumptions: Assumptions, nodes: Sequence[Node]) -> Iterator[Fault]:
    for index, placeholders in enumerate(policy.placeholders):
        if not placeholders.replicas and not _may_grow(policy, placeholders):
            continue
        why = _why_not(_placeholder(policy, assumptions, placeholders), policy, nodes)
        if why:
            yield _fault(
                policy, ("placeholders", index), f"pods that fit no node ({why})", _shown(nodes), _fix(assumptions)
            )
    if assumptions.with_builds:
        build = PodMaker(policy, assumptions).build("repository", "build", 0.0, Facts(nodes=Nodes()))
        why = _why_not(build, policy, nodes)
        if why:
            yield _fault(
                policy, ("podClasses", "build"), f"pods that fit no node ({why})", _shown(nodes), _fix(assumptions)
            )


def _placeholder(policy: Policy, assumptions: Assumptions, placeholders: PlaceholderSet) -> Pod:
    return PodMaker(policy, assumptions).placeholder(placeholders, f"{placeholders.name}-0", 0.0, Facts(nodes=Nodes()))


def _fix(assumptions: Assumptions) -> str:
    return _FIX if assumptions.pools is None else _POOLS_FIX


def _why_not(pod: Pod, policy: Policy, nodes: Sequence[Node]) -> str:
    """Why a pod fits none of these empty nodes; "": it fits one."""
    # Pods that it must run beside may come later.
    alone = copy_pod(pod, spec=copy_spec(pod.spec, required_affinity=()))
    profile = policy.profile_of(pod.scheduler_name)
    decision = schedule(alone, ClusterState(nodes), profile, with_preemption=False)
    return "" if decision.node is not None else ", ".join(sorted(decision.reasons)) or decision.message


def _pullers(policy: Policy, nodes: Sequence[Node]) -> Iterator[Fault]:
    for puller in policy.pullers:
        wanted = puller.node_selector.items()
        if any(wanted <= node.labels.items() for node in nodes):
            continue
        labels = nodes[0].labels
        missing = {key: value for key, value in wanted if labels.get(key) != value}
        present = {key: labels[key] for key in missing if key in labels}
        found = f"users of nodes with {_pairs(missing)}"
        fix = "Nodes are all of one pool: leave out the profiles of others in values for the replay, or give --pools."
        expected = f"nodes with {_pairs(present)}, as the other profiles select"
        if len(nodes) > 1 or nodes[0].name != "node":
            found = f"users of nodes with {_pairs(dict(wanted))}"
            fix, expected = "Leave it out in values for the replay, or give a pool these labels.", _shown(nodes)
        yield _fault(policy, ("singleuser",), found, expected, fix)


def _classes(policy: Policy, *, with_builds: bool) -> Iterator[Fault]:
    settings = policy.webhook
    if settings is None:
        return
    known = {policy.namespace: namespace_labels(policy)}
    classes = Classes(settings)
    pods = [
        USER_LABELS,
        *(placeholders.labels for placeholders in policy.placeholders),
        *([BUILD_LABELS] if with_builds else ()),
    ]
    for labels in pods:
        if classes.classify(labels, policy.namespace, known) is not None:
            continue
        for pod_class in settings.classes.values():
            if pod_class.labels.items() <= labels.items():
                expected = f"a selector of {policy.namespace}, the namespace of all pods of a replay"
                fix = "Select by a label, or leave it out, in values for the replay."
                path = ("podClasses", pod_class.name, "match")
                yield _fault(policy, path, "a namespaceSelector that leaves out the hub's namespace", expected, fix)


def _shown(nodes: Sequence[Node]) -> str:
    """What nodes have, for people; of several pools each."""
    return "such as fit an empty one of " + "; or of ".join(map(_shown_node, nodes))


def _shown_node(node: Node) -> str:
    amounts = ", ".join(f"{name} {amount:,}" for name, amount in node.allocatable.items())
    labels = {key: value for key, value in node.labels.items() if key != HOSTNAME_LABEL}
    taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.taints]
    return f"{amounts} and labels {_pairs(labels)}" + (f" and taints {', '.join(taints)}" if taints else "")


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
