"""What each request gets, and what no connection may exceed; nothing that is sent or done becomes a
5xx.
"""

import asyncio
import contextlib
import logging
import re
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_core.http.ops_server import IDLE_SECONDS, OpsServer
from roost_core.http.ops_server import MAX_CONNECTIONS as OPS_CONNECTIONS
from roost_core.http.server import (
    HEADER_BYTES,
    LATE_SHARE,
    MAX_ACCEPTED,
    MAX_HEADERS,
    MAX_PIPELINED,
    REQUEST_SECONDS,
    Connection,
    Drop,
    Limits,
    Server,
    bind,
    call_wsgi,
)
from roost_core.kube import logs
from roost_core.kube.readiness import Readiness, check_all
from tests.builders import build_pod, facts, placeholder_pod, review, settings, user_pod
from tests.recorded_data import rows
from webhook.bounds import MAX_BODY_BYTES
from webhook.review import Answer, Reviewer
from webhook.serving import Pulse, client_waits, create_app

Headers = dict[bytes, bytes]

PODS = [review(user_pod()), review(build_pod()), review(placeholder_pod())]
PATHS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="?#"))


class FakeTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = asyncio.Event()

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()

    def pause_reading(self) -> None:
        """Nothing is read."""

    def resume_reading(self) -> None:
        """Nothing is read."""


