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

# Why Roost's scheduler doesn't place pods now, in words.
_AWAY_BECAUSE: Final = {
    LeaseState.UNKNOWN: "the Lease of Roost's scheduler couldn't be read yet",
    LeaseState.STALE: "Roost's scheduler no longer renews its Lease",
    LeaseState.NEVER_HELD: "Roost's scheduler has never held its Lease",
    LeaseState.OUTDATED: (
        "the scheduler that leads has other profiles, and one with these hasn't started yet"
    ),
}


class _Names(NamedTuple):
    """The names of the profiles of Roost's scheduler for a class."""

    # For pods without terms of their author; "": pods keep their scheduler.
    plain: str
    # For pods with terms of their author. If there is no other profile, the same as `plain`.
    strict: str


def own_scheduler_name(settings: ReleaseSettings, pod_class: PodClass, suffix: str = "") -> str:
    """The name of the class's profile of Roost's scheduler; "": its pods keep their scheduler."""
    if not settings.sets_scheduler or not pod_class.profile:
        return ""
    return scheduler_name(settings.name, settings.namespace, pod_class.profile + suffix)


def set_scheduler(case: Case) -> Iterator[RuleResult]:
    """Name the class's profile of Roost's scheduler.

    Pods with terms of their author about pods or spreading get the strict profile. A pod that names
    "default-scheduler" may also have named none: the API server sets this default before it calls
    webhooks. While Roost's scheduler is away, nothing would bind the pod, so the pod keeps its
    scheduler.
    """
    names = _names(case)
    if not _may_change(case):
        if case.pod.scheduler_name not in names:
            yield Note(SCHEDULER_TOPIC, "the pod's own schedulerName stays")
        return
    state = _state(case)
    if state is not LeaseState.HELD:
        text = f"the pod keeps its schedulerName: {_AWAY_BECAUSE[state]}"
        yield Note(SCHEDULER_TOPIC, text, is_warning=True, reason=state.value)
        return
    yield SetScheduler(names.strict if _has_terms_of_author(case) else names.plain)


def _has_terms_of_author(case: Case) -> bool:
    """Whether the pod's author wrote preferred terms about pods, or spreading constraints."""
    if case.pod.spec.get("topologySpreadConstraints"):
        return True
    terms = [term for preferred in case.pod.preferred_pod_terms.values() for term in preferred]
    if case.pod_class.home is not None:
        # BinderHub wrote its spreading term, not the author. A home replaces it.
        terms = [term for term in terms if not is_binderhub_spread_term(term)]
    return bool(terms)


def is_bound_by_roost(case: Case) -> bool:
    """Whether the pod names Roost's scheduler, or `set_scheduler` makes it name it."""
    names = _names(case)
    if not names.plain:
        return False
    if case.pod.scheduler_name in names:
        return True
    return _may_change(case) and _state(case) is LeaseState.HELD


def _names(case: Case) -> _Names:
    plain = own_scheduler_name(case.settings, case.pod_class)
    if case.pod_class.profile not in case.settings.packing_profiles:
        return _Names(plain, plain)
    strict = own_scheduler_name(case.settings, case.pod_class, STRICT_SUFFIX)
    return _Names(plain, strict)


def _may_change(case: Case) -> bool:
    """Whether Roost may replace the scheduler that the pod names."""
    chosen = case.pod.scheduler_name
    return not chosen or chosen == DEFAULT_SCHEDULER or chosen in case.settings.replace_schedulers


def _state(case: Case) -> LeaseState:
    """Whether Roost's scheduler works, by its Lease."""
    if case.facts.scheduler_host not in (None, case.settings.scheduler_host):
        # The values have just changed: the scheduler that leads may not have their profiles.
        return LeaseState.OUTDATED
    # If the Lease isn't watched, the scheduler counts as working.
    return case.facts.leases.get(SCHEDULER, LeaseState.HELD)


RULE: Final = Rule(
    set_scheduler,
    lambda settings, pod_class: bool(own_scheduler_name(settings, pod_class)),
    Reads.LEASES,
)
