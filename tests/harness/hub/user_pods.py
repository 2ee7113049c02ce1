"""Stand in for kubelets that run users' servers: a pull once a node and image, then a process on
loopback.

Owns those processes. All other pods are only marked running.
"""

import contextlib
import datetime as dt
import http.client
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import jupyterhub

from roost_core.objects.fields import JSONObject
from tests.harness.api import STRATEGIC, ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.pods import PodKeeper, running_status
from tests.harness.processes import Process

PORT: Final = 8888
_SERVER = Path(__file__).with_name("light_server.py")
# Starts at a time, those that wait for a pull too.
_PARALLEL_STARTS = 64


class UserPods(PodKeeper):
    """Runs users' pods as processes, at addresses of their own in 127.0.0.0/8.

    pull_seconds: how long an image's pull takes; of others 0. One pull at a time on a node, as
    kubelets do.
    """

    def __init__(self, cluster: ControlPlane, pull_seconds: Mapping[str, float]) -> None:
        super().__init__(cluster.api, parallel_requests=_PARALLEL_STARTS)
        self._cluster = cluster
        self._pull_seconds = pull_seconds
        self._held_images: set[tuple[str, str]] = set()
        self._turns: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._servers: dict[str, Process] = {}
        # Of each user's pod, by namespace and name: its scheduler's name; and when it was first
        # seen (""), seen on its node ("binding") and said to run ("status").
        self.schedulers: dict[tuple[str, str], str] = {}
        self.times: dict[tuple[str, str, str], float] = {}
        # Two test runs on one machine keep apart.
        self._numbers = itertools.count(2)
        self._net = f"127.{16 + os.getpid() % 200}"

    def forget_images(self) -> None:
        """All nodes are as new: the next user of each image waits for a pull."""
        self._held_images.clear()

    def _see(self, pod: JSONObject) -> None:
        if _is_users(pod):
            self.schedulers[_place(pod)] = pod["spec"]["schedulerName"]
            self.times.setdefault(
                (*_place(pod), "binding" if pod["spec"].get("nodeName") else ""), time.time()
            )
        super()._see(pod)

    def _mark_running(self, pod: JSONObject) -> None:
        if not _is_users(pod):
            super()._mark_running(pod)
            return
        node, image = pod["spec"]["nodeName"], pod["spec"]["containers"][0]["image"]
        with self._guard:
            turn = self._turns.setdefault(node, threading.Lock())
        asked_at = time.monotonic()
        if self._holds(node, image):
            self._tell(pod, "Pulled", f'Container image "{image}" already present on machine')
        else:
            with turn:
                self._pull(pod, node, image, asked_at)
        with self._guard:
            number = next(self._numbers)
        address = f"{self._net}.{number // 250}.{number % 250 + 1}"
        self._run(pod, address)
        # Where a list is behind, a pod is said to run a second time.
        self.times.setdefault((*_place(pod), "status"), time.time())
        # With the uid: of a pod that was deleted meanwhile nothing is told.
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": running_status(pod, address)}
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        _persist(lambda: self._api.patch(path, body, content_type=STRATEGIC))

    def _holds(self, node: str, image: str) -> bool:
        """Whether a start needs no pull: such a start waits for no other on its node."""
        return not self._pull_seconds.get(image) or (node, image) in self._held_images

    def _pull(self, pod: JSONObject, node: str, image: str, asked_at: float) -> None:
        """Pull it, if no other pod's pull has brought it meanwhile: that was waited for, too."""
        seconds = 0.1
        if not self._holds(node, image):
            seconds = self._pull_seconds[image]
            self._tell(pod, "Pulling", f'Pulling image "{image}"')
            time.sleep(seconds)
            self._held_images.add((node, image))
        waited = max(seconds, time.monotonic() - asked_at)
        said = (
            f'Successfully pulled image "{image}" in {seconds:g}s ({waited:.1f}s including'
            " waiting). Image size: 1000000 bytes."
        )
        self._tell(pod, "Pulled", said)

    def _run(self, pod: JSONObject, address: str) -> None:
        (container,) = pod["spec"]["containers"]
        environment = {one["name"]: one.get("value", "") for one in container["env"]}
        meta = pod["metadata"]
        arguments = [str(_SERVER), address, str(PORT), jupyterhub.__version__]
        process = self._cluster.run.start(
            f"server-{meta['name']}-{meta['uid'][:8]}",
            Path(sys.executable),
            arguments,
            environment=environment,
        )
        with self._guard:
            self._servers[meta["uid"]] = process

    def _complete_deletion(self, pod: JSONObject) -> None:
        with self._guard:
            process = self._servers.pop(pod["metadata"]["uid"], None)
        if process is not None:
            process.kill()
        _persist(lambda: super(UserPods, self)._complete_deletion(pod))

    def _tell(self, pod: JSONObject, reason: str, message: str) -> None:
        """Write the Event that a kubelet writes."""
        meta, now = pod["metadata"], dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{meta['name']}."},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": meta["name"],
                "namespace": meta["namespace"],
                "uid": meta["uid"],
                "fieldPath": f"spec.containers{{{pod['spec']['containers'][0]['name']}}}",
            },
            "reason": reason,
            "message": message,
            "type": "Normal",
            "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        with contextlib.suppress(ApiError):  # of a pod that is gone
            _persist(lambda: self._api.create(event, meta["namespace"]))


def _place(pod: JSONObject) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _is_users(pod: JSONObject) -> bool:
    return bool(pod["metadata"].get("labels", {}).get("component") == "singleuser-server")


def _persist(call: Callable[[], object]) -> None:
    """Repeat a call while the API server is away, as kubelets do."""
    for _ in range(60):
        try:
            call()
        except (OSError, http.client.HTTPException):
            time.sleep(0.5)
        except ApiError as error:
            if error.status not in (403, 429) and error.status < 500:
                raise
            time.sleep(0.5)
        else:
            return
