"""What hubs' logs say while a cluster is watched: which servers run that haven't answered yet.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roost_lab.recorder.recording.hub_log import EARLY_US, LONGEST_US, HubNews, server_of
from roost_lab.recorder.recording.hub_log_followers import LogNotice
from roost_lab.recorder.recording.reading import PodReading
from roost_lab.recorder.store.phases import ANSWER, CONTAINERS
from roost_lab.report.start_phases import PHASE_NAMES


class Answers:
    """Heard in the logs' threads, asked in any other."""

    def __init__(self) -> None:
        # By the uid of the hub's pod, once what stood in its log is read: since when it tells;
        # None: it can't be read.
        self.begins: dict[str, int | None] = {}
        # By namespace, and whom it is about: the last.
        self._news: dict[tuple[str, str], HubNews] = {}

    def hear(self, notice: LogNotice) -> None:
        """Take what a log says."""
        hub = notice.hub.state
        news = notice.news
        if news is not None:
            self._news[hub.namespace, news.who] = news
        # News that come before are of what stood in the log.
        is_past_read = news is None or hub.uid in self.begins
        if is_past_read:
            self.begins[hub.uid] = notice.begin_us if notice.is_read else None

    def known_since(self, pods: Iterable[PodReading]) -> dict[str, int]:
        """Namespaces of hubs whose logs are read, and since when these tell of starts. pods: all
        that are there.
        """
        known: dict[str, int] = {}
        for pod in pods:
            begin_us = self.begins.get(pod.state.uid)
            if begin_us is not None:
                known[pod.state.namespace] = max(begin_us, known.get(pod.state.namespace, 0))
        return known

    def until(self, namespaces: Iterable[str], known_since: Mapping[str, int]) -> str:
        """Until when servers in these namespaces count as starting; without namespaces, those of
        all hubs whose logs are read.
        """
        asked = set(namespaces) or set(known_since)
        with_log = asked & known_since.keys()
        if not with_log:
            return PHASE_NAMES[CONTAINERS]
        if with_log == asked:
            return PHASE_NAMES[ANSWER]
        return f"{PHASE_NAMES[ANSWER]}, where its hub's log can be read"

    def awaited(self, pod: PodReading, known_since: Mapping[str, int], now_us: int) -> bool:
        """Whether a pod whose containers run is a server that its hub still waits for."""
        namespace = pod.state.namespace
        server = server_of(pod)
        if not server or namespace not in known_since or pod.deletion_us is not None:
            return False
        if pod.created_us < max(known_since[namespace], now_us - LONGEST_US):
            return False
        # A failure may name the user alone.
        user = server.partition(":")[0]
        last_news = [self._news.get((namespace, who)) for who in (server, user)]
        has_ended = any(
            news is not None
            and news.is_about(server)
            and news.when.at_us >= pod.created_us - EARLY_US
            for news in last_news
        )
        return not has_ended
