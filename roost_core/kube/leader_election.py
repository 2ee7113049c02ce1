"""Elect one of several replicas by a Lease, by client-go's rules.

The official client's leader election uses a clock that may jump, can't be stopped, ends its thread
on a network error and never releases the Lease. (docs/decisions/0002-webhook-server.md) Source:
k8s.io/client-go/tools/leaderelection.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from roost_core.kube.client import CONFLICT, NOT_FOUND, ApiError, Client, ClusterError
from roost_core.objects.fields import JSONObject
from roost_core.placement.beliefs import LEASE_SECONDS
from roost_core.placement.labels import OWN_PART, PART_OF_LABEL

log = logging.getLogger(__name__)

# Kubernetes' defaults for leader election.
RENEW_SECONDS: Final = 10
RETRY_SECONDS: Final = 2.0
# A second try within RENEW_SECONDS is better than a longer wait.
READ_SECONDS: Final = 4.0


def steady_seconds() -> float:
    """Seconds of a monotonic clock, which also runs while the machine sleeps, if there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Leadership:
    """Whether this replica holds the Lease. `run` belongs to one thread, `is_leader` is safe to
    read from any.

    Two never lead at once, whatever their clocks show: who leads stops RENEW_SECONDS after it began
    to renew; another takes over no earlier than LEASE_SECONDS after it first saw that renewal.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        owner: Callable[[], JSONObject | None] = lambda: None,
        is_fit: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        """owner: returns an ownerReference, so that the Lease is deleted with its owner.

        is_fit: whether this replica could do the leader's work; while not, it neither asks for the
        Lease nor keeps it.
        """
        self._client = client
        self._clock = clock
        self._owner = owner
        self._is_fit = is_fit
        self._name = name
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._folder}/{name}"
        self._identity = identity
        # As last read or written.
        self._lease: JSONObject = {}
        # Since when it has had this spec, as far as this replica saw.
        self._observed_at = 0.0
        self._renewed_at: float | None = None

    @property
    def is_leader(self) -> bool:
        """True from a renewal until RENEW_SECONDS after: well before another replica may take
        over.
        """
        renewed_at = self._renewed_at
        return renewed_at is not None and self._clock() - renewed_at < RENEW_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Acquire and renew the Lease until `stop`, then release it."""
        was_leader = False
        while True:
            if self._is_fit():
                self.try_once()
            else:
                self.release()
            if self.is_leader != was_leader:
                was_leader = self.is_leader
                log.info("lease %s identity=%s", "held" if was_leader else "lost", self._identity)
            if stop.wait(RETRY_SECONDS):
                break
        self.release()

    def try_once(self) -> None:
        """Acquire or renew once; failures change nothing."""
        # Before the request: other replicas count from when they observe it.
        began_at = self._clock()
        try:
            if self._acquire_or_renew():
                self._renewed_at = began_at
            elif self._holder != self._identity:
                self._renewed_at = None
        except ClusterError as error:
            log.warning("lease can't be acquired: %s", error)
        except Exception:  # the thread must outlive whatever others may have written into the Lease
            log.exception("lease can't be renewed")

    def release(self) -> None:
        """Release the Lease, so that another replica needn't wait for its expiry."""
        if not self.is_leader:
            return
        self._renewed_at = None
        with contextlib.suppress(ClusterError):
            self._see(self._client.get(self._path, read_seconds=READ_SECONDS))
            if self._holder == self._identity:
                self._write({**self._spec, "holderIdentity": ""})

    # The Lease

    @property
    def _spec(self) -> JSONObject:
        return self._lease.get("spec") or {}

    @property
    def _holder(self) -> str:
        return str(self._spec.get("holderIdentity") or "")

    def _acquire_or_renew(self) -> bool:
        # The leader needn't read first: its write fails if another replica has written.
        if self.is_leader and self._holder == self._identity and self._renew():
            return True
        lease = self._client.find(self._path, read_seconds=READ_SECONDS)
        if lease is None:
            return self._create()
        self._see(lease)
        # By our own clock, never by the time in the Lease.
        lasts = self._spec.get("leaseDurationSeconds")
        lasts = lasts if isinstance(lasts, int) and lasts > 0 else LEASE_SECONDS
        if self._holder not in ("", self._identity) and self._clock() - self._observed_at <= lasts:
            return False
        return self._renew()

    def _see(self, lease: JSONObject) -> None:
        if lease.get("spec") != self._lease.get("spec"):
            self._observed_at = self._clock()
        self._lease = lease

    def _create(self) -> bool:
        metadata: JSONObject = {"name": self._name, "labels": {PART_OF_LABEL: OWN_PART}}
        owner = self._owner()
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        now = _micro_time()
        spec = self._held_by_us({"acquireTime": now, "leaseTransitions": 0}, now)
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        try:
            self._see(self._client.create(self._folder, body))
        except ApiError as error:
            if error.status == CONFLICT:
                return False
            raise
        return True

    def _renew(self) -> bool:
        """Write our identity into the Lease as last read; False if it has changed or is gone."""
        now = _micro_time()
        spec = dict(self._spec)
        if self._holder != self._identity:
            transitions = spec.get("leaseTransitions")
            spec |= {
                "acquireTime": now,
                "leaseTransitions": (transitions if isinstance(transitions, int) else 0) + 1,
            }
        try:
            self._write(self._held_by_us(spec, now))
        except ApiError as error:
            if error.status in (CONFLICT, NOT_FOUND):
                return False
            raise
        return True

    def _held_by_us(self, spec: JSONObject, now: str) -> JSONObject:
        return {
            **spec,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        }

    def _write(self, spec: JSONObject) -> None:
        self._see(
            self._client.replace(
                self._path, {**self._lease, "spec": spec}, read_seconds=READ_SECONDS
            )
        )


def _micro_time() -> str:
    """The present time as Kubernetes' MicroTime."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
