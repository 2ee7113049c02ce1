"""ResourceQuotas that count placeholders, and LimitRanges that change placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from roost.controllers.contract.release import ReleaseDocument
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import NAMESPACES_PATH, Watched, Watches, quotas_path
from roost_core.objects.quotas import ContainerDefaults, Quota, read_container_defaults, read_quota


class WatchedQuotas(Watched[Quota]):
    """The quotas of the release's namespace, and of all others where users may be elsewhere.

    The two are apart: where others' may not be read, nothing is missing of the release's own.
    """

    def __init__(self, watches: Watches, release: ReleaseDocument, *, all_namespaces: bool) -> None:
        super().__init__(None)
        self._elsewhere: Watched[Quota] = Watched(None)
        if not release.placeholder_sets:
            return
        self.cache = watches.add(
            ListWatch(quotas_path(release.namespace), read_quota, kind="resourcequotas")
        )
        has_hubs = any(
            pod_class.is_of_users and pod_class.namespace_selector is not None
            for pod_class in release.classes.values()
        )
        if has_hubs and all_namespaces:
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
