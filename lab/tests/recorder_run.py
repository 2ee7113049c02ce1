"""A run of the recorder on a made-up API server."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import cast

from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.objects.fields import JSONObject
from roost_lab.recorder.recording.metrics import RecorderMetrics
from roost_lab.recorder.recording.recorder import PATHS, Recording
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.recording.settings import parse_settings
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import EVENTS, PODS
from tests.harness.waiting import wait_until


class Cluster:
    """Stands in for Client: lists show `pods`, watches tell what is in `said` and `events`."""

    def __init__(self) -> None:
        self.pods: list[JSONObject] = []
        self.version = "10"
        # Positions before this one are forgotten.
        self.oldest = 0
        self.said: deque[JSONObject] = deque()
        # The same, of Events.
        self.events: deque[JSONObject] = deque()
        self.read = 0
        # Of the hub's pod; None: it may not be read.
        self.hub_log: list[str] | None = None
        self.log_queries: list[str] = []
        # What the API server answers first instead.
        self.log_errors: deque[ApiError] = deque()
        self.stop = threading.Event()

    def get(self, path: str, query: Mapping[str, object] | None = None, **_: object) -> JSONObject:
        wanted = int(str((query or {}).get("resourceVersion") or self.version))
        if path == PATHS[PODS] and wanted < self.oldest:
            raise ApiError(410, "too old")
        return {
            "metadata": {"resourceVersion": str(wanted)},
            "items": self.pods if path == PATHS[PODS] else [],
        }

    def lines(
        self, path: str, _query: Mapping[str, object], _silence_seconds: float
    ) -> Iterator[bytes]:
        if path.endswith("/log"):
            if self.hub_log is None:
                raise ApiError(403, "pods/log is forbidden")
            if self.log_errors:
                raise self.log_errors.popleft()
            self.log_queries.append(str(_query.get("sinceTime")))
            yield from (f"{line}\n".encode() for line in self.hub_log)
            if len(self.log_queries) == 1:
                raise ClusterError("broken")
        said = {PATHS[PODS]: self.said, PATHS[EVENTS]: self.events}.get(path)
        while not self.stop.is_set() and _query.get("follow", True):
            if said:
                self.read += 1
                self.version = max(
                    self.version, said[0]["object"]["metadata"]["resourceVersion"], key=int
                )
                yield json.dumps(said.popleft()).encode()
            else:
                time.sleep(0.005)


class Run:
    """One run of the recorder until the block ends."""

    def __init__(
        self, cluster: Cluster, store: Store, model: Model | None = None, **more: object
    ) -> None:
        """more: keys of release.json."""
        self.cluster, self.store = cluster, store
        named = {
            "version": 1,
            "release": "hub",
            "namespace": "hub",
            "podClasses": {},
            "recorder": {"retentionDays": 0},
        }
        settings = parse_settings(
            {**named, "imageGate": {"mode": "off", "pullDeadlineSeconds": 600}, **more}
        )
        self.metrics = RecorderMetrics("test")
        self.recording = Recording(
            cast("Client", cluster), settings, store, self.metrics, model=model
        )
        self.metrics.observe(
            is_recording=lambda: self.recording.readiness().passed,
            behind_seconds=self.recording.behind_seconds,
        )

    def __enter__(self) -> "Run":
        self.cluster.stop = threading.Event()
        self._thread = threading.Thread(target=self.recording.run, args=(self.cluster.stop,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.stop.set()
        self._thread.join()

    def metric(self, name: str) -> float:
        return float(self.metrics.registry.get_sample_value(f"roost_recorder_{name}") or 0.0)

    def wait_for(self, version: str) -> None:
        wait_until(
            lambda: self.store.positions().get(PODS, ("",))[0] == version,
            30,
            f"version {version} to be stored",
        )
