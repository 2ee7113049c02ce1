"""ResourceQuotas that count placeholders, and LimitRanges that change placeholders."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from roost.controllers.contract.release import ReleaseDocument
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import NAMESPACES_PATH, Watched, Watches, quotas_path
from roost_core.objects.quotas import ContainerDefaults, Quota, read_container_defaults, read_quota

log = logging.getLogger(__name__)


class WatchedQuotas(Watched[Quota]):
    """The quotas of the release's namespace, and of all others where users may be elsewhere.

    The two are apart: where others' may not be read, nothing is missing of the release's own.
    """

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(None)
        self._elsewhere: Watched[Quota] = Watched(None)
        # Whether it was told that hubs' quotas may not be read.
        self._told_forbidden = False
        if not release.placeholder_sets:
            return
        self.cache = watches.add(
            ListWatch(quotas_path(release.namespace), read_quota, kind="resourcequotas")
        )
        has_hubs = any(
            pod_class.is_of_users and pod_class.namespace_selector is not None
            for pod_class in release.classes.values()
        )
        if has_hubs and watches.all_namespaces:
            self._elsewhere.cache = watches.add(
                ListWatch(quotas_path(), read_quota, kind="resourcequotas of hubs")
            )

    @property
    def by_name(self) -> Mapping[str, Quota] | None:
        """`Snapshot.quotas`."""
        if self.cache is None:
            return {}
        if not self.cache.synced:
            return None
        return {**self._elsewhere.objects(), **self.cache.objects()}

    @property
    def awaits_hubs(self) -> bool:
        """`Snapshot.awaits_hub_quotas`."""
        cache = self._elsewhere.cache
        return cache is not None and not cache.synced and not cache.is_forbidden

    def follow(self) -> None:
        """Say what it means that hubs' quotas may not be read: once, until they may."""
        cache = self._elsewhere.cache
        if cache is None:
            return
        if cache.is_known:
            self._told_forbidden = False
        elif cache.is_forbidden and not self._told_forbidden:
            self._told_forbidden = True
            log.warning(
                "quotas of hubs' namespaces may not be read: placeholders are kept for people whom"
                " a ResourceQuota there refuses. Let the controllers' ServiceAccount list and watch"
                " resourcequotas in all namespaces"
            )


class WatchedLimitRanges(Watched[ContainerDefaults]):
    """The LimitRanges of the release's namespace, where placeholders are."""

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(None)
        if release.placeholder_sets:
            self.cache = watches.add(
                ListWatch(
                    f"{NAMESPACES_PATH}/{release.namespace}/limitranges",
                    read_container_defaults,
                    kind="limitranges",
                )
            )

    @property
    def by_name(self) -> Mapping[str, ContainerDefaults]:
        """`Snapshot.container_defaults`."""
        return self.objects()
