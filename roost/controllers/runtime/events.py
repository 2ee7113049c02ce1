"""Write notices as Kubernetes Events; repeats increase an Event's count.

Events are created and patched, never read: the right to read them would cover everybody's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Notice
from roost_core.kube.client import CONFLICT, NOT_FOUND, ApiError, Client
from roost_core.kube.logs import utc_time
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL

# For Events about objects without a namespace.
CLUSTER_NAMESPACE: Final = "default"
REPEAT_SECONDS: Final = 600.0
MAX_MESSAGE: Final = 1024
MAX_REMEMBERED: Final = 10_000
# The source in `kubectl describe`.
COMPONENT: Final = "roost-controllers"
# The API versions of the kinds that notices are about; all others have v1.
_API_VERSIONS: Final = {"StatefulSet": "apps/v1"}


class _Written(NamedTuple):
    """The last time that a notice was written."""

    # On the writer's clock.
    at: float
    # The Event's count; None: an earlier leader created the Event, and nobody reads it.
    event_count: int | None


class EventWriter:
    """Writes notices; the same one at most once in REPEAT_SECONDS.

    Not thread-safe: one loop owns it.
    """

    def __init__(
        self,
        client: Client,
        instance: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        hub: str = "",
    ) -> None:
        """instance: this replica. hub: the release, because several hubs write Events about the
        same nodes.
        """
        self._client = client
        self._instance = instance
        self._clock = clock
        self._hub = hub
        self._written: dict[Notice, _Written] = {}

    def is_due(self, notice: Notice) -> bool:
        """Whether it wasn't written within REPEAT_SECONDS."""
        written = self._written.get(notice)
        return written is None or self._clock() - written.at >= REPEAT_SECONDS

    def write(self, notice: Notice) -> None:
        """Create the Event, or increase its count if it exists.

        Raises ClusterError; then it stays due.
        """
        namespace = notice.namespace or CLUSTER_NAMESPACE
        folder = f"/api/v1/namespaces/{namespace}/events"
        # The same name for the same notice, so that a restarted controller creates no second Event.
        text = "\n".join(
            (self._hub, notice.kind, notice.name, notice.uid, notice.reason, notice.message)
        )
        name = f"{notice.name[:200].rstrip('-.')}.{sha256(text.encode()).hexdigest()[:16]}"
        now = utc_time(time.time())
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
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        path = f"{folder}/{name}"
        written = self._written.get(notice)
        if written is not None:
            count = None if written.event_count is None else written.event_count + 1
            if self._repeat(path, now, count):
                self._remember(notice, count)
                return
            # The Event has expired: create it again.
        try:
            self._client.create(folder, event)
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            self._repeat(path, now, None)
            self._remember(notice, None)
        else:
            self._remember(notice, 1)

    def _repeat(self, path: str, now: str, count: int | None) -> bool:
        """Update the Event; False if it is gone, because Events expire after an hour.

        count=None leaves the count as it is.
        """
        changes: JSONObject = {"lastTimestamp": now}
        if count is not None:
            changes["count"] = count
        try:
            self._client.merge(path, changes, COMPONENT)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    def _remember(self, notice: Notice, count: int | None) -> None:
        now = self._clock()
        if len(self._written) >= MAX_REMEMBERED:
            self._written = {
                key: known
                for key, known in self._written.items()
                if now - known.at < REPEAT_SECONDS
            }
        self._written[notice] = _Written(now, count)
