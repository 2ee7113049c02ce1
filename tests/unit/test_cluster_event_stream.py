"""An event stream against a server that says odd things: whatever it is, the stream goes on, and its fault is seen."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from cluster import event_stream
from cluster.event_stream import Change, EventStream, Told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cluster.client import Client

Object = dict[str, Any]


def item(name: str, version: int) -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Server:
    """An empty list at version 10, then one watch after the other from a script; what is raised in one is scripted."""

    def __init__(self, *watches: Sequence[object]) -> None:
        self.watches = list(watches)
        self.asked: list[str] = []
        self.version = "10"
        self.stop = threading.Event()

    def get(self, _path: str, query: Mapping[str, Any]) -> Object:
        return {"metadata": {"resourceVersion": str(query.get("resourceVersion") or self.version)}, "items": []}

    def lines(self, _path: str, query: Mapping[str, Any], _silence_seconds: float) -> Iterator[bytes]:
        self.asked.append(str(query["resourceVersion"]))
        if not self.watches:
            self.stop.set()
            return
        for said in self.watches.pop(0):
            if isinstance(said, Exception):
                raise said
            self.version = cast("Object", said)["object"]["metadata"]["resourceVersion"]
            yield orjson.dumps(said)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "FIRST_BACKOFF_SECONDS", 0.0)
    monkeypatch.setattr(event_stream, "LAST_BACKOFF_SECONDS", 0.0)


def added(name: str, version: int) -> Object:
    return {"type": "ADDED", "object": item(name, version)}


class Ran:
    """A stream that ran to the end of its server's script."""

    def __init__(self, server: Server, **options: Any) -> None:
        self.told: list[Told] = []
        self.errors: list[str] = []
        self.stream = EventStream(
            cast("Client", server),
            "/things",
            "things",
            options.pop("read", lambda thing: thing["metadata"]["name"]),
            self.told.append,
            on_error=self.errors.append,
            **options,
        )
        self.stream.run(server.stop)

    def names(self) -> list[str]:
        return [one.item for one in self.told if one.change is Change.ADDED]


def test_a_fault_that_nobody_foresaw_ends_the_watch_and_not_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    server = Server([added("a", 11), RuntimeError("what no one thought of")], [added("b", 12)])
    with caplog.at_level(logging.INFO):
        ran = Ran(server)
    assert ran.names() == ["a", "b"]
    assert server.asked == ["10", "11", "12"]
    assert ran.errors == ["things"]
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith(
        "stream broken kind=things: unforeseen RuntimeError: what no one thought of (test_cluster_event_stream.py:"
    )
    assert "\n" not in line


def test_a_line_that_always_fails_is_told_of_once_and_its_stream_is_seen_to_be_deaf(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0

    def read(thing: Object) -> str:
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

        def get(self, path: str, query: Mapping[str, Any]) -> Object:
            self.lists += 1
            page = super().get(path, query)
            return {**page, "items": None if self.lists > 1 else [{"no": "metadata"}]}

    ran = Ran(Broken())
    assert ran.errors == ["things"]
    assert [one.change for one in ran.told] == [Change.LISTING, Change.LISTING, Change.SYNCED]
