"""ResourceQuotas that could refuse a pod for what rules add to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import Watched, Watches, quotas_path
from roost_core.objects.fields import JSONObject
from roost_core.objects.quotas import ACROSS_NAMESPACES, NOT_BEST_EFFORT, read_quota
from roost_core.release.release_settings import ReleaseSettings
from webhook.rules import Rulebook
from webhook.rules.contract import Reads
from webhook.rules.requests import STORAGE

# Scopes and resources that rules look for.
_NAMES: Final = frozenset({ACROSS_NAMESPACES, NOT_BEST_EFFORT, *STORAGE})


class WatchedQuotas(Watched[tuple[str, frozenset[str]]]):
    """Each quota's namespace, and those of its scopes and resources that rules look for."""

    def __init__(self, watches: Watches, rulebook: Rulebook) -> None:
        super().__init__(None)
        settings = rulebook.settings
        is_alone = _is_alone(settings)
        # Rules add two things for which a quota may refuse a pod: terms about other namespaces'
        # pods, and requests. If pods get neither, nothing is watched.
        gives_requests = any(pod_class.resources for pod_class in settings.classes.values())
        may_be_refused = gives_requests or not is_alone
        if rulebook.classes_that_read(Reads.QUOTAS) and may_be_refused:
            path = quotas_path(settings.namespace if is_alone else "")
            self.cache = watches.add(ListWatch(path, _read_quota, kind="resourcequotas"))

    @property
    def fact(self) -> Mapping[str, frozenset[str]] | None:
        """`Facts.quotas`: by namespace; None while they can't be read."""
        if self.cache is None:
            return {}
        if not self.is_known:
            return None
        by_namespace: dict[str, frozenset[str]] = {}
        for namespace, names in self.objects().values():
            by_namespace[namespace] = by_namespace.get(namespace, frozenset()) | names
        return by_namespace


def _is_alone(settings: ReleaseSettings) -> bool:
    """Whether all pods that the rules are for are in the release's own namespace."""
    if settings.shared_namespaces is not None:
        return False
    return all(pod_class.namespace_selector is None for pod_class in settings.classes.values())


def _read_quota(body: JSONObject) -> tuple[str, frozenset[str]] | None:
    """A quota's namespace, and its scopes and resources that rules look for; None: it has none."""
    quota = read_quota(body)
    matches = _NAMES.intersection({*quota.hard, *(scope.name for scope in quota.scopes)})
    return (quota.namespace, matches) if matches else None
