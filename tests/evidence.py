"""An API server that says what a test lets it say, and notes what watches were told and when: no
other evidence counts.

Watches are driven without threads: `hear` lets one take in all that is said now.
"""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from roost_core.kube.client import ApiError, ClusterError
from roost_core.kube.lease_watch import LeaseWatch
from roost_core.kube.watch_cache import WatchCache
from roost_core.objects.fields import JSONObject

FAULTS: Final[dict[str | int, ClusterError]] = {
    401: ApiError(401, "no token"),
    403: ApiError(403, "no right"),
    "out of reach": ClusterError("no route"),
}


class Paused(BaseException):
    """Nothing more is said for now: ends a turn of a watch, and is no error of it."""


class Turn(threading.Event):
    """In place of the event that stops a watch: it goes on until it would wait."""

    waited = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.waited = timeout or 0.0
        raise Paused


class Kind:
    """The objects of one kind, what happened to them, and what a watch was told of it."""

    def __init__(self) -> None:
        self.objects: dict[str, JSONObject] = {}
        self.log: list[tuple[int, str, JSONObject]] = []
        # How the API server answers: "ok", "silent", "lags", "repeats", "out of order", or by one
        # of FAULTS.
        self.mode: str | int = "ok"
        self.told: dict[str, JSONObject] = {}
        self.told_version = 0
        self.heard_at: float | None = None
        # Of the last answer.
        self.fault: str | int = ""

    @property
    def is_forbidden(self) -> bool:
        return self.fault == 403

    def answer(self) -> None:
        """Raise what a request meets."""
        if self.mode == "silent":
            raise Paused
        if self.mode in FAULTS:
            self.fault = self.mode
            raise FAULTS[self.mode]


class Server:
    """`get` and `lines` are a client's."""

    def __init__(self) -> None:
        self.now = 0.0
        self.version = 1
        self.kinds: dict[str, Kind] = {}

    def kind(self, key: str) -> Kind:
        return self.kinds.setdefault(key, Kind())

    def _asked(self, path: str, query: Mapping[str, Any]) -> Kind:
        return self.kind(f"{path} {query.get('labelSelector', '')}".strip())

    def happen(self, key: str, name: str, item: JSONObject | None) -> None:
        kind = self.kind(key)
        if item is None and name not in kind.objects:
            return
        self.version += 1
        change = "DELETED" if item is None else "MODIFIED" if name in kind.objects else "ADDED"
        made = item if item is not None else kind.objects.pop(name)
        made = {**made, "metadata": {**made["metadata"], "resourceVersion": str(self.version)}}
        if item is not None:
            kind.objects[name] = made
        kind.log.append((self.version, change, made))

    def get(self, path: str, query: Mapping[str, Any]) -> JSONObject:
        kind = self._asked(path, query)
        kind.answer()
        kind.fault = ""
        kind.told, kind.told_version, kind.heard_at = dict(kind.objects), self.version, self.now
        return {
            "metadata": {"resourceVersion": str(self.version)},
            "items": list(kind.objects.values()),
        }

    def lines(
        self, path: str, query: Mapping[str, Any], _silence_seconds: float
    ) -> Iterator[bytes]:
        kind = self._asked(path, query)
        kind.answer()
        if kind.mode == 410:
            kind.mode, kind.fault = "ok", 410
            raise ApiError(410, "too old")
        kind.fault = ""
        since, until = int(query["resourceVersion"]), self.version - 3 * (kind.mode == "lags")
        events = [event for event in kind.log if since < event[0] <= until]
        if kind.mode == "repeats":
            events = [*events, *reversed(kind.log[-4:])]
        if kind.mode == "out of order":
            events = events[::-1]
        for version, change, item in events:
            kind.heard_at = self.now
            if version > kind.told_version:
                kind.told_version = version
                name = item["metadata"]["name"]
                kind.told = {key: value for key, value in kind.told.items() if key != name}
                kind.told |= {} if change == "DELETED" else {name: item}
            yield json.dumps({"type": change, "object": item}).encode()
        kind.heard_at = self.now
        position = str(max(since, until, kind.told_version))
        yield json.dumps(
            {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": position}}}
        ).encode()
        raise Paused


def hear(watch: WatchCache[Any] | LeaseWatch) -> float:
    """Let a watch take in what is said now; returns how long it would wait then."""
    turn = Turn()
    with contextlib.suppress(Paused):
        watch.run(turn)
    return turn.waited
