"""A storm of users: several post pods without a pause, and nobody may be refused or stranded."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until

Object = dict[str, Any]
PAUSE_SECONDS = 0.05
THREADS = 2
# Promise 8.
LATER_SECONDS = 30.0


class Storm:
    """`with Storm(cluster, namespace, image) as storm: ...; storm.check()` once nothing more happens."""

    def __init__(self, cluster: ControlPlane, namespace: str, image: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._image = image
        self._over = threading.Event()
        # Set: pods are posted.
        self._blows = threading.Event()
        self._blows.set()
        self._numbers = itertools.count()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]
        self.pods: list[Object] = []
        self.refused: list[str] = []
        self.slowest_seconds = 0.0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._blows.set()
        for thread in self._threads:
            thread.join()

    @contextlib.contextmanager
    def lull(self) -> Iterator[None]:
        """A time without an API server, which users need whether Roost is there or not."""
        self._blows.clear()
        time.sleep(4 * PAUSE_SECONDS)
        yield
        self._blows.set()

    def wait_for_more(self, number: int = 20) -> list[Object]:
        """Return the next pods, as they were admitted."""
        before = len(self.pods)
        wait_until(lambda: len(self.pods) >= before + number, 30, f"{number} more users", explain=lambda: self.refused)
        return self.pods[before:]

    def check(self) -> None:
        """Nobody was refused, and all have a node."""
        assert self.refused == []

        def waiting() -> dict[str, object]:
            pods = self._cluster.api.list(f"/api/v1/namespaces/{self._namespace}/pods", fieldSelector="spec.nodeName=")
            return {
                one["metadata"]["name"]: (one["spec"]["schedulerName"], one["status"].get("conditions"))
                for one in pods
                if one["metadata"]["name"].startswith("storm-")
            }

        wait_until(lambda: not waiting(), LATER_SECONDS, "all users to have a node", explain=waiting)

    def _work(self) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            self._blows.wait()
            resources = {"requests": {"cpu": "10m", "memory": "1Mi"}}
            container = {"name": "notebook", "image": self._image, "resources": resources}
            metadata = {"name": f"storm-{next(self._numbers)}", "labels": {"component": "singleuser-server"}}
            spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
            began = time.monotonic()
            try:
                self.pods.append(self._cluster.create_pod({"metadata": metadata, "spec": spec}, self._namespace))
            except (ApiError, OSError) as error:
                self.refused.append(f"{metadata['name']}: {error}")
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
