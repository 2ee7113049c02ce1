"""Ask the API server which minor of Kubernetes the cluster is, and notice when that changes.

Owns /version. Guarantee: nobody who plans by kube-scheduler's rules goes by a minor that was merely assumed.
"""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Final, Protocol

from roost_core.kube.client import ClusterError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

ASK_AGAIN_SECONDS: Final = 120.0
# While a control plane is being upgraded, its replicas answer differently.
ALIKE_ANSWERS: Final = 2

log = logging.getLogger(__name__)


class Asker(Protocol):
    """What can ask the API server: `roost_core.kube.client.Client`."""

    def get(self, path: str, /) -> object:
        """The object at a path; raises ClusterError."""


def read_minor(client: Asker) -> int:
    """36 for Kubernetes 1.36 and "36+". Raises ClusterError, also when the answer names none."""
    answer = client.get("/version")
    found = answer.get("minor") if isinstance(answer, dict) else answer
    number = re.match(r"\d+", str(found))
    if number is None:
        raise ClusterError(f"GET /version: found minor {found!r}, expected a number. Is this a Kubernetes API server?")
    return int(number[0])


def wait_for_minor(client: Asker, seconds: float, *, interval_seconds: float = 1.0) -> int:
    """`read_minor`, asked again for so long while the API server doesn't answer. Raises its last ClusterError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return read_minor(client)
        except ClusterError as error:
            if time.monotonic() >= deadline:
                raise
            log.warning("the cluster's version could not be read, asking again: %s", error)
            time.sleep(interval_seconds)


def follow_minor(
    client: Asker,
    minor: int,
    stop: threading.Event,
    on_change: Callable[[int], None],
    *,
    seconds: float = ASK_AGAIN_SECONDS,
) -> None:
    """Ask again and again, until `stop` or until another minor has answered twice running: then tell it and return."""
    seen, times = minor, 0
    while not stop.wait(seconds):
        try:
            found = read_minor(client)
        except ClusterError as error:
            log.warning("the cluster's version could not be read: %s", error)
            continue
        times = times + 1 if found == seen else 1
        seen = found
        if seen != minor and times >= ALIKE_ANSWERS:
            on_change(seen)
            return
