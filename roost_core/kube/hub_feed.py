"""Follow the documents of the hubs that a central release serves.

A hub is a namespace whose label CENTRAL_LABEL names the release, with the ConfigMap HUB_CONFIG_MAP. The label is the
operator's consent; the ConfigMap is the hub's own.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from roost_core.kube.watch_cache import WatchCache, label_selector
from roost_core.placement.hub_documents import MAX_HUB_BYTES, TOO_LARGE
from roost_core.placement.labels import CENTRAL_LABEL, HUB_CONFIG_MAP, central_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roost_core.kube.client import Client, JSONObject


class HubFeed:
    """Two watches, of namespaces and of ConfigMaps. `documents` may be called from any thread."""

    def __init__(
        self,
        client: Client,
        identity: tuple[str, str],
        key: str,
        *,
        is_needed: bool = False,
        on_change: Callable[[], None] = lambda: None,
        on_error: Callable[[str], None] = lambda _kind: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """identity: name and namespace of the central release. key: of the document in the ConfigMap's data.

        is_needed: a ConfigMap without the key has an empty document; else it is as if there were no ConfigMap.
        """
        self._own_namespace = identity[1]
        self._namespaces: WatchCache[Mapping[str, str]] = WatchCache(
            client,
            "/api/v1/namespaces",
            lambda item: item["metadata"].get("labels") or {},
            kind="hub-namespaces",
            label_selector=label_selector({CENTRAL_LABEL: central_name(*identity)}),
            keeps_changes=False,
            on_change=on_change,
            on_error=on_error,
            clock=clock,
        )

        def read(item: JSONObject) -> bytes | None:
            text = (item.get("data") or {}).get(key)
            if text is None and not is_needed:
                return None
            document = str(text or "").encode()
            # Kept for namespaces without the label, too: a label that comes later brings no new event of a ConfigMap.
            return document if len(document) <= MAX_HUB_BYTES else TOO_LARGE

        # By name: RBAC then grants this one ConfigMap of each namespace, and no other.
        self._config_maps: WatchCache[bytes] = WatchCache(
            client,
            "/api/v1/configmaps",
            read,
            kind="hub-rules",
            field_selector=f"metadata.name={HUB_CONFIG_MAP}",
            keeps_changes=False,
            on_change=on_change,
            on_error=on_error,
            clock=clock,
        )

    @property
    def is_listed(self) -> bool:
        """Whether both were listed; before, a hub that is there would seem to have gone."""
        return self._namespaces.synced and self._config_maps.synced

    @property
    def faults(self) -> list[str]:
        """Why the last tries failed."""
        return [f"{cache.kind}: {cache.fault}" for cache in (self._namespaces, self._config_maps) if cache.fault]

    def documents(self) -> Mapping[str, bytes]:
        """Each hub's document by its namespace, in order; not the central release's own namespace."""
        texts = {key.partition("/")[0]: text for key, text in self._config_maps.objects().items()}
        named = set(self._namespaces.objects()) - {self._own_namespace}
        return {namespace: texts[namespace] for namespace in sorted(named & texts.keys())}

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of the namespaces that the operator gave to this release, by name."""
        return self._namespaces.objects()

    def start(self, stop: threading.Event) -> None:
        """Give each watch a thread."""
        for watch in (self._namespaces, self._config_maps):
            threading.Thread(target=watch.run, args=(stop,), name=f"watch-{watch.kind}", daemon=True).start()
