"""No connection takes longer, holds more or asks for more than it may, whichever way its requests go."""

import asyncio
import re
from collections.abc import Callable

import pytest

from roost_core.http import server as http
from roost_core.http.ops_server import IDLE_SECONDS
from roost_core.http.server import HEADER_BYTES, MAX_HEADERS, MAX_PIPELINED, REQUEST_SECONDS, Connection, Server
from tests.builders import review, user_pod
from tests.unit.webhook.test_server_gateway import FakeTransport, admission, request
from webhook.bounds import MAX_BODY_BYTES
from webhook.serving import Pulse, create_app

CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


class Wire(FakeTransport):
    """A transport that also ends at once, and that may have an answer which nobody reads."""

    unread_bytes = 0

    def abort(self) -> None:
        self.close()

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes


class Desk:
    """Connections of one server. To be made inside a loop."""

    def __init__(self, max_held_bytes: int = http.MAX_HELD_BYTES) -> None:
        self.server = Server(
            create_app(admission().review),
            max_connections=16,
            max_body_bytes=MAX_BODY_BYTES,
            max_held_bytes=max_held_bytes,
        )

    def connect(self, *sent: bytes) -> tuple[Connection, Wire]:
        connection, wire = Connection(self.server, "", asyncio.get_running_loop().time()), Wire()
        self.server.connections.add(connection)
        connection.connection_made(wire)
        for data in sent:
            connection.data_received(data)
        return connection, wire


def run(**how: int) -> Callable[[Callable[[Desk], None]], None]:
    """Play a scene inside a loop."""

    def play(scene: Callable[[Desk], None]) -> None:
        async def inside() -> None:
            scene(Desk(**how))

        asyncio.run(inside())

    return play


def test_an_answer_that_nobody_reads_ends_the_connection_and_an_idle_one_ends_as_soon_as_the_server_says() -> None:
    @run()
    def scene(desk: Desk) -> None:
        connection, wire = desk.connect(request(review(user_pod()), closes=False))
        wire.unread_bytes = 10
        desk.server.sweep(connection.since + REQUEST_SECONDS + 1)
        assert wire.is_closing()
        idle, wire = desk.connect()
        desk.server.keep_alive_seconds = IDLE_SECONDS
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
def test_what_is_more_than_any_request_is_refused_at_once(sent: bytes, answers: list[bytes]) -> None:
    @run()
    def scene(desk: Desk) -> None:
        _, wire = desk.connect(sent)
        assert wire.is_closing()
        assert re.findall(rb"HTTP/1.1 (\d+)", wire.written) == answers


def test_trailers_without_end_close_the_connection() -> None:
    @run()
    def scene(desk: Desk) -> None:
        connection, wire = desk.connect(CHUNKED + b"1\r\na\r\n0\r\na: ")
        for _ in range(HEADER_BYTES // 1000 + 1):
            assert not wire.is_closing()
            connection.data_received(b"b" * 1000)
        assert wire.is_closing()


def test_a_client_that_asks_before_it_sends_is_told_to_go_on() -> None:
    head, _, body = request(review(user_pod())).partition(b"\r\n\r\n")

    @run()
    def scene(desk: Desk) -> None:
        connection, wire = desk.connect(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert wire.written == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.data_received(body)
        assert b"HTTP/1.1 200 OK\r\n" in wire.written


def test_bytes_held_are_bounded_and_the_one_that_dawdles_most_is_cut() -> None:
    @run(max_held_bytes=20_000)
    def scene(desk: Desk) -> None:
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


def test_a_loop_that_turned_lately_is_alive_and_one_that_did_not_is_not() -> None:
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 29.0
    assert pulse.is_beating()
    now[0] = 31.0
    assert not pulse.is_beating()
    pulse.beat()
    assert pulse.is_beating()
