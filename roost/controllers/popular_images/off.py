"""Delete the pods that pull once popular images are switched off: nothing else would."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from roost.controllers.contract.actions import DeletePod, Done, Outcome, Planned
from roost.controllers.popular_images.pull_pods import DELETE_SECONDS, is_pull_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roost.controllers.contract.snapshot import Moment, Snapshot


@dataclass(frozen=True, slots=True)
class OffMemory:
    """Which deletions are under way."""

    # By uid of the pod: when its deletion was requested, in steady seconds.
    requested: Mapping[str, float] = field(default_factory=dict)


def plan_popular_images_off(snapshot: Snapshot, memory: OffMemory, now: Moment) -> Planned[OffMemory]:
    """Delete this release's pods that pull, whether done or not."""
    requested: dict[str, float] = {}
    actions: list[DeletePod] = []
    for pod in sorted(snapshot.pods.values(), key=lambda pod: pod.name):
        if pod.leaving or not is_pull_pod(pod, snapshot.release, snapshot.namespace):
            continue
        since = memory.requested.get(pod.uid)
        if since is None or now.steady - since >= DELETE_SECONDS:
            since = now.steady
            why = "popular images are switched off"
            actions.append(DeletePod(namespace=pod.namespace, name=pod.name, uid=pod.uid, why=why))
        requested[pod.uid] = since
    return Planned(
        actions=actions,
        memory=replace(memory, requested=requested),
        wake_after_seconds=DELETE_SECONDS if requested else None,
    )


def note_popular_images_off(memory: OffMemory, done: Iterable[Done], _now: Moment) -> OffMemory:
    """Drop requests that were not carried out, so that they are repeated."""
    undone = {
        action.uid
        for action, outcome in done
        if isinstance(action, DeletePod) and outcome not in (Outcome.DONE, Outcome.GONE)
    }
    return replace(memory, requested={uid: since for uid, since in memory.requested.items() if uid not in undone})
