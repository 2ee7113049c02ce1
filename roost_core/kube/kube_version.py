"""Read the cluster's Kubernetes minor from the API server (/version), and notice when it changes.

Plans that follow kube-scheduler's rules need the minor, and never assume one.
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
# So often the same new minor must be read. During an upgrade, the API servers have different
# versions, and answers alternate.
ALIKE_ANSWERS: Final = 2

log = logging.getLogger(__name__)


def read_minor(client: Client) -> int:
    """Return the cluster's minor: 36 for Kubernetes 1.36.

    Raises ClusterError, also if the response has no minor.
    """
    minor = client.get("/version").get("minor")
    # Some providers write "36+".
    number = re.match(r"\d+", str(minor))
    if number is None:
        raise ClusterError(
            f"GET /version: found minor {minor!r}, expected a number. Is this a Kubernetes API"
            " server?"
        )
    return int(number[0])


def wait_for_minor(client: Client, seconds: float, *, interval_seconds: float = 1.0) -> int:
    """Call `read_minor` until it succeeds, for `seconds`. Raises its last ClusterError."""
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
    """Read the minor every `seconds` until `stop`, or until it changes.

    minor: the minor before. on_change: called with another minor, after ALIKE_ANSWERS reads of it
    in a row. Then the function returns.
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
