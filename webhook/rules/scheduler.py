"""Give the pod its class's scheduler profile, unless its author chose a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_core.objects.pod import DEFAULT_SCHEDULER
from roost_core.placement.labels import scheduler_name
from roost_core.placement.lease_state import LeaseState
from roost_core.release.settings import SCHEDULER, ReleaseSettings
from webhook.patch import SetScheduler
from webhook.rules.contract import SCHEDULER_TOPIC, Case, Note, Reads, Rule, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roost_core.release.pod_classes import PodClass

_AWAY_BECAUSE: Final = {
    LeaseState.STALE: "Roost's scheduler no longer renews its Lease",
    LeaseState.NEVER_HELD: "Roost's scheduler has never held its Lease",
    LeaseState.OUTDATED: "the scheduler that leads has other profiles, and one with these hasn't started yet",
}


def own_scheduler_name(settings: ReleaseSettings, pod_class: PodClass) -> str:
    """The name of the class's profile of Roost's scheduler, "" for pods that keep their scheduler."""
    if not settings.sets_scheduler or not pod_class.profile:
        return ""
    return scheduler_name(settings.name, settings.namespace, pod_class.profile)


def set_scheduler(case: Case) -> Iterator[Verdict]:
    """Name the class's profile of Roost's scheduler.

    "Unset" and "default-scheduler" can't be distinguished: the API server sets the default before it calls webhooks.
    While Roost's scheduler is away nothing would bind the pod, so the pod keeps the scheduler that it has.
    """
    settings, chosen = case.settings, case.pod.scheduler_name
    name = own_scheduler_name(settings, case.pod_class)
    state = case.facts.leases.get(SCHEDULER, LeaseState.UNKNOWN)
    if case.facts.scheduler_host not in (None, settings.scheduler_host):
        # The values have just changed: whoever leads was asked for other profiles.
        state = LeaseState.OUTDATED
    if not chosen or chosen == DEFAULT_SCHEDULER or chosen in settings.replace_schedulers:
        if state.is_away:
            text = f"the pod keeps its schedulerName: {_AWAY_BECAUSE[state]}"
            yield Note(SCHEDULER_TOPIC, text, is_warning=True, reason=state.value)
        else:
            yield SetScheduler(name)
    elif chosen != name:
        yield Note(SCHEDULER_TOPIC, "the pod's own schedulerName stays")


RULE: Final = Rule(
    set_scheduler, lambda settings, pod_class: bool(own_scheduler_name(settings, pod_class)), Reads.LEASES
)
