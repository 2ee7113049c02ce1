"""A watch cache against a server that is scripted: lists, events, ends and refusals, in this
order.
"""

import threading
from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson
import pytest

from roost_core.kube import event_stream
from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.kube.event_stream import ListWatch
from roost_core.kube.watch_cache import WatchCache
from roost_core.kube.watches import Watched, taking_changes
from roost_core.objects.fields import JSONObject


def item(name: str, version: int, colour: str = "red", namespace: str | None = "ns") -> JSONObject:
    metadata: JSONObject = {"name": name, "resourceVersion": str(version)}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata, "colour": colour}


def event(kind: str, thing: JSONObject) -> bytes:
    return orjson.dumps({"type": kind, "object": thing})


def page(version: int, *items: JSONObject, more: str = "") -> JSONObject:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


class ScriptedServer:
    """Answers lists and watches from two queues; an Exception in one is raised.

    Stops the cache at their end.
    """

    def __init__(self, lists: list[object], watches: list[object]) -> None:
        self.lists, self.watches = lists, watches
        self.list_queries: list[Mapping[str, Any]] = []
        self.watch_queries: list[Mapping[str, Any]] = []
        self.stop = threading.Event()

    def get(self, _path: str, query: Mapping[str, Any]) -> JSONObject:
        self.list_queries.append(dict(query))
        return cast("JSONObject", self._next(self.lists))

    def lines(
        self, _path: str, query: Mapping[str, Any], _silence_seconds: float
    ) -> Iterator[bytes]:
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
        cast("Client", server),
        ListWatch("/things", lambda thing: thing["colour"] or None, kind="things"),
        **options,
    )
    cache.run(server.stop)
    return cache


A, B = item("a", 1), item("b", 2)
GONE = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
LATE = [
    event("MODIFIED", item("a", 3, "blue")),
    event("ADDED", item("a", 2)),
    event("DELETED", item("a", 3)),
]
TOLD_AS_GONE = ("a place that was forgotten", "a deleted object", "what its reader drops")
# What the server says, what the cache then has, and where each watch began.
RUNS: dict[str, tuple[list[object], list[object], dict[str, str], list[str]]] = {
    "every page of a list": (
        [page(5, A, more="next"), page(5, B)],
        [],
        {"ns/a": "red", "ns/b": "red"},
        ["5"],
    ),
    "no namespace": ([page(1, item("a", 1, namespace=None))], [], {"a": "red"}, ["1"]),
    "a watch that was cut": (
        [page(5)],
        [[event("ADDED", item("a", 6))], [event("ADDED", item("b", 9))], []],
        {"ns/a": "red", "ns/b": "red"},
        ["5", "6", "9", "9"],
    ),
    "a bookmark": (
        [page(5, A)],
        [[event("BOOKMARK", {"metadata": {"resourceVersion": "40"}})], []],
        {"ns/a": "red"},
        ["5", "40", "40"],
    ),
    "a place that was forgotten": (
        [page(5, A, B), page(90, item("b", 80, "blue"))],
        [[GONE], []],
        {"ns/b": "blue"},
        ["5", "90", "90"],
    ),
    "410 to a watch": (
        [page(5), page(7)],
        [[], ApiError(410, "Gone"), []],
        {},
        ["5", "5", "7", "7"],
    ),
    "a connection that was dropped": (
        [page(5)],
        [[event("ADDED", item("a", 6)), ClusterError("connection reset")], []],
        {"ns/a": "red"},
        ["5", "6", "6"],
    ),
    "a line that is no event": (
        [page(5), page(6)],
        [[b'{"type": "ADDED"'], []],
        {},
        ["5", "6", "6"],
    ),
    "a deleted object": ([page(5, A)], [[event("DELETED", item("a", 6))]], {}, ["5", "6"]),
    "what comes again or late": ([page(1, A)], [LATE], {"ns/a": "blue"}, ["1", "3"]),
    "what its reader drops": (
        [page(5, A)],
        [[event("MODIFIED", item("a", 6, colour=""))]],
        {},
        ["5", "6"],
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_the_cache_has_what_the_server_has_and_resumes_where_it_was(case: str) -> None:
    lists, watches, objects, begun = RUNS[case]
    server = ScriptedServer(list(lists), list(watches))
    cache = run(server)
    assert cache.objects() == objects
    assert [query["resourceVersion"] for query in server.watch_queries] == begun
    assert len(server.list_queries) == len(lists)
    assert [query["continue"] for query in server.list_queries if "continue" in query] == [
        "next"
    ] * ("page" in case)
    assert cache.synced
    told = {**dict.fromkeys({"ns/a"} if case in TOLD_AS_GONE else ()), **objects}
    assert cache.take_changes() == told


def test_a_heartbeat_that_changes_nothing_is_no_change() -> None:
    calls = []
    beats = [event("MODIFIED", item("a", 6)), event("MODIFIED", item("a", 7))]
    cache = run(ScriptedServer([page(5, A)], [beats]), on_change=lambda: calls.append(1))
    assert calls == [1]
    assert cache.take_changes() == {"ns/a": "red"}
    assert cache.take_changes() == {}


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
    expected = ["watch broken kind=things: forbidden", "watch works again kind=things"]
    assert [record.getMessage() for record in caplog.records][:2] == expected
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


def test_a_watch_that_lasted_though_nothing_happened_is_resumed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    assert vars(cache)["_changes"] == {}
    # Who takes them anyway would never hear of any.
    with taking_changes() as taken, pytest.raises(RuntimeError, match="changes of things"):
        Watched(cache).take(taken)
