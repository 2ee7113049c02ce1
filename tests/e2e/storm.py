"""A storm of users: several post pods without a pause, and nobody may be refused or stranded."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Self

from roost_core.objects.fields import JSONObject
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until

# Promise 8.
LATER_SECONDS = 30.0


class Storm:
    """`with Storm(cluster, namespace, image) as storm: ...; storm.check()` once nothing more
    happens.

    body: the pod, for a small one of a user's. tried: pods aren't stored (dry runs), and this must
    be true of each.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        namespace: str,
        image: str = "image",
        *,
        body: JSONObject | None = None,
        tried: Callable[[JSONObject], bool] | None = None,
        threads: int = 2,
        pause_seconds: float = 0.05,
    ) -> None:
        container = {
            "name": "notebook",
            "image": image,
            "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}},
        }
        metadata = {"labels": {"component": "singleuser-server"}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        self._body = body or {"metadata": metadata, "spec": spec}
        self._cluster = cluster
        self._namespace = namespace
        self._tried = tried
        self._pause_seconds = pause_seconds
        self._over = threading.Event()
        # Set: pods are posted.
        self._blows = threading.Event()
        self._blows.set()
        self._numbers = itertools.count()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        self.pods: list[JSONObject] = []
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
        time.sleep(4 * self._pause_seconds)
        yield
        self._blows.set()

    def wait_for_more(self, number: int = 20) -> list[JSONObject]:
        before = len(self.pods)
        wait_until(
            lambda: len(self.pods) >= before + number,
            120,
            f"{number} more users",
            explain=lambda: self.refused,
        )
        return self.pods[before:]

    def check(self) -> None:
        assert self.refused == []

        def waiting() -> dict[str, object]:
            pods = self._cluster.api.list(
                f"/api/v1/namespaces/{self._namespace}/pods", fieldSelector="spec.nodeName="
            )
            return {
                pod["metadata"]["name"]: (
                    pod["spec"]["schedulerName"],
                    pod["status"].get("conditions"),
                )
                for pod in pods
                if pod["metadata"]["name"].startswith("storm-")
            }

        wait_until(
            lambda: not waiting(), LATER_SECONDS, "all users to have a node", explain=waiting
        )

    def _work(self) -> None:
        how = {} if self._tried is None else {"dryRun": "All"}
        while not self._over.wait(self._pause_seconds):
            self._blows.wait()
            name, began = f"storm-{next(self._numbers)}", time.monotonic()
            metadata = {**self._body["metadata"], "name": name}
            body = {"apiVersion": "v1", "kind": "Pod", **self._body, "metadata": metadata}
            try:
                pod = self._cluster.api.create(body, self._namespace, **how)
            except (ApiError, OSError) as error:
                self.refused.append(f"{name}: {error}")
            else:
                self.pods.append(pod)
                if self._tried is not None and not self._tried(pod):
                    self.refused.append(f"{name}: admitted as {pod['spec']}")
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
