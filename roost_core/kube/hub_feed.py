"""Follow the documents of the hubs that a central release serves.

A hub is a namespace whose label CENTRAL_LABEL names the release, with the ConfigMap HUB_CONFIG_MAP. The label is the
operator's consent; the ConfigMap is the hub's own.
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.kube.watch_cache import WatchCache, label_selector
from roost_core.placement.hub_documents import MAX_HUB_BYTES, TOO_LARGE
from roost_core.placement.labels import CENTRAL_LABEL, HUB_CONFIG_MAP, central_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roost_core.kube.client import Client, JSONObject


# From one document of a hub that is taken in to its next one. A document may replace watches, and one that is replaced
# ends with the next word of the server, which may take a minute. So no hub has more than a few of them, however often
# its document is written.
CHANGE_SECONDS: Final = 20.0


class _Taken(NamedTuple):
    """What was last taken in of a hub, and when."""

    # None: the hub has gone since.
    document: bytes | None
    moment: float


class DocumentPace:
    """Take in a hub's documents at most once in CHANGE_SECONDS. For one thread.

    A hub's first document is taken in at once, and so is that a hub has gone. A hub that comes back counts as changed:
    going and coming again is no way around the pace.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._taken: dict[str, _Taken] = {}
        self._due_at = math.inf

    @property
    def is_due(self) -> bool:
        """Whether a document that had to wait may be taken in now."""
        return self._clock() >= self._due_at

    def take_in(self, newest: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The documents to follow now, by namespace in the given order; newest: those that are there."""
        now = self._clock()
        taken: dict[str, _Taken] = {}
        self._due_at = math.inf
        for namespace, document in newest.items():
            before = self._taken.get(namespace)
            if before is None or (before.document != document and now - before.moment >= CHANGE_SECONDS):
                before = _Taken(document, now)
            elif before.document != document:
                self._due_at = min(self._due_at, before.moment + CHANGE_SECONDS)
            taken[namespace] = before
        for namespace in self._taken.keys() - newest.keys():
            moment = self._taken[namespace].moment
            if now - moment < CHANGE_SECONDS:
                taken[namespace] = _Taken(None, moment)
        self._taken = taken
        return {name: text for name in newest if (text := taken[name].document) is not None}


class HubFeed:
    """Two watches, of namespaces and of ConfigMaps. `documents` and `labels` may be called from any thread."""

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
        self._pace = DocumentPace(clock)
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

    def paced_documents(self) -> Mapping[str, bytes]:
        """The same, but each hub's changes at most once in CHANGE_SECONDS. For one thread."""
        return self._pace.take_in(self.documents())

    @property
    def is_due(self) -> bool:
        """Whether a change that had to wait may be taken in now; `on_change` isn't called for it."""
        return self._pace.is_due

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of the namespaces that the operator gave to this release, by name."""
        return self._namespaces.objects()

    def start(self, stop: threading.Event) -> None:
        """Give each watch a thread."""
        for watch in (self._namespaces, self._config_maps):
            threading.Thread(target=watch.run, args=(stop,), name=f"watch-{watch.kind}", daemon=True).start()
