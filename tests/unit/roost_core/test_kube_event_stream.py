"""An event stream against a server that says odd things: whatever it is, the stream goes on, and
its fault is seen.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from roost_core.kube import event_stream
from roost_core.kube.client import ClusterError
from roost_core.kube.event_stream import (
    QUIET_SECONDS,
    EventStream,
    ListWatch,
    WatchEvent,
    WatchEventType,
)
from roost_core.objects.fields import JSONObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from roost_core.kube.client import Client


def item(name: str, version: int) -> JSONObject:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Server:
    """An empty list at version 10, then one watch after the other from a script; what is raised in
    one is scripted.
    """

    def __init__(self, *watches: Sequence[object]) -> None:
        self.watches = list(watches)
        self.asked: list[str] = []
        self.seconds: list[int] = []
        self.version = "10"
        self.stop = threading.Event()

    def get(self, _path: str, query: Mapping[str, Any]) -> JSONObject:
        return {
            "metadata": {"resourceVersion": str(query.get("resourceVersion") or self.version)},
            "items": [],
        }

    def lines(
        self, _path: str, query: Mapping[str, Any], _silence_seconds: float
    ) -> Iterator[bytes]:
        self.asked.append(str(query["resourceVersion"]))
        self.seconds.append(query["timeoutSeconds"])
        if not self.watches:
            self.stop.set()
            return
        for said in self.watches.pop(0):
            if isinstance(said, Exception):
                raise said
            if callable(said):
                said()
                continue
            self.version = cast("JSONObject", said)["object"]["metadata"]["resourceVersion"]
            yield orjson.dumps(said)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "FIRST_BACKOFF_SECONDS", 0.0)
    monkeypatch.setattr(event_stream, "LAST_BACKOFF_SECONDS", 0.0)


def added(name: str, version: int) -> JSONObject:
    return {"type": "ADDED", "object": item(name, version)}


class Ran:
    def __init__(self, server: Server, *, has_bookmarks: bool = True, **options: Any) -> None:
        self.told: list[WatchEvent] = []
        self.errors: list[str] = []
        read = options.pop("read", lambda thing: thing["metadata"]["name"])
        self.stream = EventStream(
            cast("Client", server),
            ListWatch("/things", read, kind="things", has_bookmarks=has_bookmarks),
            self.told.append,
            on_error=self.errors.append,
            **options,
        )
        self.stream.run(server.stop)

    def names(self) -> list[str]:
        return [one.item for one in self.told if one.change is WatchEventType.ADDED]


def test_a_fault_that_nobody_foresaw_ends_the_watch_and_not_the_stream(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server([added("a", 11), RuntimeError("what no one thought of")], [added("b", 12)])
    with caplog.at_level(logging.INFO):
        ran = Ran(server)
    assert ran.names() == ["a", "b"]
    assert server.asked == ["10", "11", "12"]
    assert ran.errors == ["things"]
    (line,) = [
        record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING
    ]
    assert line.startswith(
        "watch broken kind=things: unforeseen RuntimeError: what no one thought of"
        " (test_kube_event_stream.py:"
    )
    assert "\n" not in line


def test_what_a_server_has_forgotten_when_it_answers_again_is_listed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(event_stream, "FIRST_BACKOFF_SECONDS", 0.5)
    monkeypatch.setattr(event_stream, "LAST_BACKOFF_SECONDS", 30.0)
    expired = {
        "type": "ERROR",
        "object": {"code": 410, "reason": "Expired", "metadata": {"resourceVersion": "10"}},
    }
    server = Server(*[[ClusterError("no answer in time")]] * 6, [expired], [expired])
    monkeypatch.setattr(server.stop, "wait", waits.append)
    Ran(server, gapless=False, clock=lambda: 60.0 if waits else 0.0)
    # Expired again so soon after a list, it is no partition's end.
    assert waits[5] >= 8.0
    assert 0.25 <= waits[6] <= 0.5
    assert waits[7] >= 0.5
    # Watches after a fault are short, since their end is heard.
    assert [second == 5 for second in server.seconds] == [False, *[True] * 6, False, False]


def test_a_line_that_always_fails_is_told_of_once_and_its_stream_is_seen_to_be_deaf(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0

    def read(thing: JSONObject) -> str:
        nonlocal now
        now += 60.0
        return str(thing["metadata"]["labels"]["there are none"])

    server = Server(*[[added("odd", 11)] for _ in range(5)])
    ran = Ran(server, read=read, clock=lambda: now)
    assert ran.names() == []
    assert len(ran.errors) == 5
    assert server.asked == ["10"] * 6
    assert len(caplog.records) == 1
    assert "KeyError" in ran.stream.fault
    assert ran.stream.age_seconds() == 300.0


def test_a_stream_that_could_not_list_for_an_unforeseen_fault_lists_again() -> None:
    class Broken(Server):
        lists = 0

        def get(self, path: str, query: Mapping[str, Any]) -> JSONObject:
            self.lists += 1
            page = super().get(path, query)
            return {**page, "items": None if self.lists > 1 else [{"no": "metadata"}]}

    ran = Ran(Broken())
    assert ran.errors == ["things"]
    assert [one.change for one in ran.told] == [
        WatchEventType.LISTING,
        WatchEventType.LISTING,
        WatchEventType.SYNCED,
    ]


class Clock:
    """Time that passes only when a script lets it, with a server that comes to stand elsewhere
    meanwhile.
    """

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def silence(
        self, seconds: float, server: Server | None = None, version: str = ""
    ) -> Callable[[], None]:
        def pass_by() -> None:
            self.now += seconds
            if server is not None:
                server.version = version

        return pass_by


def test_a_kind_without_bookmarks_goes_on_from_where_the_server_stood_before_a_silent_watch() -> (
    None
):
    clock, server = Clock(), Server()
    # Others' changes move the server's version; ours, told late, must not be skipped.
    server.watches = [
        [clock.silence(1.0), added("a", 11), clock.silence(120.0, server, "90")],
        [clock.silence(120.0, server, "200")],
        [clock.silence(120.0), added("b", 201)],
    ]
    ran = Ran(server, clock=clock, has_bookmarks=False)
    assert server.asked == ["10", "11", "90", "201"]
    assert ran.names() == ["a", "b"]
    assert [one.version for one in ran.told if one.change is WatchEventType.BOOKMARK] == ["90"]
    assert ran.errors == []
    assert ran.stream.age_seconds() == 0.0


def test_a_watch_with_a_slow_consumer_at_its_end_proves_nothing_of_what_the_server_had() -> None:
    clock, server = Clock(), Server()

    def read(thing: JSONObject) -> str:
        clock.silence(300.0, server, "90")()
        return str(thing["metadata"]["name"])

    server.watches = [[added("a", 11)], [clock.silence(QUIET_SECONDS - 1)]]
    ran = Ran(server, read=read, has_bookmarks=False, clock=clock)
    assert server.asked == ["10", "11", "11"]
    assert WatchEventType.BOOKMARK not in [one.change for one in ran.told]


def test_a_kind_with_bookmarks_waits_for_them() -> None:
    clock, server = Clock(), Server()
    server.watches = [[clock.silence(120.0, server, "90")], [clock.silence(120.0)]]
    ran = Ran(server, clock=clock)
    assert server.asked == ["10", "10", "10"]
    assert ran.stream.age_seconds() == 240.0