def converse(sent: bytes, review_it: Callable[[bytes], Answer], *, pieces: int = 1) -> bytes:
    """What a connection writes for these bytes, which should end with a request that closes it."""

    async def run() -> bytes:
        server = Server(
            create_app(review_it), limits=Limits(connections=16, body_bytes=MAX_BODY_BYTES)
        )
        transport = FakeTransport()
        connection = Connection(server, "", 0)
        connection.connection_made(transport)
        size = max(1, -(-len(sent) // pieces))
        for at in range(0, len(sent), size):
            if not transport.is_closing():
                connection.data_received(sent[at : at + size])
        await asyncio.wait_for(transport.closed.wait(), 10)
        connection.connection_lost(None)
        return transport.written

    return asyncio.run(run())


def request(
    body: bytes,
    *,
    method: str = "POST",
    path: str = "/mutate?timeout=2s",
    content_type: bytes = b"application/json",
    closes: bool = True,
) -> bytes:
    """A request in plain bytes."""
    connection = "Connection: close\r\n" if closes else ""
    length = f"Content-Length: {len(body)}\r\n"
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{connection}{length}"
    return head.encode() + b"Content-Type: %b\r\n\r\n%b" % (content_type, body)


def read_answer(data: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and body of one answer."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
    assert int(headers[b"content-length"]) == len(body) or not body
    return int(first.split()[1]), headers, body


def admission() -> Reviewer:
    rules, known = settings(), facts()
    return Reviewer(lambda: rules, lambda: known, lambda: 0.0, lambda *_: None)


def answer(sent: bytes, pieces: int = 1) -> tuple[int, Headers, bytes]:
    return read_answer(converse(sent, admission().review, pieces=pieces))


@pytest.mark.parametrize("body", PODS, ids=range(len(PODS)))
@pytest.mark.parametrize("content_type", [b"application/json", b"Application/JSON; charset=utf-8"])
def test_a_review_is_answered_as_json(body: bytes, content_type: bytes) -> None:
    status, headers, text = answer(request(body, content_type=content_type))
    assert (status, headers[b"content-type"]) == (200, b"application/json")
    assert orjson.loads(text)["response"]["allowed"] is True


@pytest.mark.parametrize(("method", "content_type", "status"), rows("webhook/methods"))
def test_other_methods_and_content_types_are_refused(
    method: str, content_type: str, status: int
) -> None:
    found, headers, _ = answer(request(PODS[0], method=method, content_type=content_type.encode()))
    assert found == status
    assert headers.get(b"allow") == (b"POST" if status == 405 else None)


@given(path=PATHS)
@pytest.mark.slow
def test_any_path_gets_a_4xx(path: str) -> None:
    assert read_answer(converse(request(b"", path=f"/-{path}"), admission().review))[0] in (
        400,
        404,
    )


def test_pipelined_requests_are_answered_in_order() -> None:
    plain, other = request(PODS[0], closes=False), request(b"", path="/nothing", closes=False)
    written = converse(plain + other + plain + other + request(PODS[0]), admission().review)
    assert re.findall(rb"HTTP/1.1 (\d+)", written) == [b"200", b"404", b"200", b"404", b"200"]


def test_who_does_not_read_an_answer_gets_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        FakeTransport, "get_write_buffer_size", lambda self: HEADER_BYTES * len(self.written)
    )
    written = converse(request(PODS[0], closes=False) * 5, admission().review)
    assert re.findall(rb"HTTP/1.1 (\d+)", written) == [b"200", b"400"]


def get(path: str, readiness: Callable[[], tuple[bool, str]]) -> tuple[str, bytes]:
    """GET a page for probes."""
    with bind("127.0.0.1", 0) as bound:
        ops = OpsServer(bound, metrics_text=lambda: b"", readiness=readiness)
        status, _, body = call_wsgi(ops.answer, {"REQUEST_METHOD": "GET", "PATH_INFO": path})
    return status, body


def test_readiness_lists_every_check_and_fails_with_any_of_them() -> None:
    passed = Readiness(passed=True, detail="revision 1")
    checks = {"policy": lambda: passed, "facts": lambda: Readiness(passed=False)}
    status, body = get("/readyz", lambda: check_all(checks))
    assert status.startswith("503 ")
    assert body.decode().splitlines() == [
        "[+]policy ok: revision 1",
        "[-]facts failed",
        "not ready",
    ]
    assert get("/livez", lambda: check_all(checks))[0] == "200 OK"


def test_a_fault_in_an_application_is_no_5xx(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> list[bytes]:
        raise RuntimeError

    async def run() -> bytes:
        connection, transport = (
            Connection(Server(broken, limits=Limits(connections=16)), "", 0),
            FakeTransport(),
        )
        connection.connection_made(transport)
        connection.data_received(b"GET /readyz HTTP/1.1\r\n\r\n")
        return transport.written

    assert read_answer(asyncio.run(run()))[0] == 400
    assert caplog.records


def test_a_log_line_stays_one_line_whatever_it_holds() -> None:
    record = logging.LogRecord("name", logging.INFO, "file", 1, "one\ntwo\x1b[31m", None, None)
    assert "\n" not in logs.OneLineFormatter().format(record)
    assert "\x1b" not in logs.OneLineFormatter().format(record)


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


class Wire(FakeTransport):
    """A transport that also ends at once, and that may have an answer which nobody reads."""

    unread_bytes = 0

    def abort(self) -> None:
        self.close()

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes


class Connections:
    """Connections of one server. To be made inside a loop."""

    def __init__(self, *, connections: int = 16, **limits: Any) -> None:
        app = create_app(admission().review)
        self.server = Server(
            app, limits=Limits(connections=connections, body_bytes=MAX_BODY_BYTES, **limits)
        )

    def connect(self, *sent: bytes, waited: float = 0.0) -> tuple[Connection, Wire]:
        """waited: seconds between being accepted and the end of the handshake."""
        accepted_at = asyncio.get_running_loop().time() - waited
        connection, wire = Connection(self.server, "", accepted_at), Wire()
        self.server.connections.add(connection)
        connection.connection_made(wire)
        for data in sent:
            connection.data_received(data)
        return connection, wire


def run(**how: int) -> Callable[[Callable[[Connections], None]], None]:
    """Play a scene inside a loop."""

    def play(scene: Callable[[Connections], None]) -> None:
        async def inside() -> None:
            scene(Connections(**how))

        asyncio.run(inside())

    return play


def test_an_unread_answer_ends_the_connection_and_an_idle_one_ends_as_the_server_says() -> None:
    @run()
    def scene(desk: Connections) -> None:
        connection, wire = desk.connect(request(review(user_pod()), closes=False))
        wire.unread_bytes = 10
        desk.server.sweep(connection.since + REQUEST_SECONDS + 1)
        assert wire.is_closing()
        idle, wire = desk.connect()
        desk.server.limits = Limits(connections=16, idle_seconds=IDLE_SECONDS)
        desk.server.sweep(idle.since + IDLE_SECONDS - 1)
        assert not wire.is_closing()
        desk.server.sweep(idle.since + IDLE_SECONDS + 1)
        assert wire.is_closing()


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (b"GET / HTTP/1.1\r\n" + b"a:\r\n" * (MAX_HEADERS + 1) + b"\r\n", [b"400"]),
        (b"GET / HTTP/1.1\r\na: " + b"b" * HEADER_BYTES + b"\r\n\r\n", [b"400"]),
        (b"GET /" + b"b" * HEADER_BYTES + b" HTTP/1.1\r\n\r\n", [b"400"]),
        (CHUNKED + b"0\r\n" + b"a:\r\n" * (MAX_HEADERS + 1) + b"\r\n", [b"400"]),
        (b"GET / HTTP/1.1\r\n\r\n" * 50, [b"404"] * MAX_PIPELINED + [b"400"]),
    ],
    ids=["many headers", "a long header", "a long path", "many trailers", "many requests"],
)
def test_what_is_more_than_any_request_is_refused_at_once(
    sent: bytes, answers: list[bytes]
) -> None:
    @run()
    def scene(desk: Connections) -> None:
        _, wire = desk.connect(sent)
        assert wire.is_closing()
        assert re.findall(rb"HTTP/1.1 (\d+)", wire.written) == answers


def test_trailers_without_end_close_the_connection() -> None:
    @run()
    def scene(desk: Connections) -> None:
        connection, wire = desk.connect(CHUNKED + b"1\r\na\r\n0\r\na: ")
        for _ in range(HEADER_BYTES // 1000 + 1):
            assert not wire.is_closing()
            connection.data_received(b"b" * 1000)
        assert wire.is_closing()


def test_a_client_that_asks_before_it_sends_is_told_to_go_on() -> None:
    head, _, body = request(review(user_pod())).partition(b"\r\n\r\n")

    @run()
    def scene(desk: Connections) -> None:
        connection, wire = desk.connect(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert wire.written == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.data_received(body)
        assert b"HTTP/1.1 200 OK\r\n" in wire.written


def test_bytes_held_are_bounded_and_the_one_that_dawdles_most_is_cut() -> None:
    @run(held_bytes=20_000)
    def scene(desk: Connections) -> None:
        first, slow = desk.connect(request(review(user_pod()))[:-10])
        first.since -= 5
        for _ in range(50):
            _, last = desk.connect(request(b"x" * 3000)[:2500])
            assert desk.server.held_bytes <= 20_000
        assert slow.is_closing()
        assert not last.is_closing()
        for connection in list(desk.server.connections):
            connection.connection_lost(None)
        assert desk.server.held_bytes == 0
        # A request that was cut for what it holds isn't answered.
        _, wire = desk.connect(request(b"x" * 30_000))
        assert wire.is_closing()
        assert wire.written == b""
        assert desk.server.held_bytes == 0


def test_addresses_with_an_unfinished_request_each_starve_no_probe() -> None:
    """Over real sockets, on the port for probes: the oldest unfinished request gives way."""
    bound = bind("127.0.0.1", 0)
    bound.listen()
    ops = OpsServer(bound, metrics_text=lambda: b"", readiness=lambda: (True, "ok"))
    ops.start()
    with contextlib.ExitStack() as exits:
        exits.callback(ops.stop)
        for number in range(1, 25):
            source = (f"127.0.1.{number}", 0)
            dawdler = exits.enter_context(
                socket.create_connection(("127.0.0.1", ops.port), 5, source)
            )
            dawdler.sendall(b"GET /livez HTT")
            with socket.create_connection(("127.0.0.1", ops.port), 5) as probe:
                probe.sendall(PROBE)
                assert probe.recv(100).startswith(b"HTTP/1.1 200"), f"{number} addresses"


# As kubelets send it.
PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("is_whole", "places"),
    [(True, OPS_CONNECTIONS), (False, OPS_CONNECTIONS), (True, 4)],
    ids=["a probe", "a probe in two parts", "a probe, with few places"],
)
def test_a_probe_is_answered_though_hundreds_connect_in_the_same_moment(
    monkeypatch: pytest.MonkeyPatch, *, is_whole: bool, places: int
) -> None:
    """All are there before the first is accepted, the probe among the first of them. One that is
    whole takes no place.
    """
    monkeypatch.setattr("roost_core.http.ops_server.MAX_CONNECTIONS", places)
    bound = bind("127.0.0.1", 0)
    bound.listen(1000)
    ops = OpsServer(bound, metrics_text=lambda: b"", readiness=lambda: (True, "ok"))
    with contextlib.ExitStack() as exits:
        probe = exits.enter_context(socket.create_connection(("127.0.0.1", ops.port), 5))
        probe.sendall(PROBE if is_whole else PROBE[:20])
        for number in range(300):
            source = (f"127.0.{2 + number // 250}.{1 + number % 250}", 0)
            dawdler = exits.enter_context(
                socket.create_connection(("127.0.0.1", ops.port), 5, source)
            )
            dawdler.sendall(b"GET /livez HTT")
        exits.callback(ops.stop)
        ops.start()
        if not is_whole:
            probe.sendall(PROBE[20:])
        answer = probe.recv(1000)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"\r\n\r\nok\n")


def test_more_connections_are_kept_than_are_accepted_in_one_turn() -> None:
    # Else one could be cut before what it sent is read.
    assert OPS_CONNECTIONS >= 2 * MAX_ACCEPTED


def answer_at_once(sent: bytes) -> bytes:
    """What a program's port answers to the first bytes of a connection."""
    with bind("127.0.0.1", 0) as bound:
        ops = OpsServer(bound, metrics_text=lambda: b"", readiness=lambda: (False, "not yet\n"))
        return ops.answer_probe(sent)


@given(length=st.integers(0, len(PROBE) - 1), more=st.binary(min_size=1, max_size=40))
def test_only_a_probe_that_is_whole_and_alone_is_answered_at_once(length: int, more: bytes) -> None:
    assert answer_at_once(PROBE).startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer_at_once(PROBE.replace(b"livez", b"readyz")).endswith(b"\r\n\r\nnot yet\n")
    for other in (
        PROBE[:length],
        PROBE + more,
        more + PROBE,
        PROBE.replace(b"livez", b"metrics"),
        PROBE.replace(b"GET", b"POST"),
        PROBE.replace(b"close", b"keep-alive"),
    ):
        assert answer_at_once(other) == b""


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("?timeout=2s", 2.0),
        ("?x=1&timeout=1m30s", 30.0),
        ("?timeout=500ms", 0.5),
        ("?timeout=1.5s&x", 1.5),
        ("?timeout=0s", 30.0),
        ("?timeout=2", 30.0),
        ("?timeout=-2s", 30.0),
        ("", 30.0),
    ],
)
def test_a_client_waits_for_as_long_as_its_url_says(query: str, seconds: float) -> None:
    assert client_waits(b"/mutate" + query.encode()) == seconds


