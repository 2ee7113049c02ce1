"""Read the cluster's Kubernetes minor from the API server, and notice when it changes.

Owns /version. Guarantee: nobody who plans by kube-scheduler's rules goes by a minor that was merely
assumed.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Final

from roost_core.kube.client import Client, ClusterError

ASK_AGAIN_SECONDS: Final = 120.0
# During an upgrade of the control plane, its replicas have different versions.
ALIKE_ANSWERS: Final = 2

log = logging.getLogger(__name__)


def read_minor(client: Client) -> int:
    """Return 36 for Kubernetes 1.36 and "36+".

    Raises ClusterError, also if the response has no minor.
    """
    written = client.get("/version").get("minor")
    number = re.match(r"\d+", str(written))
    if number is None:
        raise ClusterError(
            f"GET /version: found minor {written!r}, expected a number. Is this a Kubernetes API"
            " server?"
        )
    return int(number[0])


def wait_for_minor(client: Client, seconds: float, *, interval_seconds: float = 1.0) -> int:
    """Call `read_minor` until it succeeds, for this long. Raises its last ClusterError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return read_minor(client)
        except ClusterError as error:
            if time.monotonic() >= deadline:
                raise
            log.warning("the cluster's version could not be read, retrying: %s", error)
            time.sleep(interval_seconds)


def follow_minor(
    client: Client,
    minor: int,
    stop: threading.Event,
    on_change: Callable[[int], None],
    *,
    seconds: float = ASK_AGAIN_SECONDS,
) -> None:
    """Poll until `stop`, or until another minor was read twice in a row: then report it and
    return.
    """
    last = minor
    times = 0
    while not stop.wait(seconds):
        try:
            current = read_minor(client)
        except ClusterError as error:
            log.warning("the cluster's version could not be read: %s", error)
            continue
        times = times + 1 if current == last else 1
        last = current
        if last != minor and times >= ALIKE_ANSWERS:
            on_change(last)
            return
