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
    """The quotas of the release's namespace, and those of all namespaces if hubs are elsewhere.

    They are two watches. If the second is forbidden, the first still gives the release's quotas.
    """

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(None)
        # The quotas of all namespaces.
        self._everywhere: Watched[Quota] = Watched(None)
        # Whether the log says already that the second watch is forbidden.
        self._has_warned = False
        if not release.placeholder_sets:
            return
        self.cache = watches.add(
            ListWatch(quotas_path(release.namespace), read_quota, kind="resourcequotas")
        )
        has_users_elsewhere = any(
            pod_class.is_of_users and pod_class.namespace_selector is not None
            for pod_class in release.classes.values()
        )
        if has_users_elsewhere and watches.all_namespaces:
            self._everywhere.cache = watches.add(
                ListWatch(quotas_path(), read_quota, kind="resourcequotas of hubs")
            )

    @property
    def by_name(self) -> Mapping[str, Quota] | None:
        """`Snapshot.quotas`: none if the release has no placeholders; None until they are read."""
        if self.cache is None:
            # No cache: nothing is watched.
            return {}
        if not self.cache.synced:
            return None
        return {**self._everywhere.objects(), **self.cache.objects()}

    @property
    def awaits_hubs(self) -> bool:
        """`Snapshot.awaits_hub_quotas`."""
        cache = self._everywhere.cache
        return cache is not None and not cache.synced and not cache.is_forbidden

    def follow(self) -> None:
        """Warn in the log if hubs' quotas may not be read.

        It warns once. After the quotas were readable for a while, it may warn again.
        """
        cache = self._everywhere.cache
        if cache is None:
            return
        if cache.is_known:
            self._has_warned = False
        elif cache.is_forbidden and not self._has_warned:
            self._has_warned = True
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