class Queueing(Connections):
    """Connections of a server that knows how long clients wait, and what it dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped: list[Drop] = []
        self.server.client_waits = client_waits
        self.server.on_drop = self.dropped.append

    def turn(self, seconds_later: float = 0.0) -> None:
        """What the loop does next."""
        while self.server._queue:
            if self.server._queue.popleft().answer_unless_late(
                asyncio.get_running_loop().time() + seconds_later
            ):
                return


def queueing(scene: Callable[[Queueing], None]) -> None:
    async def inside() -> None:
        scene(Queueing())

    asyncio.run(inside())


def test_requests_are_answered_one_in_a_turn_and_in_order() -> None:
    @queueing
    def scene(desk: Queueing) -> None:
        wires = [desk.connect(request(PODS[0]))[1] for _ in range(3)]
        for number in range(4):
            answered = [wire.written.startswith(b"HTTP/1.1 200") for wire in wires]
            assert answered == [place < number for place in range(3)]
            desk.turn()
        pipelined = request(PODS[0], closes=False) + request(b"", path="/nothing")
        _, wire = desk.connect(pipelined)
        desk.turn()
        assert re.findall(rb"HTTP/1.1 (\d+)", wire.written) == [b"200", b"404"]
        assert desk.dropped == []


def test_a_request_that_is_late_or_whose_client_hung_up_is_not_reviewed() -> None:
    @queueing
    def scene(desk: Queueing) -> None:
        _, late = desk.connect(request(PODS[0], closes=False))
        gone, _ = desk.connect(request(PODS[0]))
        gone.connection_lost(None)
        hanging_up, closing = desk.connect(request(PODS[0]))
        closing.close()
        _, patient = desk.connect(request(PODS[0], path="/mutate?timeout=10s"))
        desk.turn(seconds_later=2.0 * LATE_SHARE + 0.1)
        assert late.written.startswith(b"HTTP/1.1 429 ")
        assert not late.is_closing()
        assert closing.written == b""
        assert patient.written.startswith(b"HTTP/1.1 200 ")
        hanging_up.connection_lost(None)
        assert sorted(desk.dropped) == [Drop.GONE, Drop.GONE, Drop.LATE]
        assert desk.server.held_bytes == 0


def test_what_a_connection_waited_for_its_handshake_counts_for_its_first_request() -> None:
    @queueing
    def scene(desk: Queueing) -> None:
        late = 2.0 * LATE_SHARE
        # Whoever opened the last one had given up: its request is another's, and new.
        for waited, status in ((late - 0.1, b"200"), (late + 0.1, b"429"), (2.1, b"200")):
            connection, wire = desk.connect(request(PODS[0], closes=False), waited=waited)
            desk.turn()
            assert wire.written.startswith(b"HTTP/1.1 %b " % status)
            # The next one is new, however soon it comes.
            written = len(wire.written)
            connection.data_received(request(PODS[0]))
            desk.turn()
            assert wire.written[written:].startswith(b"HTTP/1.1 200 ")
        # Later, it has waited for nothing.
        connection, wire = desk.connect(waited=5.0)
        connection._opened_at -= 1.0
        connection.data_received(request(PODS[0]))
        desk.turn()
        assert wire.written.startswith(b"HTTP/1.1 200 ")


class Burst:
    """Clients over real sockets who all ask before the first of them is accepted."""

    def __init__(self, exits: contextlib.ExitStack, clients: int, connections: int = 600) -> None:
        self.dropped: list[Drop] = []
        # How many had been talked to at each answer.
        self.begun: list[int] = []
        self._exits = exits
        self._bound = bind("127.0.0.1", 0)
        self._bound.listen(1000)
        self._server = Server(
            self._answer,
            client_waits=client_waits,
            on_drop=self.dropped.append,
            limits=Limits(connections=connections),
        )
        self.clients = [self.connect() for _ in range(clients)]

    def connect(self, sent: bytes = PROBE) -> socket.socket:
        client = self._exits.enter_context(socket.create_connection(self._bound.getsockname(), 5))
        client.sendall(sent)
        return client

    def _answer(self, _environ: Any, start_response: Any) -> list[bytes]:
        talked_to = [
            connection
            for connection in self._server.connections
            if connection._transport is not None
        ]
        self.begun.append(len(self.begun) + len(talked_to))
        start_response("200 OK", [])
        return [b"ok"]

    def serve(self) -> None:
        """Until everybody is gone, or for ten seconds."""

        async def inside() -> None:
            end = asyncio.Event()
            serving = asyncio.create_task(self._server.serve(self._bound, end))
            for _ in range(1000):
                await asyncio.sleep(0.01)
                if not self._server.connections:
                    break
            end.set()
            await serving

        asyncio.run(inside())


def test_a_burst_of_connections_leaves_time_for_answers() -> None:
    with contextlib.ExitStack() as exits:
        burst = Burst(exits, 100)
        burst.serve()
        # Few handshakes ahead of the answers, not a hundred ahead of the first.
        assert len(burst.begun) == 100
        assert all(begun <= answered + 10 for answered, begun in enumerate(burst.begun))
        assert all(client.recv(20).startswith(b"HTTP/1.1 200") for client in burst.clients)


def test_who_hung_up_before_the_handshake_costs_none_and_is_counted_if_they_asked() -> None:
    with contextlib.ExitStack() as exits:
        burst = Burst(exits, 20)
        for client in burst.clients:
            client.close()
        burst.connect(b"").close()
        there = burst.connect()
        burst.serve()
        assert (len(burst.begun), burst.dropped) == (1, [Drop.GONE] * 20)
        assert there.recv(20).startswith(b"HTTP/1.1 200")


def test_who_gives_way_before_the_handshake_is_closed_at_once() -> None:
    with contextlib.ExitStack() as exits:
        burst = Burst(exits, 12, connections=5)
        burst.serve()
        answered = []
        for client in burst.clients:
            with contextlib.suppress(ConnectionResetError):
                answered.append(client.recv(20)[9:12])
        assert answered.count(b"200") == len(burst.begun) == 5


def test_overload_sheds_evenly() -> None:
    """45 reviews a second into room for 30, for 20 seconds: each second 30 are answered in time."""

    @queueing
    def scene(desk: Queueing) -> None:
        answered = Counter[int]()
        waiting: list[tuple[float, Connection, Wire]] = []
        began, asked = asyncio.get_running_loop().time(), 0
        for turn in range(20 * 30):
            now = turn / 30
            while asked / 45 <= now:
                connection, wire = desk.connect(request(PODS[0]))
                connection._awaited_since = began + asked / 45
                waiting.append((asked / 45, connection, wire))
                asked += 1
            for at, connection, wire in waiting:
                if now - at > 2.0 and not wire.is_closing():
                    wire.close()
                    connection.connection_lost(None)
            while desk.server._queue:
                if desk.server._queue.popleft().answer_unless_late(began + now):
                    break
            # Each answer takes a turn's time to make.
            for at, _, wire in waiting:
                if wire.written.startswith(b"HTTP/1.1 200") and now + 1 / 30 - at <= 2.0:
                    answered[int(now)] += 1
            waiting = [one for one in waiting if not one[2].written]
        assert [answered[second] for second in range(20)] == [30] * 20
        assert set(desk.dropped) == {Drop.LATE}


def test_a_loop_that_turned_lately_is_alive_and_one_that_did_not_is_not() -> None:
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 29.0
    assert pulse.is_beating()
    now[0] = 31.0
    assert not pulse.is_beating()
    pulse.beat()
    assert pulse.is_beating()
