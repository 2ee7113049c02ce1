"""Record one cluster: a thread for each stream, one thread that turns their notices into rows, and
one database.

While the database is down, rows wait, then the queue fills, then the streams stop reading;
afterwards they continue where they stopped. Nothing is dropped here; what the API server no longer
has by then is recorded as a gap.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from roost_core.kube.client import Client
from roost_core.kube.event_stream import EventStream, ListWatch, WatchEvent, WatchEventType
from roost_core.kube.readiness import Readiness
from roost_core.kube.watch_cache import WatchCache
from roost_core.objects.device_classes import claimable_resources
from roost_core.objects.fields import JSONObject
from roost_core.objects.pod import PodSpec
from roost_core.release.class_of_pod import Classes
from roost_lab.recorder.recording import reading
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import Change, ListEnd, PodChange
from roost_lab.recorder.recording.hub_log import log_checkpoint
from roost_lab.recorder.recording.hub_log_followers import HUB_LOG, HubLogs, LogNotice
from roost_lab.recorder.recording.judging import Judging
from roost_lab.recorder.recording.live_starts import LiveStarts
from roost_lab.recorder.recording.metrics import RecorderMetrics
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.recording.settings import RecorderSettings
from roost_lab.recorder.store.database import Refused, Store, StoreError
from roost_lab.recorder.store.records import EVENTS, NODES, PODS, DecisionRecord, Record
from roost_lab.units import US

log = logging.getLogger(__name__)

PATHS: Final = {
    NODES: "/api/v1/nodes",
    PODS: "/api/v1/pods",
    EVENTS: "/apis/events.k8s.io/v1/events",
}
# Most notices that wait to become rows: reduced objects, a few kilobytes each.
MAX_WAITING: Final = 10_000
# Most rows that wait for the database; beyond that, nothing is taken from the queue.
MAX_ROWS: Final = 20_000
# Between two transactions, so that a burst shares one.
FLUSH_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 2.0
# Most pod specs that are cached; beyond that, the cache is emptied.
MAX_SPECS: Final = 50_000
STALE_SECONDS: Final = 180.0
# A statement without an answer raises no error: what waits for longer isn't recorded.
UNSTORED_SECONDS: Final = 180.0
# After these, all changes up to their version have been delivered.
_MOVING: Final = (
    WatchEventType.SYNCED,
    WatchEventType.ADDED,
    WatchEventType.MODIFIED,
    WatchEventType.DELETED,
    WatchEventType.BOOKMARK,
)


class RecordingError(Exception):
    """Recording cannot continue; the message says why."""


class Recording:
    """One run of the recorder. `run` blocks until `stop`."""

    def __init__(
        self,
        client: Client,
        settings: RecorderSettings,
        store: Store,
        metrics: RecorderMetrics,
        *,
        model: Model | None = None,
    ) -> None:
        """Reads from the database where an earlier run stopped. Raises StoreError."""
        self._settings = settings
        self._store = store
        self._metrics = metrics
        self._classes = Classes(settings.namespace, settings.classes)
        self._queue: queue.Queue[WatchEvent] = queue.Queue(MAX_WAITING)
        self._rows: list[Record] = []
        self._positions: dict[str, tuple[str, int]] = {}
        # When the oldest notice that is not stored yet arrived; None: nothing waits.
        self._waits_since: float | None = None
        self._stop = threading.Event()
        self._fault = ""
        positions = store.positions()
        self._versions = {kind: version for kind, (version, _) in positions.items()}
        # Nodes that were told of.
        self._wrong_clocks: set[str] = set()
        self._model = model
        failures = metrics.not_recorded.labels
        self._judging = Judging(model, lambda: failures(DecisionRecord.table.name).inc())
        stored = store.read_state()
        self._starts = LiveStarts(metrics, stored.seated)
        self._hub_logs = HubLogs(client, self._take, metrics.count_stream_error)
        self._assembler = Assembler(self._classify, stored, settings.gate_labels)
        self._namespaces: WatchCache[Mapping[str, str]] = WatchCache(
            client,
            ListWatch(
                "/api/v1/namespaces",
                lambda namespace: namespace["metadata"].get("labels") or {},
                kind="namespaces",
            ),
            on_error=metrics.count_stream_error,
        )
        self._device_classes: WatchCache[frozenset[str]] = WatchCache(
            client,
            ListWatch(
                "/apis/resource.k8s.io/v1/deviceclasses", claimable_resources, kind="deviceclasses"
            ),
            on_error=metrics.count_stream_error,
        )
        # Pods' specs, each cached once.
        self._specs: dict[PodSpec, PodSpec] = {}
        readers: Mapping[str, Callable[[JSONObject], Any]] = {
            NODES: reading.read_node,
            PODS: self._read_pod,
            EVENTS: reading.read_event,
        }
        self._streams = [
            EventStream(
                client,
                ListWatch(path, _guarded(readers[kind]), kind=kind, has_bookmarks=kind != EVENTS),
                self._take,
                position=self._versions.get(kind, ""),
                on_error=metrics.count_stream_error,
            )
            for kind, path in PATHS.items()
        ]

    def readiness(self) -> Readiness:
        """Whether every stream has listed and is alive, and the database accepts rows."""
        for stream in self._streams:
            if not stream.is_listed:
                why = f": {stream.fault}" if stream.fault else ""
                return Readiness(False, f"{stream.kind} not listed yet{why}")
            if stream.age_seconds() > STALE_SECONDS:
                return Readiness(
                    False, f"no news of {stream.kind} for {stream.age_seconds():.0f} s"
                )
        behind_seconds = self.behind_seconds()
        if not self._fault and behind_seconds > UNSTORED_SECONDS:
            return Readiness(
                False, f"changes have waited for the database for {behind_seconds:.0f} s"
            )
        return Readiness(not self._fault, self._fault)

    def behind_seconds(self) -> float:
        """Age of the oldest notice that is not stored yet; 0 when nothing waits.

        Safe from any thread.
        """
        since = self._waits_since
        return 0.0 if since is None else max(0.0, time.time() - since)

    def run(self, stop: threading.Event) -> None:
        """Record until `stop`, then store what has arrived, as far as the database accepts it.

        Raises RecordingError when a stream has ended.
        """
        self._stop = stop
        for cache in (self._namespaces, self._device_classes):
            threading.Thread(
                target=cache.run, args=(stop,), name=f"watch-{cache.kind}", daemon=True
            ).start()
        # A pod's class may depend on its namespace's labels.
        while not self._namespaces.synced and not self._namespaces.is_forbidden:
            if stop.wait(0.02):
                break
        threads = [
            threading.Thread(
                target=stream.run, args=(stop,), name=f"stream-{stream.kind}", daemon=True
            )
            for stream in self._streams
        ]
        for thread in threads:
            thread.start()
        flushed_at = time.monotonic()
        while not stop.is_set():
            self._collect(flushed_at + FLUSH_SECONDS)
            if time.monotonic() - flushed_at >= FLUSH_SECONDS or len(self._rows) >= MAX_ROWS:
                self._flush()
                flushed_at = time.monotonic()
                dead = [thread.name for thread in threads if not thread.is_alive()]
                if dead and not stop.is_set():
                    # Streams survive their own errors: whatever ended this one, it would deliver
                    # nothing more.
                    raise RecordingError(
                        f"{dead[0]} has ended and would record nothing more: restart the recorder"
                    )
        # What is queued; the streams deliver nothing more.
        while not self._queue.empty() and len(self._rows) < MAX_ROWS:
            self._follow(self._queue.get_nowait())
        self._try_flush()

    def _read_pod(self, item: JSONObject) -> reading.PodReading | None:
        """Called in the thread of the pods' stream."""
        if len(self._specs) > MAX_SPECS:
            # Most belong to pods that are gone.
            self._specs.clear()
        return reading.read_pod(item, self._settings.key_sources, self._specs)

    def _take(self, notice: WatchEvent) -> None:
        """Called in a stream's thread; waits while the queue is full."""
        while not self._stop.is_set():
            try:
                self._queue.put(notice, timeout=1.0)
            except queue.Full:
                self._metrics.waits.inc()
            else:
                return

    def _collect(self, until: float) -> None:
        while len(self._rows) < MAX_ROWS:
            wait_seconds = until - time.monotonic()
            try:
                notice = self._queue.get(block=wait_seconds > 0, timeout=wait_seconds)
            except queue.Empty:
                return
            changes = {**self._namespaces.take_changes(), **self._device_classes.take_changes()}
            if self._model is not None and changes:
                claimable = frozenset[str]().union(*self._device_classes.objects().values())
                self._model.surroundings_changed(self._namespaces.objects(), claimable)
            self._follow(notice)
            if self._stop.is_set():
                return

    def _follow(self, notice: WatchEvent) -> None:
        now_us = int(notice.at * US)
        try:
            if notice.kind == HUB_LOG:
                self._rows += self._told_by_hub(now_us, notice.item)
            else:
                for change in self._changes(notice, now_us):
                    self._rows += self._judging.follow(change)
                    self._rows += self._starts.follow(change)
                    self._follow_hubs(change)
            self._starts.give_up(now_us)
            self._tell_clocks()
        except Exception:
            # one bad object must not end the recording; it is counted, and its key is in the log
            log.exception("not recorded kind=%s key=%s", notice.kind, notice.key)
            self._metrics.not_recorded.labels(notice.kind).inc()
        # A list at the stored position leads no further, whenever it was read.
        if notice.change in _MOVING and notice.version != self._versions.get(notice.kind):
            self._versions[notice.kind] = notice.version
            self._positions[notice.kind] = (notice.version, now_us)
            self._assembler.streams.mark_current(notice.kind, now_us)
        if self._waits_since is None and (self._rows or self._positions):
            self._waits_since = notice.at

    def _follow_hubs(self, change: Change) -> None:
        """Follow the logs of hubs' pods, once all pods are known that they may be about."""
        match change:
            case ListEnd(kind=kind) if kind == PODS:
                for pod in self._assembler.pods():
                    self._hub_logs.pod_changed(pod)
            case PodChange(is_gone=True):
                self._hub_logs.pod_gone(change.pod.state.uid)
            case PodChange() if change.observed.is_watched:
                self._hub_logs.pod_changed(change.pod)

    def _told_by_hub(self, now_us: int, notice: LogNotice) -> list[Record]:
        namespace = notice.hub.state.namespace
        news = notice.news
        self._starts.hub_log(namespace, now_us, is_read=notice.is_read)
        self._positions[log_checkpoint(namespace)] = (
            str(notice.begin_us) if notice.is_read else "",
            now_us,
        )
        if news is None:
            return []
        # By the clock of its own node.
        at_us = news.when.at_us + self._assembler.clocks.behind.get(notice.hub.state.node_name, 0)
        return self._starts.hub_told(
            namespace, news._replace(when=news.when._replace(at_us=at_us)), now_us
        )

    def _tell_clocks(self) -> None:
        """Log each node whose clock is found to be wrong, or right again."""
        behind = self._assembler.clocks.behind
        for node in behind.keys() - self._wrong_clocks:
            log.warning(
                "node %s: its clock is %.0f s %s; its kubelet's times are corrected to the API"
                " server's",
                node,
                abs(behind[node]) / US,
                "behind" if behind[node] > 0 else "ahead",
            )
        for node in self._wrong_clocks - behind.keys():
            log.info("node %s: its clock is right again, or the node is gone", node)
        self._wrong_clocks = set(behind)

    def _changes(self, notice: WatchEvent, now_us: int) -> Sequence[Change]:
        """What has changed, by a stream's notice."""
        assembler = self._assembler
        kind = notice.kind
        key = notice.key
        item = notice.item
        is_listed = notice.change is WatchEventType.LISTED
        observed = assembler.streams.observe(
            kind, now_us, is_listed=is_listed, is_late=notice.is_late
        )
        if isinstance(item, reading.Malformed):
            log.warning("not recorded kind=%s key=%s: malformed object", kind, key)
            self._metrics.not_recorded.labels(kind).inc()
            if notice.change is not WatchEventType.DELETED:
                assembler.malformed(kind, key, item.uid)
                return []
            item = None
        match notice.change:
            case WatchEventType.LISTING:
                assembler.streams.begin_list(kind)
            case WatchEventType.LOST:
                assembler.streams.mark_lost(kind, str(item))
            case WatchEventType.SYNCED:
                return assembler.list_ended(kind, now_us)
            case WatchEventType.DELETED if kind == PODS:
                return assembler.pod_deleted(key, item, observed)
            case WatchEventType.DELETED if kind == NODES:
                return assembler.node_deleted(key, now_us)
            case WatchEventType.DELETED | WatchEventType.BOOKMARK:
                # Events expire.
                pass
            case _ if kind == PODS:
                return assembler.pod(key, item, observed)
            case _ if kind == NODES:
                return assembler.node(key, item, observed)
            case _ if item is not None:
                return [Change(records=assembler.event(item))]
        return []

    def _flush(self) -> None:
        """Store what waits; retry until it is stored or the recorder stops."""
        while not self._try_flush():
            if self._stop.wait(RETRY_SECONDS):
                return

    def _try_flush(self) -> bool:
        if not self._rows and not self._positions:
            return True
        began_at = time.monotonic()
        try:
            self._store.write_what_fits(self._rows, self._positions, self._note_refused)
        except StoreError as error:
            self._note_fault(str(error))
            return False
        self._note_fault("")
        self._metrics.count_rows(self._rows, time.monotonic() - began_at)
        self._rows = []
        self._positions = {}
        self._waits_since = None
        return True

    def _note_refused(self, row: Record, error: Refused) -> None:
        key = "/".join(str(getattr(row, column.name)) for column in row.table.primary_key)
        log.error("row skipped table=%s key=%.200s: %s", row.table.name, key, error)
        self._metrics.not_recorded.labels(row.table.name).inc()

    def _note_fault(self, fault: str) -> None:
        if fault and fault != self._fault:
            log.warning("database unavailable, rows are queued: %s", fault)
            self._metrics.count_store_error()
        elif self._fault and not fault:
            log.info("database works again")
        self._fault = fault

    def _classify(self, labels: Mapping[str, str], namespace: str) -> str:
        namespaces = self._namespaces.objects() if self._namespaces.synced else None
        pod_class = self._classes.classify(labels, namespace, namespaces)
        return pod_class.name if pod_class is not None else ""


def _guarded(read: Callable[[JSONObject], Any]) -> Callable[[JSONObject], Any]:
    def read_any(item: JSONObject) -> Any:  # noqa: ANN401 - see WatchEvent.item
        try:
            result = read(item)
        except Exception:  # noqa: BLE001 - one bad object must not block those that come after it
            result = None
        return reading.malformed(item) if result is None else result

    return read_any
