"""Give requests to pods without any: otherwise kube-scheduler never considers their nodes full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roost_core.objects.requests import read_requests
from webhook.patch import RequestByDefault
from webhook.rules.contract import Case, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


def request_by_default(case: Case) -> Iterator[RequestByDefault]:
    """Request `podClasses.<class>.resources` for each container."""
    yield RequestByDefault(case.pod_class.resources)


def requests_of(case: Case) -> tuple[tuple[str, int], ...]:
    """The pod's requests, or those that its class gives to pods without any. Raises MalformedObjectError."""
    by_default = {"resources": {"requests": case.pod_class.resources}}
    return read_requests(case.pod.spec) or read_requests({"containers": [by_default] * len(case.pod.containers)})


RULE: Final = Rule(request_by_default, lambda _settings, pod_class: bool(pod_class.resources))
