"""Whether a pod may pre-empt others. No rule: the image gate and default requests ask it."""

from __future__ import annotations

from webhook.rules.contract import Case


def may_preempt(case: Case) -> bool:
    """Whether the scheduler could delete another's pod for this one, where it finds no room for
    it.
    """
    spec = case.pod.spec
    priority = spec.get("priority")
    # The API server rejects a pod whose priority is no number.
    own = priority if type(priority) is int else 0
    return spec.get("preemptionPolicy") != "Never" and own > case.facts.lowest_priority
