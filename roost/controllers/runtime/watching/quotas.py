"""ResourceQuotas that count placeholders, and LimitRanges that change placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from roost.controllers.contract.release import ReleaseDocument
from roost_core.kube.watches import NAMESPACES_PATH, Watched, Watches, quotas_path
from roost_core.objects.quotas import ContainerDefaults, Quota, read_container_defaults, read_quota


class WatchedQuotas(Watched[Quota]):
    """The quotas of the release's namespace."""

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(None)
        if release.placeholder_sets:
            path = quotas_path(release.namespace)
            self.cache = watches.add(path, read_quota, kind="resourcequotas")

    @property
    def by_name(self) -> Mapping[str, Quota] | None:
        """`Snapshot.quotas`."""
        if self.cache is None:
            return {}
        return self.cache.objects() if self.cache.synced else None


class WatchedLimitRanges(Watched[ContainerDefaults]):
    """The LimitRanges of the release's namespace, where placeholders are."""

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(None)
        if release.placeholder_sets:
            self.cache = watches.add(
                f"{NAMESPACES_PATH}/{release.namespace}/limitranges",
                read_container_defaults,
                kind="limitranges",
            )

    @property
    def by_name(self) -> Mapping[str, ContainerDefaults]:
        """`Snapshot.container_defaults`."""
        return self.objects()
