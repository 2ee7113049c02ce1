"""A watch cache against a server that is scripted: lists, events, ends and refusals, in this order."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson
import pytest

from roost_core.kube import event_stream
from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.kube.watch_cache import WatchCache

Object = dict[str, Any]


def item(name: str, version: int, colour: str = "red", namespace: str | None = "ns") -> Object:
    metadata: Object = {"name": name, "resourceVersion": str(version)}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata, "colour": colour}


def event(kind: str, thing: Object) -> bytes:
    return orjson.dumps({"type": kind, "object": thing})


def page(version: int, *items: Object, more: str = "") -> Object:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


class ScriptedServer:
    """Answers lists and watches from two queues; an Exception in one is raised. Stops the cache at their end."""

    def __init__(self, lists: list[object], watches: list[object]) -> None:
        self.lists, self.watches = lists, watches
        self.list_queries: list[Mapping[str, Any]] = []
        self.watch_queries: list[Mapping[str, Any]] = []
        self.stop = threading.Event()

    def get(self, _path: str, query: Mapping[str, Any]) -> Object:
        self.list_queries.append(dict(query))
        return cast("Object", self._next(self.lists))

    def lines(self, _path: str, query: Mapping[str, Any], _silence_seconds: float) -> Iterator[bytes]:
        self.watch_queries.append(dict(query))
        for line in cast("list[object]", self._next(self.watches)):
            if isinstance(line, Exception):
                raise line
            yield cast("bytes", line)

    def _next(self, queue: list[object]) -> object:
        if not queue:
            self.stop.set()
            raise ClusterError("the script is over")
        answer = queue.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "FIRST_BACKOFF_SECONDS", 0.0)
    monkeypatch.setattr(event_stream, "LAST_BACKOFF_SECONDS", 0.0)


def run(server: ScriptedServer, **options: Any) -> WatchCache[str]:
    cache: WatchCache[str] = WatchCache(
        cast("Client", server), "/things", lambda thing: thing["colour"] or None, kind="things", **options
    )
    cache.run(server.stop)
    return cache


def test_objects_come_from_every_page_of_the_list() -> None:
    server = ScriptedServer([page(5, item("a", 1), more="next"), page(5, item("b", 2))], [])
    cache = run(server)
    assert cache.objects() == {"ns/a": "red", "ns/b": "red"}
    assert server.list_queries[1]["continue"] == "next"
    assert cache.synced


def test_objects_without_a_namespace_are_known_by_name() -> None:
    assert run(ScriptedServer([page(1, item("a", 1, namespace=None))], [])).objects() == {"a": "red"}


def test_the_watch_begins_where_the_list_ended_and_resumes_where_it_was_cut() -> None:
    server = ScriptedServer([page(5)], [[event("ADDED", item("a", 6))], [event("ADDED", item("b", 9))], []])
    cache = run(server)
    assert [query["resourceVersion"] for query in server.watch_queries] == ["5", "6", "9", "9"]
    assert cache.objects() == {"ns/a": "red", "ns/b": "red"}


def test_a_bookmark_moves_the_place_to_resume_from_and_nothing_else() -> None:
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "40"}})
    server = ScriptedServer([page(5, item("a", 1))], [[bookmark], []])
    cache = run(server)
    assert server.watch_queries[1]["resourceVersion"] == "40"
    assert cache.objects() == {"ns/a": "red"}


def test_a_forgotten_place_means_a_new_list_whose_missing_objects_are_gone() -> None:
    gone = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
    server = ScriptedServer([page(5, item("a", 1), item("b", 2)), page(90, item("b", 80, "blue"))], [[gone], []])
    cache = run(server)
    assert len(server.list_queries) == 2
    assert cache.objects() == {"ns/b": "blue"}
    assert cache.take_changes() == {"ns/a": None, "ns/b": "blue"}


def test_a_refused_resume_with_410_means_a_new_list_too() -> None:
    server = ScriptedServer([page(5), page(7)], [[], ApiError(410, "Gone"), []])
    run(server)
    assert len(server.list_queries) == 2


def test_a_dropped_connection_is_resumed_without_a_new_list() -> None:
    server = ScriptedServer([page(5)], [[event("ADDED", item("a", 6)), ClusterError("connection reset")], []])
    run(server)
    assert len(server.list_queries) == 1
    assert server.watch_queries[1]["resourceVersion"] == "6"


def test_a_line_that_is_no_event_means_a_new_list() -> None:
    server = ScriptedServer([page(5), page(6)], [[b'{"type": "ADDED"'], []])
    run(server)
    assert len(server.list_queries) == 2


def test_deleted_objects_go_and_are_told_as_gone() -> None:
    server = ScriptedServer([page(5, item("a", 1))], [[event("DELETED", item("a", 6))]])
    cache = run(server)
    assert cache.objects() == {}
    assert cache.take_changes() == {"ns/a": None}


def test_a_heartbeat_that_changes_nothing_is_no_change() -> None:
    calls = []
    server = ScriptedServer(
        [page(5, item("a", 1))], [[event("MODIFIED", item("a", 6)), event("MODIFIED", item("a", 7))]]
    )
    cache = run(server, on_change=lambda: calls.append(1))
    assert calls == [1]
    assert cache.take_changes() == {"ns/a": "red"}
    assert cache.take_changes() == {}


def test_what_comes_again_or_late_changes_nothing() -> None:
    late = [event("MODIFIED", item("a", 3, "blue")), event("ADDED", item("a", 2)), event("DELETED", item("a", 3))]
    cache = run(ScriptedServer([page(1, item("a", 1))], [late]))
    assert cache.objects() == {"ns/a": "blue"}


def test_an_object_that_its_reader_drops_is_gone() -> None:
    server = ScriptedServer([page(5, item("a", 1))], [[event("MODIFIED", item("a", 6, colour=""))]])
    assert run(server).objects() == {}


# A kind that isn't served is no error: older minors have no device classes.
@pytest.mark.parametrize(("status", "level", "counted"), [(403, "WARNING", 3), (404, "INFO", 0)])
def test_a_refusal_is_told_once_and_tried_again_until_it_is_lifted(
    caplog: pytest.LogCaptureFixture, status: int, level: str, counted: int
) -> None:
    errors: list[str] = []
    refusal = ApiError(status, "forbidden")
    server = ScriptedServer([refusal, refusal, refusal, page(5, item("a", 1))], [])
    with caplog.at_level("INFO"):
        cache = run(server, on_error=errors.append)
    assert cache.objects() == {"ns/a": "red"}
    assert [record.getMessage() for record in caplog.records][:2] == [
        "watch broken kind=things: forbidden",
        "watch works again kind=things",
    ]
    assert caplog.records[0].levelname == level
    # The script's end is an error, too.
    assert errors[:-1] == ["things"] * counted


def test_a_refused_list_is_known_as_forbidden() -> None:
    cache = run(ScriptedServer([ApiError(403, "forbidden")], []))
    assert not cache.synced
    assert not cache.is_forbidden  # the script's end is no refusal
    refusing = ScriptedServer([ApiError(403, "forbidden")], [])
    forbidden = run(refusing, on_error=lambda _kind: refusing.stop.set())
    assert forbidden.is_forbidden


def test_the_age_counts_from_the_last_word_of_the_server() -> None:
    moments = [100.0]
    cache = run(ScriptedServer([page(5)], []), clock=lambda: moments[0])
    moments[0] = 107.0
    assert cache.age_seconds() == 7.0


@pytest.mark.parametrize(
    ("watches", "pauses"),
    [
        ([[], [], []], 4),  # the fourth is the script's end
        ([[], [event("ADDED", item("a", 6))], []], 3),
        ([[event("ADDED", item("a", 6))], [event("ADDED", item("a", 7))]], 1),
    ],
)
def test_watches_that_end_at_once_without_a_word_are_tried_ever_more_seldom(
    watches: list[object], pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "FIRST_BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(event_stream, "LAST_BACKOFF_SECONDS", 0.1)
    server = ScriptedServer([page(5)], watches)
    limits: list[float] = []

    def uniform(_low: float, high: float) -> float:
        limits.append(high)
        return high

    monkeypatch.setattr(event_stream._SPREAD, "uniform", uniform)
    run(server)
    assert len(limits) == pauses


def test_a_watch_that_lasted_though_nothing_happened_is_resumed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda _low, _high: pytest.fail("it paused"))
    moments = [100.0]
    server = ScriptedServer([page(5)], [[], []])
    opened = server.lines

    def lines(path: str, query: Mapping[str, Any], silence_seconds: float) -> Iterator[bytes]:
        moments[0] += 300.0
        if len(server.watch_queries) == 1:
            server.stop.set()
        return opened(path, query, silence_seconds)

    monkeypatch.setattr(server, "lines", lines)
    run(server, clock=lambda: moments[0])
    assert len(server.watch_queries) == 2


def test_changes_that_nobody_takes_are_not_kept() -> None:
    events = [
        event(kind, item(f"pod-{number}", 2 * number + later))
        for number in range(1, 50)
        for later, kind in enumerate(("ADDED", "DELETED"))
    ]
    cache = run(ScriptedServer([page(1, item("first", 1))], [events]), keeps_changes=False)
    assert cache.objects() == {"ns/first": "red"}
    assert cache.take_changes() == {}
