"""Each recorded start arrives at a collector, whatever is killed when, and what arrives twice is the same trace."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from lab_tests.recorded import (
    BEGIN,
    HOUR,
    MINUTE,
    SECOND,
    bind_record,
    empty_store,
    phase_record,
    pod_record,
    story_records,
)
from roost_lab.commands.records import COMMAND
from roost_lab.recorder.answers.otlp import LONGEST_START_US, POSITION, SETTLED_US, Collector, CollectorError, Sender
from roost_lab.recorder.store.records import PODS, Phase, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from roost_lab.recorder.store.database import Store

Object = dict[str, Any]
LATER = BEGIN + 3 * HOUR


class Received:
    """A collector: what it was sent and accepted. `answers`: status and body of the next answers."""

    def __init__(self) -> None:
        self.requests: list[list[Object]] = []
        self.answers: list[tuple[int, str]] = []
        self.headers: list[dict[str, str]] = []
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, text = received.answers.pop(0) if received.answers else (200, "{}")
                if status == 200 and text == "{}":
                    assert self.path == "/v1/traces"
                    ((resource,),) = [body["resourceSpans"]]
                    ((scope,),) = [resource["scopeSpans"]]
                    received.requests.append(scope["spans"])
                    received.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def spans(self) -> list[Object]:
        return [span for request in self.requests for span in request]

    def pods(self) -> list[str]:
        """Names of the pods whose starts arrived, in order."""
        return [facts(span)["k8s.pod.name"] for span in self.spans if "parentSpanId" not in span]


def facts(span: Object) -> dict[str, str]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


@pytest.fixture
def received() -> Iterator[Received]:
    collector = Received()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = empty_store(tmp_path)
    yield store
    store.close()


def start(name: str, at_us: int, *, ready: bool = True, gone_us: int | None = None) -> list[Record]:
    records: list[Record] = [pod_record(name, created_us=at_us, deleted_us=gone_us)]
    if ready:
        records += [
            bind_record(name, at_us + SECOND, "n"),
            phase_record(name, Phase.STARTED, at_us + 2 * SECOND),
            phase_record(name, Phase.READY, at_us + 3 * SECOND),
        ]
    return records


def write(store: Store, records: Sequence[Record], heard_us: int) -> None:
    store.write(records, {PODS: ("1", heard_us)})


def test_a_start_is_a_trace_and_its_phases_are_spans_within(store: Store, received: Received) -> None:
    write(store, story_records(), LATER)
    assert Sender(store, Collector(received.url, {})).send_new() == 1
    (root,) = [span for span in received.spans if "parentSpanId" not in span]
    children = [span for span in received.spans if "parentSpanId" in span]
    assert [span["name"] for span in children] == [
        "waits for a node",
        "starts containers",
        "pulls an image",
        "gets ready",
    ]
    assert root["name"] == "start"
    assert (facts(root)["k8s.pod.name"], facts(root)["k8s.node.name"]) == ("p", "n")
    assert (int(root["startTimeUnixNano"]), int(root["endTimeUnixNano"])) == (BEGIN * 1000, (BEGIN + 3 * SECOND) * 1000)
    for span in received.spans:
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert span["traceId"] == root["traceId"]
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    assert {span["parentSpanId"] for span in children} == {root["spanId"]}
    assert len({span["spanId"] for span in received.spans}) == len(received.spans)


def test_a_start_that_failed_says_so_and_placeholders_are_not_sent(store: Store, received: Received) -> None:
    given_up = start("gone", BEGIN, ready=False, gone_us=BEGIN + 5 * MINUTE)
    write(store, [*given_up, pod_record("seat", pod_class="placeholder", deleted_us=BEGIN + HOUR)], LATER)
    Sender(store, Collector(received.url, {})).send_new()
    (span,) = [one for one in received.spans if "parentSpanId" not in one]
    assert span["status"] == {"code": 2, "message": "gone before it was ready"}


def test_nothing_is_lost_and_ids_stay_over_a_killed_collector_and_a_killed_sender(
    store: Store, received: Received
) -> None:
    names = [f"p{number}" for number in range(1300)]
    for number, name in enumerate(names):
        # Chunks of 500: the second and third are refused at first.
        write(store, start(name, BEGIN + number * SECOND), LATER) if number % 100 == 0 else store.write(
            start(name, BEGIN + number * SECOND), {}
        )
    collector = Collector(received.url, {})
    received.answers = [(200, "{}"), (503, "busy")]
    with pytest.raises(CollectorError, match="503 busy"):
        Sender(store, collector).send_new()
    assert len(received.pods()) == 500
    with pytest.raises(CollectorError, match="can't be reached"):
        Sender(store, Collector("http://127.0.0.1:9", {})).send_new()
    received.answers = [(200, json.dumps({"partialSuccess": {"rejectedSpans": "7", "errorMessage": "full"}}))]
    with pytest.raises(CollectorError, match="rejected 7 spans: full"):
        Sender(store, collector).send_new()
    Sender(store, collector).send_new()
    assert set(received.pods()) == set(names)
    ids: dict[str, set[str]] = defaultdict(set)
    for span in received.spans:
        if "parentSpanId" not in span:
            ids[facts(span)["k8s.pod.name"]].add(f"{span['traceId']} {span['spanId']}")
    assert {len(found) for found in ids.values()} == {1}


def test_starts_that_end_later_are_sent_when_they_have_ended(store: Store, received: Received) -> None:
    write(store, [*start("slow", BEGIN, ready=False), *start("quick", BEGIN + SECOND)], BEGIN + HOUR)
    sender = Sender(store, Collector(received.url, {}))
    assert [sender.send_new(), sender.send_new()] == [1, 0]
    # Also by another sender, that finds where this one stopped: before the slow one.
    write(store, start("slow", BEGIN)[1:], BEGIN + HOUR + MINUTE)
    assert Sender(store, Collector(received.url, {})).send_new() == 2
    assert sorted(received.pods()) == ["quick", "quick", "slow"]
    # Not yet while its kubelet may tell of its pulls.
    late_us = BEGIN + 2 * HOUR
    write(store, start("new", late_us), late_us + 3 * SECOND + SETTLED_US - 1)
    assert sender.send_new() == 0
    write(store, [], late_us + 3 * SECOND + SETTLED_US)
    assert sender.send_new() == 1
    assert received.pods()[-1] == "new"


def test_a_pod_that_never_gets_ready_does_not_hold_the_position_for_ever(store: Store, received: Received) -> None:
    write(store, [*start("stuck", BEGIN, ready=False), *start("quick", BEGIN + HOUR)], BEGIN + 2 * HOUR)
    sender = Sender(store, Collector(received.url, {}))
    sender.send_new()
    assert store.positions()[POSITION][1] == BEGIN
    write(store, [], BEGIN + LONGEST_START_US + SECOND)
    sender.send_new()
    assert store.positions()[POSITION][1] > BEGIN


def test_the_command_sends_with_headers_and_says_what_fails(
    store: Store, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, story_records(), LATER)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x,x-scope=1")
    arguments = ["send", "--database", str(store.engine.url.database), "--to"]
    done = CliRunner().invoke(COMMAND, [*arguments, received.url], standalone_mode=False)
    assert (done.return_value, done.output) == (0, "1 starts sent\n")
    assert (received.headers[0]["authorization"], received.headers[0]["x-scope"]) == ("Bearer x", "1")
    done = CliRunner().invoke(COMMAND, [*arguments, "localhost:4318"], standalone_mode=False)
    assert done.return_value == 1
    assert "--to: found 'localhost:4318', expected an address such as http://localhost:4318" in done.output
