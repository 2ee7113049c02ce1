"""Tell which pods are of servers that seating asked for before a class, which of these their users
came to, and which seating stopped unused. Pure.

A hub's log says whose server seating asked for, and when. Once the hub says when a start was asked
for, that decides: it is seating's if that lies within seating's request. Before that word, the
server's next pod counts as seating's if it was created within two minutes; that isn't taken back.
Guarantee: whatever the order in which pods and log arrive, a start that its user asked for is not
taken for seating's, if the hub tells how seating's own start ended before.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

from roost_lab.recorder.recording.hub_log import EARLY_US, HubNews
from roost_lab.recorder.recording.pod_records import hub_records
from roost_lab.recorder.store.records import Phase, Record

# Most servers that are remembered.
MAX_SERVERS: Final = 20_000
# The pod that a server has, and the one before it, of which its hub may yet tell.
_MAX_PODS: Final = 2


@dataclass(slots=True)
class _Pod:
    uid: str
    created_us: int
    is_seated: bool
    # When its hub says that it was asked for; None: it has not said so.
    asked_us: int | None = None
    # When its hub said that its start had failed; None: it has not said so.
    failed_us: int | None = None
    # OPENED and UNUSED, once they were told.
    told: set[Phase] = field(default_factory=set)


@dataclass(slots=True)
class _Server:
    # The last request of seating whose pod isn't known yet.
    request: HubNews | None = None
    # By creation.
    pods: list[_Pod] = field(default_factory=list)

    def pod_at(self, at_us: int) -> _Pod | None:
        """The newest of its pods that was there."""
        return next((pod for pod in reversed(self.pods) if pod.created_us <= at_us), None)


class SeatedStarts:
    """Owned by one thread."""

    def __init__(self, known: Set[str] = frozenset()) -> None:
        """known: uids of pods that the database says are seating's."""
        self._known = known
        # By namespace and the server's name in its hub's log.
        self._servers: dict[tuple[str, str], _Server] = {}

    def pod_changed(
        self, namespace: str, name: str, uid: str, created_us: int
    ) -> tuple[bool, list[Record]]:
        """Whether a pod is seating's, and what is new of that. name: of its server in its hub's
        log.
        """
        server = self._server(namespace, name)
        pod = next((pod for pod in server.pods if pod.uid == uid), None)
        if pod is None:
            pod = _Pod(uid, created_us, uid in self._known)
            server.pods = sorted([*server.pods, pod], key=lambda pod: pod.created_us)[-_MAX_PODS:]
        request = server.request
        if request is None or pod.is_seated or pod.asked_us is not None:
            return pod.is_seated, []
        if not _may_be_of(request, pod):
            return False, []
        return True, _seat(server, pod, request)

    def told(self, namespace: str, news: HubNews) -> list[Record]:
        """What a hub's news says of seating's starts; no records when it says nothing new."""
        if news.outcome is Phase.FAILED:
            names = [
                name for space, name in self._servers if space == namespace and news.is_about(name)
            ]
            return [
                record for name in names for record in _failed(self._servers[namespace, name], news)
            ]
        if news.outcome is Phase.SEATED:
            return _asked(self._server(namespace, news.who), news)
        server = self._servers.get((namespace, news.who))
        if server is None:
            return []
        if news.outcome is Phase.ANSWERED:
            return _answered(server, news)
        pod = server.pod_at(news.asked_us)
        if pod is None or not pod.is_seated or news.outcome in pod.told:
            return []
        pod.told.add(news.outcome)
        return hub_records(pod.uid, news)

    def _server(self, namespace: str, name: str) -> _Server:
        key = (namespace, name)
        if key not in self._servers:
            self._servers[key] = _Server()
            if len(self._servers) > MAX_SERVERS:
                del self._servers[next(iter(self._servers))]
        return self._servers[key]


def _asked(server: _Server, request: HubNews) -> list[Record]:
    """Seating asked for a server. Its pod comes, or is there; the hub may have told of it before,
    as it writes a request's line at the request's end.
    """
    server.request = request
    for pod in reversed(server.pods):
        if pod.asked_us is not None:
            is_its = request.may_have_begun(pod.asked_us)
        else:
            # A start that failed within the request, of which the hub has told, too.
            is_its = not request.is_pending and _may_be_of(request, pod)
        if is_its and not pod.is_seated:
            return _seat(server, pod, request)
    return []


def _answered(server: _Server, news: HubNews) -> list[Record]:
    """A server answered: by when it was asked for, its start is seating's or its user's."""
    request = server.request
    pod = server.pod_at(news.when.at_us)
    if pod is not None:
        pod.asked_us = news.asked_us
    if request is None or request.asked_us - EARLY_US > news.when.at_us:
        return []
    server.request = None
    if pod is None or pod.is_seated or not request.may_have_begun(news.asked_us):
        return []
    return _seat(server, pod, request)


def _failed(server: _Server, news: HubNews) -> list[Record]:
    """A start failed: if it was seating's, no later pod is that request's."""
    request = server.request
    pod = server.pod_at(news.when.at_us)
    if pod is not None and pod.asked_us is None and pod.failed_us is None:
        pod.failed_us = news.when.at_us
    if request is None or request.asked_us - EARLY_US > news.when.at_us:
        return []
    server.request = None
    if pod is None or pod.is_seated or not _may_be_of(request, pod):
        return []
    return _seat(server, pod, request)


def _seat(server: _Server, pod: _Pod, request: HubNews) -> list[Record]:
    server.request = None
    pod.is_seated = True
    return hub_records(pod.uid, request)


def _may_be_of(request: HubNews, pod: _Pod) -> bool:
    """Whether a request may have made a pod, by when it was created: by the API server's clock."""
    if pod.failed_us is not None and pod.failed_us < request.asked_us:
        return False
    return request.asked_us - EARLY_US <= pod.created_us <= request.latest_us
