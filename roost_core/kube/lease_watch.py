"""Read another program's Lease every few seconds, and notice when its holder stops renewing it or
returns.

Like client-go's leader election, it reads instead of watching: only a response of the API server
proves that an unchanged Lease is not being renewed, rather than that the watch has died.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Final

from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.kube.leader_election import READ_SECONDS, steady_seconds
from roost_core.placement.beliefs import LOOK_SECONDS
from roost_core.placement.lease_state import LeaseObserver, LeaseState

log = logging.getLogger(__name__)

# The account's token or its rights are gone.
REFUSED: Final = frozenset({401, 403})


class LeaseWatch:
    """The state of a Lease.

    `run` belongs to one thread, everything else is safe to call from any.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        host: str = "",
        on_change: Callable[[], None] = lambda: None,
        on_error: Callable[[str], None] = lambda _kind: None,
        steady: Callable[[], float] = steady_seconds,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """on_change: called after `state` has changed; on_error: with `kind`, after a failed read.

        host: of the holder that is asked for, as for LeaseObserver.
        """
        self.kind = f"lease/{name}"
        self._client = client
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        self._on_change = on_change
        self._on_error = on_error
        self._steady = steady
        self._wall = wall
        self._observer = LeaseObserver(host_prefix=f"{name}-", wanted_host=host)
        # Whether the Lease was read at least once, successfully or not.
        self.has_looked = False
        # Why the last read failed; "" if it didn't.
        self.fault = ""

    @property
    def state(self) -> LeaseState:
        """The state by the last read; UNKNOWN before the first."""
        return self._observer.state

    def age_seconds(self) -> float:
        """Seconds since the last renewal; NaN if none was observed."""
        age = self._observer.age_seconds(self._steady())
        return math.nan if age is None else age

    def run(self, stop: threading.Event) -> None:
        """Read the Lease again and again until `stop`."""
        while not stop.is_set():
            self.look()
            stop.wait(LOOK_SECONDS)

    def look(self) -> None:
        """Read the Lease once."""
        before = self.state
        self._tell_fault(self._read())
        is_first_look = not self.has_looked
        self.has_looked = True
        if is_first_look or self.state is not before:
            log.info("lease seen kind=%s state=%s", self.kind, self.state)
            self._on_change()

    def _read(self) -> str:
        """Read the Lease; why that failed, "" if it didn't."""
        try:
            lease = self._client.find(self._path, read_seconds=READ_SECONDS)
            self._observer.see(lease, self._steady(), self._wall())
        except ClusterError as error:
            is_refused = isinstance(error, ApiError) and error.status in REFUSED
            self._observer.fail(self._steady(), is_refused=is_refused)
            self._on_error(self.kind)
            return str(error)
        except Exception:  # the thread must outlive whatever others may have written into the Lease
            log.exception("lease not understood kind=%s", self.kind)
            # As a refusal: time without it isn't excused.
            self._observer.fail(self._steady(), is_refused=True)
            return "not understood"
        return ""

    def _tell_fault(self, fault: str) -> None:
        """Log why the Lease can't be read, or that it can again, when that changed."""
        if fault != self.fault:
            level = logging.WARNING if fault else logging.INFO
            log.log(level, "lease kind=%s: %s", self.kind, fault or "can be read again")
        self.fault = fault
