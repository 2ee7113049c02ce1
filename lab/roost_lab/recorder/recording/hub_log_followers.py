"""Follow the logs of the hubs' own pods, a thread for each, and tell what they say of starts.

A hub's log is read from its beginning, and after a broken connection from the last line on: what is
told twice is the consumer's to drop. A log that can't be read is said once, and tried again:
nothing else waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple

from roost_core.kube.client import ApiError, Client, ClusterError, Query
from roost_core.kube.event_stream import WatchEvent, WatchEventType
from roost_core.placement.labels import COMPONENT_LABEL
from roost_lab.recorder.recording.hub_log import HUB, HubNews, is_hub_line, read_hub_line
from roost_lab.recorder.recording.reading import PodReading, micros
from roost_lab.units import US

log = logging.getLogger(__name__)
# The kind of the notices.
HUB_LOG: Final = "hub-log"
# A log is silent where nobody comes; after this long the connection may as well be dead.
SILENCE_SECONDS: Final = 300.0
RETRY_SECONDS: Final = 1.0
# Without the right. A container that hasn't begun (400) or a kubelet that is away (500, 502) is
# tried again soon.
REFUSED_SECONDS: Final = 60.0
_REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
# JupyterHub says more than this at its start; if none is in its format, none will be.
FIRST_LINES: Final = 50
# A log that is so old and has no line of JupyterHub's format gets none. A newer log may have only
# what comes before JupyterHub.
OLD_SECONDS: Final = 60.0


class LogNotice(NamedTuple):
    """What a hub's log says, or that what stood in it has been read, or that it can't be."""

    hub: PodReading
    # None: nothing of a start.
    news: HubNews | None
    is_read: bool
    # When its first line was written, in microseconds; earlier ones are gone. 0: not known.
    begin_us: int


class HubLogs:
    """The threads. All methods are called by one other thread."""

    def __init__(
        self, client: Client, tell: Callable[[WatchEvent], None], on_error: Callable[[str], None]
    ) -> None:
        """tell: takes a notice of kind HUB_LOG, whose item is a LogNotice."""
        self._client = client
        self._tell = tell
        self._on_error = on_error
        # What ends each thread, by the pod's uid.
        self.followed: dict[str, threading.Event] = {}

    def pod_changed(self, pod: PodReading) -> None:
        """Follow its log if it is a hub's pod that runs."""
        uid = pod.state.uid
        if (
            pod.state.labels.get(COMPONENT_LABEL) == HUB
            and pod.state.phase == "Running"
            and uid not in self.followed
        ):
            stop = self.followed[uid] = threading.Event()
            threading.Thread(
                target=self._follow, args=(pod, stop), name=f"log-{pod.state.key}", daemon=True
            ).start()

    def pod_gone(self, uid: str) -> None:
        """Its log ends by itself; what is left of it is read to the end."""
        if uid in self.followed:
            self.followed.pop(uid).set()

    def _follow(self, pod: PodReading, stop: threading.Event) -> None:
        path = f"/api/v1/namespaces/{pod.state.namespace}/pods/{pod.state.name}/log"
        since = fault = text = ""
        lines = own = begin_us = 0
        is_odd = False
        # What stands there is read first: who asks who is waited for must know when it has been.
        follows = False

        def tell(news: HubNews | None, *, is_read: bool = True) -> None:
            item = LogNotice(pod, news, is_read, begin_us)
            self._tell(
                WatchEvent(HUB_LOG, WatchEventType.LISTED, pod.state.key, item, "", time.time())
            )

        def judge() -> None:
            nonlocal is_odd
            if not own and not is_odd:
                is_odd = True
                log.warning("hub %s: found a log like %r, %s", pod.state.key, text[:100], _EXPECTED)

        while not stop.is_set():
            since_then = {"sinceTime": since} if since else {}
            query: Query = {"container": HUB, "follow": follows, "timestamps": True, **since_then}
            wait_seconds = RETRY_SECONDS
            try:
                for raw in self._client.lines(path, query, SILENCE_SECONDS):
                    text = raw.decode(errors="replace").rstrip("\n")
                    stamp = text.partition(" ")[0]
                    told_us = micros(stamp)
                    if told_us is not None:
                        since = stamp
                        begin_us = begin_us or told_us
                    lines = lines + 1
                    own = own + is_hub_line(text)
                    if lines == FIRST_LINES:
                        judge()
                    news = read_hub_line(text)
                    if news is not None or (follows and own == 1):
                        tell(news)
                if not follows:
                    if lines and time.time() - begin_us / US > OLD_SECONDS:
                        judge()
                    tell(None, is_read=own > 0)
                    follows = True
                    wait_seconds = 0.0
            except ApiError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return
                is_refused = error.status in _REFUSED
                wait_seconds = REFUSED_SECONDS if is_refused else RETRY_SECONDS
                self._on_error(HUB_LOG)
                if str(error) != fault:
                    fault = str(error)
                    advice = f"{_UNKNOWN}{_RIGHT if is_refused else ''}"
                    log.warning(
                        "hub %s: its log can't be read: %s; %s", pod.state.key, fault, advice
                    )
                    own = 0
                    tell(None, is_read=False)
            except ClusterError as error:
                log.debug("hub %s: its log broke off: %s", pod.state.key, error)
            stop.wait(wait_seconds)


_UNKNOWN: Final = "when its users' servers answer isn't recorded"
_RIGHT: Final = ". recorder.hubLogs gives the right to read it"
_EXPECTED: Final = (
    "expected lines of JupyterHub's own format, [I 2026-11-26 08:00:00.000 JupyterHub app:1] …:"
    " when its users' servers answer isn't recorded. Don't set JupyterHub.log_format and"
    " log_datefmt."
)
