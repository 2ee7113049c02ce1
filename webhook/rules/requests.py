"""Give requests to pods without any: otherwise kube-scheduler never considers their nodes full.

Not where a pod that is admitted without requests could be refused with them, or could pre-empt
another's pod. No LimitRange refuses it for them: it gives requests to pods without any first, or
refuses these itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roost_core.objects.quotas import NOT_BEST_EFFORT
from roost_core.objects.requests import EPHEMERAL_STORAGE, read_requests
from webhook.patch import RequestByDefault
from webhook.rules.contract import Case, Note, Reads, Rule, RuleResult
from webhook.rules.preemption import may_preempt

# A quota of these counts only pods with requests: it can refuse a pod because of them. So can a
# quota of scope NotBestEffort. A quota of CPU or memory refuses pods without any, so giving some
# never hurts.
STORAGE: Final = frozenset({EPHEMERAL_STORAGE, f"requests.{EPHEMERAL_STORAGE}"})
_UNKNOWN: Final = "none given: ResourceQuotas can't be read"
_REFUSED: Final = "none given: a ResourceQuota of the namespace could refuse the pod for them"
_PREEMPTS: Final = "none given: pods of lower priority could be deleted for them"


def request_by_default(case: Case) -> Iterator[RuleResult]:
    """Request `podClasses.<class>.resources` for each container.

    `_patch_requests` in webhook/patch.py gives them only to pods that request nothing.
    `requests_of` below must say the same.
    """
    why_none = _why_none(case)
    yield Note("requests", why_none) if why_none else RequestByDefault(case.pod_class.resources)


def requests_of(case: Case) -> tuple[tuple[str, int], ...]:
    """What a node must be large enough for: the pod's requests, or those that its class gives to
    pods without any.

    Resources that a node may have without listing them are left out. Raises MalformedObjectError.
    """
    requests = read_requests(case.pod.spec)
    if not requests and not _why_none(case):
        container = {"resources": {"requests": case.pod_class.resources}}
        requests = read_requests({"containers": [container] * len(case.pod.containers)})
    return tuple(
        (resource, amount) for resource, amount in requests if resource not in case.facts.claimable
    )


def _why_none(case: Case) -> str:
    """Why the pod gets no requests; "" if it does."""
    quotas = case.facts.quotas
    if quotas is None:
        return _UNKNOWN
    limited = quotas.get(case.pod.namespace, frozenset())
    if NOT_BEST_EFFORT in limited or (
        EPHEMERAL_STORAGE in case.pod_class.resources and limited & STORAGE
    ):
        return _REFUSED
    # What a DaemonSet's pod may take the place of is for its author to say.
    return _PREEMPTS if not case.pod.is_daemon and may_preempt(case) else ""


RULE: Final = Rule(
    request_by_default,
    lambda _settings, pod_class: bool(pod_class.resources),
    Reads.QUOTAS | Reads.PRIORITIES,
)
