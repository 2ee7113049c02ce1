"""Why a placeholder stays on its node although another node attracts its set: every reason not to evict is here.

Some reasons hold for a whole set (`why_set_stays`), others for one placeholder (`why_placeholder_stays`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from roost.controllers.contract.placeholder_sets import PlaceholderSet
    from roost.controllers.placeholder_mover.marks import Mark
    from roost.controllers.placeholder_mover.move_memory import MoveMemory
    from roost.controllers.placeholder_mover.view import View
    from roost_core.objects.pod import Pod


class Reason(NamedTuple):
    """Why placeholders stay; `text` is the `reason` label of roost_controllers_placeholder_moves_held."""

    text: str
    # Until it may no longer hold even if nothing in the cluster changes; None: unknown.
    seconds_left: float | None = None


def why_set_stays(view: View, placeholder_set: PlaceholderSet, mark: Mark | None, memory: MoveMemory) -> Reason | None:
    """Return why none of the set's placeholders may be evicted now; None if some may."""
    snapshot, settings, now = view.snapshot, view.settings, view.now
    placeholders = view.placeholders.by_set[placeholder_set.name]
    stateful_set = snapshot.stateful_sets.get(placeholder_set.stateful_set)
    back_off = memory.back_offs.get(placeholder_set.name)
    if mark is None:
        return Reason("no marked node")
    node = snapshot.nodes[mark.node]
    if placeholder_set.label not in node.labels:
        return Reason("mark on its way")
    if (unfit := view.judge.why_unattractive(node, placeholder_set) or view.judge.why_unmoved(node)) is not None:
        return Reason(f"marked node: {unfit.reason}", unfit.seconds_left)
    if not view.placeholders.preempted_on.isdisjoint({mark.node, *(pod.node_name for pod in placeholders.bound)}):
        return Reason("a user waits for room")
    if stateful_set is None or stateful_set.is_rolling:
        return Reason("the set is being rolled out")
    if any(move.set_name == placeholder_set.name for move in memory.in_flight):
        return Reason("a move is under way")
    if placeholders.unsettled or len(placeholders.bound) != stateful_set.replicas:
        return Reason("placeholders are pending")
    if back_off is not None and back_off.until > now.steady:
        return Reason("backing off", back_off.until - now.steady)
    if settings.profile_fault:
        return Reason("the scheduler's configuration can't be followed")
    return None


def why_placeholder_stays(view: View, pod: Pod, mark: Mark) -> Reason | None:
    """Return why this placeholder must not be evicted from its node now; None if it may.

    A label or annotation of the pod or of its node that keeps it in place is read here.
    """
    node = view.snapshot.nodes.get(pod.node_name)
    if node is None:
        return Reason("their node: gone")
    if (unfit := view.judge.why_unmoved(node)) is not None:
        return Reason(f"their node: {unfit.reason}", unfit.seconds_left)
    # Users need room where most of them are: placeholders never go where more users are.
    if view.count_users(node.name) < view.count_users(mark.node):
        return Reason("more users are on the marked node")
    return None
