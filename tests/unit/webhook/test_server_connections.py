"""No connection takes longer, holds more or asks for more than it may, whichever way its requests go."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from roost_core.http import server as http
from roost_core.http.ops_server import IDLE_SECONDS
from roost_core.http.server import HEADER_BYTES, MAX_HEADERS, MAX_PIPELINED, REQUEST_SECONDS, Connection, Server
from tests.builders import review, user_pod
from tests.unit.webhook.test_server_gateway import FakeTransport, admission, request
from webhook.bounds import MAX_BODY_BYTES
from webhook.serving import Pulse, create_app

BEGINNINGS = {
    "half a request line": b"POST /mut",
    "half a header": b"POST /mutate HTTP/1.1\r\nX: y",
    "half a plain review": request(review(user_pod()))[:-10],
    "half a chunk": b"POST /mutate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "half a body for nobody": b"POST /nothing HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
}


class Wire(FakeTransport):
    """A transport that also ends at once, and that may have an answer which nobody reads."""

    unread_bytes = 0

    def abort(self) -> None:
        self.close()

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes


class Desk:
    """Connections of one server. To be made inside a loop."""

    def __init__(self, max_held_bytes: int = http.MAX_HELD_BYTES, max_connections: int = 16) -> None:
        self.server = Server(
            create_app(admission().review),
            max_connections=max_connections,
            max_body_bytes=MAX_BODY_BYTES,
            max_held_bytes=max_held_bytes,
        )

    def connect(self) -> tuple[Connection, Wire]:
        connection, wire = Connection(self.server, "", asyncio.get_running_loop().time()), Wire()
        self.server.connections.add(connection)
        connection.connection_made(wire)
        return connection, wire


def run(scene: Callable[[Desk], Coroutine[Any, Any, None]], **how: int) -> None:
    async def play() -> None:
        desk = Desk(**how)
        await scene(desk)

    asyncio.run(play())


def test_an_answer_that_nobody_reads_ends_the_connection() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(request(review(user_pod()), closes=False))
        wire.unread_bytes = 10
        desk.server.sweep(connection.since + REQUEST_SECONDS + 1)
        assert wire.is_closing()

    run(scene)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n" + b"a:\r\n" * (MAX_HEADERS + 1) + b"\r\n",
        b"GET / HTTP/1.1\r\na: " + b"b" * HEADER_BYTES + b"\r\n\r\n",
        b"GET /" + b"b" * HEADER_BYTES + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a:\r\n" * (MAX_HEADERS + 1) + b"\r\n",
    ],
    ids=["many headers", "a long header", "a long path", "many trailers"],
)
def test_what_is_more_than_any_request_is_refused_at_once(sent: bytes) -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(sent)
        assert wire.is_closing()
        assert wire.written.startswith(b"HTTP/1.1 400 ")

    run(scene)


def test_of_many_requests_at_once_only_the_first_are_answered() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n\r\n" * 50)
        assert wire.is_closing()
        assert re.findall(rb"HTTP/1.1 (\d+)", wire.written) == [b"404"] * MAX_PIPELINED + [b"400"]

    run(scene)


def test_headers_count_once_however_many_reads_bring_them() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n")
        for number in range(12):
            connection.data_received(b"a%d: " % number + b"b" * (HEADER_BYTES // 16) + b"\r\n")
        connection.data_received(b"\r\n")
        assert wire.written.startswith(b"HTTP/1.1 404 ")

    run(scene)


def test_a_server_may_keep_idle_connections_for_a_shorter_time() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        desk.server.keep_alive_seconds = IDLE_SECONDS
        desk.server.sweep(connection.since + IDLE_SECONDS - 1)
        assert not wire.is_closing()
        desk.server.sweep(connection.since + IDLE_SECONDS + 1)
        assert wire.is_closing()

    run(scene)


def test_trailers_without_end_close_the_connection() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\na: ")
        for _ in range(HEADER_BYTES // 1000 + 1):
            assert not wire.is_closing()
            connection.data_received(b"b" * 1000)
        assert wire.is_closing()

    run(scene)


def test_a_client_that_asks_before_it_sends_is_told_to_go_on() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        head, _, body = request(review(user_pod())).partition(b"\r\n\r\n")
        connection.data_received(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert wire.written == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.data_received(body)
        assert b"HTTP/1.1 200 OK\r\n" in wire.written

    run(scene)


def test_bytes_held_are_bounded_and_the_one_that_dawdles_most_is_cut() -> None:
    async def scene(desk: Desk) -> None:
        first, slow = desk.connect()
        first.data_received(BEGINNINGS["half a plain review"])
        first.since -= 5
        others = []
        for _ in range(50):
            connection, wire = desk.connect()
            others.append(wire)
            connection.data_received(request(b"x" * 3000)[:2500])
            assert desk.server.held_bytes <= 20_000
        assert slow.is_closing()
        assert not others[-1].is_closing()
        for connection in list(desk.server.connections):
            connection.connection_lost(None)
        assert desk.server.held_bytes == 0

    run(scene, max_held_bytes=20_000)


def test_a_request_that_was_cut_for_what_it_holds_is_not_answered() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(request(b"x" * 30_000))
        assert wire.is_closing()
        assert wire.written == b""
        assert desk.server.held_bytes == 0

    run(scene, max_held_bytes=20_000)


def test_a_loop_that_turned_lately_is_alive_and_one_that_did_not_is_not() -> None:
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 29.0
    assert pulse.is_beating()
    now[0] = 31.0
    assert not pulse.is_beating()
    pulse.beat()
    assert pulse.is_beating()
