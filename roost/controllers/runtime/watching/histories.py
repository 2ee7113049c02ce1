"""Watch the ConfigMap in which headroom stores what it learned."""

from __future__ import annotations

from collections.abc import Mapping

from roost.controllers.contract.release import ReleaseDocument
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watches import Watched, Watches
from roost_core.objects.fields import JSONObject


class WatchedHistories(Watched[Mapping[str, str]]):
    """The data of the release's ConfigMap of histories, if it has one."""

    def __init__(self, watches: Watches, release: ReleaseDocument) -> None:
        super().__init__(None)
        if release.history_name:
            self.cache = watches.add(
                ListWatch(
                    f"/api/v1/namespaces/{release.namespace}/configmaps",
                    _read_data,
                    kind="configmaps",
                    field_selector=f"metadata.name={release.history_name}",
                )
            )

    @property
    def by_set(self) -> Mapping[str, str] | None:
        """`Snapshot.histories`."""
        if self.cache is None or not self.cache.synced:
            return None
        histories: dict[str, str] = {}
        for data in self.cache.objects().values():
            histories.update(data)
        return histories


def _read_data(body: JSONObject) -> Mapping[str, str]:
    return {str(key): str(text) for key, text in (body.get("data") or {}).items()}
