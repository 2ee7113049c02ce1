"""Give the pod its class's scheduler profile, unless its author chose a scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from roost_core.objects.pod import DEFAULT_SCHEDULER
from roost_core.placement.labels import STRICT_SUFFIX, scheduler_name
from roost_core.placement.lease_state import LeaseState
from roost_core.release.pod_classes import PodClass
from roost_core.release.release_settings import SCHEDULER, ReleaseSettings
from webhook.binderhub_terms import is_binderhub_spread_term
from webhook.patch import SetScheduler
from webhook.rules.contract import SCHEDULER_TOPIC, Case, Note, Reads, Rule, RuleResult

_AWAY_BECAUSE: Final = {
    LeaseState.UNKNOWN: "the Lease of Roost's scheduler couldn't be read yet",
    LeaseState.STALE: "Roost's scheduler no longer renews its Lease",
    LeaseState.NEVER_HELD: "Roost's scheduler has never held its Lease",
    LeaseState.OUTDATED: (
        "the scheduler that leads has other profiles, and one with these hasn't started yet"
    ),
}


class _Names(NamedTuple):
    """The names under which Roost's scheduler takes pods of a class."""

    # Of the class's profile; "": pods keep their scheduler.
    plain: str
    # Of the profile for pods with terms of their author; the same as `plain` where there is none.
    strict: str


def own_scheduler_name(settings: ReleaseSettings, pod_class: PodClass, suffix: str = "") -> str:
    """The name of the class's profile of Roost's scheduler, "" for pods that keep their
    scheduler.
    """
    if not settings.sets_scheduler or not pod_class.profile:
        return ""
    return scheduler_name(settings.name, settings.namespace, pod_class.profile + suffix)


def set_scheduler(case: Case) -> Iterator[RuleResult]:
    """Name the class's profile of Roost's scheduler: the strict one for an author's own terms about
    pods or spreading.

    "Unset" and "default-scheduler" can't be distinguished: the API server sets the default before
    it calls webhooks. BinderHub's spreading term, which gives way to a home, is no author's. While
    Roost's scheduler is away nothing would bind the pod, so the pod keeps the scheduler that it
    has.
    """
    names = _names(case)
    state = _state(case)
    if _may_change(case):
        if state is not LeaseState.HELD:
            text = f"the pod keeps its schedulerName: {_AWAY_BECAUSE[state]}"
            yield Note(SCHEDULER_TOPIC, text, is_warning=True, reason=state.value)
        else:
            terms = [
                term for preferred in case.pod.preferred_pod_terms.values() for term in preferred
            ]
            if case.pod_class.home is not None:
                terms = [term for term in terms if not is_binderhub_spread_term(term)]
            has_own_terms = terms or case.pod.spec.get("topologySpreadConstraints")
            yield SetScheduler(names.strict if has_own_terms else names.plain)
    elif case.pod.scheduler_name not in names:
        yield Note(SCHEDULER_TOPIC, "the pod's own schedulerName stays")


def is_bound_by_roost(case: Case) -> bool:
    """Whether the pod names Roost's scheduler, or is about to."""
    chosen = case.pod.scheduler_name
    names = _names(case)
    return bool(names.plain) and (
        chosen in names or (_may_change(case) and _state(case) is LeaseState.HELD)
    )


def _names(case: Case) -> _Names:
    plain = own_scheduler_name(case.settings, case.pod_class)
    if case.pod_class.profile not in case.settings.packing_profiles:
        return _Names(plain, plain)
    strict = own_scheduler_name(case.settings, case.pod_class, STRICT_SUFFIX)
    return _Names(plain, strict)


def _may_change(case: Case) -> bool:
    chosen = case.pod.scheduler_name
    return not chosen or chosen == DEFAULT_SCHEDULER or chosen in case.settings.replace_schedulers


def _state(case: Case) -> LeaseState:
    if case.facts.scheduler_host not in (None, case.settings.scheduler_host):
        # The values have just changed: whoever leads was asked for other profiles.
        return LeaseState.OUTDATED
    # Where the Lease isn't watched, nothing speaks against it.
    return case.facts.leases.get(SCHEDULER, LeaseState.HELD)


RULE: Final = Rule(
    set_scheduler,
    lambda settings, pod_class: bool(own_scheduler_name(settings, pod_class)),
    Reads.LEASES,
)
