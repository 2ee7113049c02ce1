"""Tell operators by Events: one plain sentence each, repeats counted instead of written anew.

Events are created and patched, never read: the right to read would show those of everybody.
"""

from __future__ import annotations

import time
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.kube.client import ApiError
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from roost.controllers.contract.actions import Notice
    from roost_core.kube.client import Client, JSONObject

# Events of objects without a namespace live here.
CLUSTER_NAMESPACE: Final = "default"
REPEAT_SECONDS: Final = 600.0
MAX_MESSAGE: Final = 1024
MAX_REMEMBERED: Final = 10_000
# What `kubectl get events` shows as the source.
COMPONENT: Final = "roost-controllers"
NOT_FOUND: Final = 404
CONFLICT: Final = 409
_API_VERSIONS: Final = {"Node": "v1", "Pod": "v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1"}


def timestamp() -> str:
    """Now, as Kubernetes writes times: RFC 3339, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class _Told(NamedTuple):
    """A notice that was written."""

    at: float
    # How often, as far as we know; 0: somebody before us wrote it, and how often we can't tell.
    times: int


class EventWriter:
    """Writes notices; the same one at most once in REPEAT_SECONDS. Not thread-safe: one loop owns it."""

    def __init__(
        self, client: Client, instance: str, clock: Callable[[], float] = time.monotonic, *, hub: str = ""
    ) -> None:
        """Prepare. instance: this replica. hub: whose notices these are; several hubs tell of the same nodes."""
        self._client = client
        self._instance = instance
        self._clock = clock
        self._hub = hub
        self._told: dict[Notice, _Told] = {}

    def is_due(self, notice: Notice) -> bool:
        """Whether it wasn't told lately."""
        told = self._told.get(notice)
        return told is None or self._clock() - told.at >= REPEAT_SECONDS

    def write(self, notice: Notice) -> None:
        """Create the Event, or count it up when it is there. Raises ClusterError; then it stays due."""
        namespace = notice.namespace or CLUSTER_NAMESPACE
        folder = f"/api/v1/namespaces/{namespace}/events"
        # The same name for the same thing: a restarted controller writes no second Event.
        text = "\n".join((self._hub, notice.kind, notice.name, notice.uid, notice.reason, notice.message))
        name = f"{notice.name[:200].rstrip('-.')}.{sha256(text.encode()).hexdigest()[:16]}"
        moment = timestamp()
        event: JSONObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace, "labels": {PART_OF_LABEL: OWN_PART}},
            "involvedObject": {
                "apiVersion": _API_VERSIONS.get(notice.kind, "v1"),
                "kind": notice.kind,
                "name": notice.name,
                **({"namespace": notice.namespace} if notice.namespace else {}),
                "uid": notice.uid,
            },
            "type": "Warning" if notice.warning else "Normal",
            "reason": notice.reason,
            "message": notice.message[:MAX_MESSAGE],
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        told = self._told.get(notice)
        times = 1 if told is None else told.times and told.times + 1
        if told is None or not self._repeat(f"{folder}/{name}", moment, times):
            try:
                self._client.create(folder, event)
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
                times = 0
                self._repeat(f"{folder}/{name}", moment, times)
        self._remember(notice, times)

    def _repeat(self, path: str, moment: str, count: int) -> bool:
        """Say that it happened again; False when the Event is gone, as Events are after an hour."""
        try:
            self._client.merge(path, {"lastTimestamp": moment, **({"count": count} if count else {})}, COMPONENT)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    def _remember(self, notice: Notice, times: int) -> None:
        now = self._clock()
        if len(self._told) >= MAX_REMEMBERED:
            self._told = {one: told for one, told in self._told.items() if now - told.at < REPEAT_SECONDS}
        self._told[notice] = _Told(now, times)
