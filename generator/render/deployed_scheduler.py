"""Which kube-scheduler an install deploys: its tag, its minor, and the feature gates it gets."""

from __future__ import annotations

from generator.render.functions import for_cluster, minor_for_tag
from generator.render.kube_scheduler import SCHEDULER_GATES, SCHEDULER_TAGS, minor_of_tag
from generator.values.lookups import mapping, text
from generator.values.release_name import Release


def scheduler_tag(scheduler: dict[str, object], release: Release) -> str:
    """The tag of the kube-scheduler that is deployed."""
    tag = text(mapping(scheduler.get("image")).get("tag"))
    return tag or str(for_cluster(SCHEDULER_TAGS, release.kube_minor))


def scheduler_minor(scheduler: dict[str, object], release: Release) -> int:
    """The minor of the kube-scheduler that is deployed: 37 for v1.37.2."""
    minor = minor_of_tag(scheduler_tag(scheduler, release))
    if minor is None:
        # The tag of a custom image doesn't say its minor: assume the cluster's.
        return release.kube_minor[1]
    return minor


def gates_of(scheduler: dict[str, object], release: Release) -> dict[str, bool]:
    """The feature gates that it gets: Roost's, then those of the values. A null in the values
    leaves a gate out.
    """
    tag = scheduler_tag(scheduler, release)
    gates_of_roost = SCHEDULER_GATES[minor_for_tag(SCHEDULER_GATES, tag, release.kube_minor)]
    gates = {**gates_of_roost, **mapping(scheduler.get("featureGates"))}
    return {gate: value for gate, value in gates.items() if isinstance(value, bool)}
