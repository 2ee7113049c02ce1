"""Elect one of several replicas by a Lease, by client-go's rules.

The official client has a leader election, too. It uses a clock that may jump, can't be stopped,
ends its thread after a network error, and never releases the Lease
(docs/decisions/0002-webhook-server.md). Source: k8s.io/client-go/tools/leaderelection.
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
# How long to wait for an answer. It leaves time for a second try within RENEW_SECONDS.
READ_SECONDS: Final = 4.0


def steady_seconds() -> float:
    """Seconds of a monotonic clock, which also runs while the machine sleeps, if there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Leadership:
    """Whether this replica holds the Lease.

    `run` belongs to one thread. `is_leader` may be read from any thread.

    Two replicas never lead at once, whatever their clocks show. A leader stops RENEW_SECONDS after
    it began its last renewal. Another replica takes over no earlier than LEASE_SECONDS after it
    first saw that renewal.
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
        """identity: the name of this replica in the Lease. owner: returns an ownerReference, so
        that the Lease is deleted with its owner.

        is_fit: whether this replica can do the leader's work. While it can't, it neither asks for
        the Lease nor keeps it. clock: monotonic seconds.
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
        # When this replica first saw the Lease's present spec.
        self._observed_at = 0.0
        # When this replica began its last renewal; None: it doesn't hold the Lease.
        self._renewed_at: float | None = None

    @property
    def is_leader(self) -> bool:
        """True for RENEW_SECONDS after a renewal. Only later may another replica take over."""
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
        """Try once to acquire or renew the Lease. A failure changes nothing."""
        # Before the request: other replicas count from when they see its result, which is later.
        began_at = self._clock()
        try:
            is_held = self._acquire_or_renew()
            if is_held:
                self._renewed_at = began_at
            elif self._holder != self._identity:
                self._renewed_at = None
        except ClusterError as error:
            log.warning("lease can't be acquired: %s", error)
        except Exception:  # whatever others wrote into the Lease must not end the thread
            log.exception("lease can't be renewed")

    def release(self) -> None:
        """Release the Lease, so that another replica needn't wait for its expiry."""
        if not self.is_leader:
            return
        self._renewed_at = None
        with contextlib.suppress(ClusterError):
            self._note(self._client.get(self._path, read_seconds=READ_SECONDS))
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
        """Returns whether this replica holds the Lease now. Raises ClusterError."""
        if self.is_leader and self._holder == self._identity:
            # The leader needn't read the Lease first: its write fails if another replica has
            # written.
            is_renewed = self._renew()
            if is_renewed:
                return True
        lease = self._client.find(self._path, read_seconds=READ_SECONDS)
        if lease is None:
            return self._create()
        self._note(lease)
        duration = self._spec.get("leaseDurationSeconds")
        if not isinstance(duration, int) or duration <= 0:
            duration = LEASE_SECONDS
        # By this replica's clock, never by the time in the Lease.
        is_expired = self._clock() - self._observed_at > duration
        is_of_another = self._holder not in ("", self._identity)
        if is_of_another and not is_expired:
            return False
        return self._renew()

    def _note(self, lease: JSONObject) -> None:
        """Keep the Lease as read or written, and since when it has had its spec."""
        if lease.get("spec") != self._lease.get("spec"):
            self._observed_at = self._clock()
        self._lease = lease

    def _create(self) -> bool:
        """Create the Lease for this replica. False: another replica was faster."""
        metadata: JSONObject = {"name": self._name, "labels": {PART_OF_LABEL: OWN_PART}}
        owner = self._owner()
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        now = _now_as_micro_time()
        spec = self._held_by_us({"acquireTime": now, "leaseTransitions": 0}, now)
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        try:
            self._note(self._client.create(self._folder, body))
        except ApiError as error:
            if error.status == CONFLICT:
                return False
            raise
        return True

    def _renew(self) -> bool:
        """Write this replica's identity into the Lease as last read.

        False: the Lease has changed since, or is gone.
        """
        now = _now_as_micro_time()
        spec = dict(self._spec)
        if self._holder != self._identity:
            transitions = spec.get("leaseTransitions")
            if not isinstance(transitions, int):
                transitions = 0
            spec["acquireTime"] = now
            spec["leaseTransitions"] = transitions + 1
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
        lease = {**self._lease, "spec": spec}
        self._note(self._client.replace(self._path, lease, read_seconds=READ_SECONDS))


def _now_as_micro_time() -> str:
    """The present time as Kubernetes' MicroTime."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
