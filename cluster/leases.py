"""Elect one of several replicas by a Lease, with the official client's election rules.

Ours is the loop around them: it stops, survives an unreachable API server and gives the Lease back, which the client's
own loop does not.
"""

from __future__ import annotations

import contextlib
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import urllib3
from kubernetes.client import CoordinationV1Api
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock import leaselock

from cluster.client import CONNECT_SECONDS, READ_SECONDS, ApiError, ClusterError
from placement.labels import OWN_PART, PART_OF_LABEL

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from cluster.client import Client, JSONObject

log = logging.getLogger(__name__)

# These classes carry no types.
_Config: Any = electionconfig.Config
_LeaderElection: Any = leaderelection.LeaderElection
_LeaseLock: Any = leaselock.LeaseLock

# Kubernetes' own defaults for leader election.
LEASE_SECONDS: Final = 15
RENEW_SECONDS: Final = 10
RETRY_SECONDS: Final = 2.0
CONFLICT: Final = 409


class Leadership:
    """Whether this replica holds the Lease. `run` belongs to one thread, `is_leader` may be asked from any."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        owner: Callable[[], JSONObject | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare. `owner`: gives an ownerReference, so that the Lease goes with its owner."""
        self._client = client
        self._clock = clock
        self._owner = owner
        self._name = name
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._exists = False
        self._identity = identity
        lock = _LeaseLock(name, namespace, identity)
        # The lock would talk through the client's global configuration, and wait for ever for answers.
        api: Any = CoordinationV1Api(client.api_client)
        for request in ("read_namespaced_lease", "replace_namespaced_lease"):
            setattr(api, request, partial(getattr(api, request), _request_timeout=(CONNECT_SECONDS, READ_SECONDS)))
        lock.api_instance = api
        lock.create = self._note_missing
        nothing: Callable[[], None] = lambda: None  # noqa: E731 - the client's loop, which would call it, isn't used
        self._election = _LeaderElection(_Config(lock, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS, nothing, nothing))
        self._renewed_at: float | None = None

    @property
    def is_leader(self) -> bool:
        """True from a renewal until RENEW_SECONDS after: well before another replica may take over."""
        renewed_at = self._renewed_at
        return renewed_at is not None and self._clock() - renewed_at < RENEW_SECONDS

    def run(self, stop: threading.Event) -> None:
        """Try for the Lease and renew it until `stop`, then give it back."""
        was_leader = False
        while True:
            self.try_once()
            if self.is_leader != was_leader:
                was_leader = self.is_leader
                log.info("lease %s identity=%s", "held" if was_leader else "lost", self._identity)
            if stop.wait(RETRY_SECONDS):
                break
        self.release()

    def try_once(self) -> None:
        """Acquire or renew once; failures leave things as they are."""
        # Before the request: the others count from the time written in it.
        began_at = self._clock()
        try:
            self._ensure_lease()
            if self._election.try_acquire_or_renew():
                self._renewed_at = began_at
            elif self._renewed_at is not None and self._is_somebody_elses():
                self._renewed_at = None
        except (ClusterError, urllib3.exceptions.HTTPError, OSError) as error:
            log.warning("lease can't be had: %s", error if isinstance(error, ClusterError) else type(error).__name__)
        except Exception:  # the thread must outlive faults of the client's election, which parses what others wrote
            log.exception("lease can't be renewed")

    def release(self) -> None:
        """Give the Lease back, so that another replica needn't wait for its end."""
        if not self.is_leader:
            return
        self._renewed_at = None
        with contextlib.suppress(ClusterError, KeyError):
            lease = self._client.get(f"{self._folder}/{self._name}")
            if lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"]["holderIdentity"] = ""
                self._client.replace(f"{self._folder}/{self._name}", lease)

    def _ensure_lease(self) -> None:
        """Make an empty Lease when there is none: the client's election would make one that nobody owns."""
        if self._exists:
            return
        if self._client.find(f"{self._folder}/{self._name}") is None:
            metadata: JSONObject = {"name": self._name, "labels": {PART_OF_LABEL: OWN_PART}}
            owner = self._owner()
            if owner is not None:
                metadata["ownerReferences"] = [owner]
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}
            try:
                self._client.create(self._folder, body)
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
        self._exists = True

    def _note_missing(self, **_: object) -> bool:
        """Instead of the client's own way to make a Lease: the next try makes it anew, with its owner."""
        self._exists = False
        return False

    def _is_somebody_elses(self) -> bool:
        observed = self._election.observed_record
        return observed is not None and observed.holder_identity != self._identity
