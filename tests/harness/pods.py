"""Stand in for kubelets: bound pods start, deleted pods go.

Owns the status of pods on fake nodes. Pulls nothing and runs nothing.
"""

import datetime as dt
import http.client
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from roost_core.objects.fields import JSONObject
from tests.harness.api import STRATEGIC, Api, ApiError, Watch
from tests.harness.life import Started
from tests.harness.talk import say

PODS = "/api/v1/pods"
# A watch ends by itself this often, and is then resumed.
WATCH_SECONDS = 240
PARALLEL_REQUESTS = 4
# A kubelet tries again while an API server restarts; one that stays away is a fault of the test.
TRIES, TRIES_SECONDS = 40, 0.5


class PodKeeper(Started):
    """Marks pods Running and Ready once a scheduler has bound them, and completes deletions.

    hold: pods for which it's true stay as they are (a pull that takes long); `release` looks at
    them again. leave: pods that somebody else keeps, a real kubelet. parallel_requests: at a time;
    more for many pods a second on a slow machine.
    """

    def __init__(
        self,
        api: Api,
        *,
        hold: Callable[[JSONObject], bool] = lambda _: False,
        leave: Callable[[JSONObject], bool] = lambda _: False,
        parallel_requests: int = PARALLEL_REQUESTS,
    ) -> None:
        self._api = api
        self._hold = hold
        self._leave = leave
        self._parallel_requests = parallel_requests
        self._stopping = threading.Event()
        self._watch: Watch | None = None
        self._started: set[str] = set()
        self._held: dict[str, JSONObject] = {}
        self._addresses = itertools.count(2)
        self._lock = threading.Lock()
        self._faults: list[BaseException] = []
        self._version: str | None = None
        self._thread = threading.Thread(target=self._work, name="pod-keeper", daemon=True)

    def start(self) -> Self:
        self._pool = ThreadPoolExecutor(self._parallel_requests, thread_name_prefix="pod-keeper")
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop within moments.

        Raises what went wrong meanwhile: pods that weren't kept spoil a test.
        """
        self._stopping.set()
        if self._watch is not None:
            self._watch.close()
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)
        if self._faults:
            raise self._faults[0]

    def release(self, hold: Callable[[JSONObject], bool] = lambda _: False) -> None:
        """Replace the rule for held pods, and look at those again."""
        with self._lock:
            self._hold, held, self._held = hold, self._held, {}
        for pod in held.values():
            self._see(pod)

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self._list_and_watch()
            except ApiError as error:
                self._version = None  # 410 Gone, or refused: list again
                if error.status != 410:
                    self._note(error)
            except (OSError, http.client.HTTPException, ValueError) as error:
                # The connection broke, or was hung up by `stop`. Haste wouldn't mend it.
                if not self._stopping.is_set():
                    say(f"pod keeper: watch broke, resuming: {error!r}")
                    self._stopping.wait(0.2)

    def _list_and_watch(self) -> None:
        if self._version is None:
            listed = self._api.get(PODS)
            for pod in listed["items"]:
                self._see(pod)
            self._version = listed["metadata"]["resourceVersion"]
        self._watch = self._api.watch(
            PODS,
            timeout_seconds=WATCH_SECONDS,
            resourceVersion=self._version,
            allowWatchBookmarks=True,
        )
        if self._stopping.is_set():  # `stop` came before there was a watch to close
            self._watch.close()
        for kind, pod in self._watch:
            self._version = pod["metadata"]["resourceVersion"]
            if kind in ("ADDED", "MODIFIED"):
                self._see(pod)
            elif kind == "DELETED":
                self._started.discard(pod["metadata"]["uid"])

    def _see(self, pod: JSONObject) -> None:
        status, meta = pod.get("status", {}), pod["metadata"]
        if not pod["spec"].get("nodeName"):
            return  # the API server itself removes an unbound pod at once
        if self._leave(pod):
            return
        if meta.get("deletionTimestamp"):
            self._submit(self._complete_deletion, pod)
        elif status.get("phase", "Pending") == "Pending":
            with self._lock:
                if self._hold(pod):
                    self._held[meta["uid"]] = pod
                    return
                if meta["uid"] in self._started:  # seen again before our own change came round
                    return
                self._started.add(meta["uid"])
            self._submit(self._mark_running, pod)

    def _submit(self, work: Callable[[JSONObject], None], pod: JSONObject) -> None:
        if not self._stopping.is_set():
            try:
                self._pool.submit(self._persist, work, pod)
            except RuntimeError:  # the pool was shut down just now
                if not self._stopping.is_set():
                    raise

    def _persist(self, work: Callable[[JSONObject], None], pod: JSONObject) -> None:
        for left in reversed(range(TRIES)):
            try:
                work(pod)
            except ApiError as error:
                # Gone, or another one of that name, which a change of status tells so: nothing left
                # to keep.
                if error.status in (404, 409) or "metadata.uid" in str(error):
                    return
                fault: Exception = error
                if error.status < 500 and error.status != 429:
                    break
            except (OSError, http.client.HTTPException) as error:
                fault = error
            else:
                return
            if left and self._stopping.wait(TRIES_SECONDS):
                return
        self._note(fault)

    def _mark_running(self, pod: JSONObject) -> None:
        with self._lock:
            number = next(self._addresses)
        address = f"10.{128 + number // 65536 % 128}.{number // 256 % 256}.{number % 256}"
        self._api.patch(
            f"{path_of(pod)}/status", _of(pod, running_status(pod, address)), content_type=STRATEGIC
        )

    def _complete_deletion(self, pod: JSONObject) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._api.delete(path_of(pod), options)

    def _note(self, error: BaseException) -> None:
        if not self._stopping.is_set():
            self._faults.append(error)


def running_status(pod: JSONObject, address: str) -> JSONObject:
    """What a kubelet would write now if all containers run and are ready."""
    moment = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    running = {"running": {"startedAt": moment}}
    spec = pod["spec"]
    inits = [
        # A sidecar is an init container that keeps running.
        _container_status(c, running if c.get("restartPolicy") == "Always" else _done(moment))
        for c in spec.get("initContainers", [])
    ]
    kinds = ("Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": moment,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": moment} for kind in kinds
        ],
        "containerStatuses": [_container_status(c, running) for c in spec["containers"]],
        **({"initContainerStatuses": inits} if inits else {}),
    }


def _container_status(container: JSONObject, state: JSONObject) -> JSONObject:
    image, runs = container["image"], "running" in state
    status = {
        "name": container["name"],
        "image": image,
        "imageID": image,
        "ready": True,
        "started": runs,
    }
    return {**status, "restartCount": 0, "state": state}


def _done(moment: str) -> JSONObject:
    return {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": moment,
            "finishedAt": moment,
        }
    }


def _of(pod: JSONObject, status: JSONObject) -> JSONObject:
    # With the uid, a pod of the same name that came later isn't touched: the API server answers
    # 409.
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}


def is_ready(pod: JSONObject) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def path_of(pod: JSONObject) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
