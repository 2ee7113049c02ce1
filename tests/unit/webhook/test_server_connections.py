"""No connection takes longer, holds more or asks for more than it may, whichever way its requests go."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from roost_core.http import server as http
from roost_core.http.ops_server import IDLE_SECONDS, OpsServer
from roost_core.http.server import (
    HEADER_BYTES,
    KEEP_ALIVE_SECONDS,
    MAX_HEADERS,
    MAX_PIPELINED,
    REQUEST_SECONDS,
    Connection,
    Server,
    bind,
)
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


@pytest.mark.parametrize("sent", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_request_that_is_not_whole_is_cut_at_its_deadline_however_lively_it_is(sent: bytes) -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(sent)
        await asyncio.sleep(0)
        began = connection.since
        connection.data_received(b"c")
        desk.server.sweep(began + REQUEST_SECONDS - 1)
        assert not wire.is_closing()
        desk.server.sweep(began + REQUEST_SECONDS + 1)
        assert wire.is_closing()

    run(scene)


@pytest.mark.parametrize("path", ["/mutate", "/nothing"])
def test_between_requests_a_connection_is_kept_for_longer_than_the_api_server_keeps_it(path: str) -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(request(review(user_pod()), path=path, closes=False))
        for _ in range(3):
            await asyncio.sleep(0)
        assert wire.written.startswith(b"HTTP/1.1 ")
        assert desk.server.held_bytes == 0
        desk.server.sweep(connection.since + 95)
        assert not wire.is_closing()
        desk.server.sweep(connection.since + KEEP_ALIVE_SECONDS + 1)
        assert wire.is_closing()

    run(scene)


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


def test_when_all_places_are_taken_the_address_with_most_gives_way() -> None:
    """Over real sockets: a flood from one address, and a newcomer from another."""

    async def scene() -> None:
        server = Desk(max_connections=8).server
        bound, end = bind("127.0.0.1", 0), asyncio.Event()
        address = bound.getsockname()
        serving = asyncio.create_task(server.serve(bound, end))
        await asyncio.sleep(0)
        flood = [await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0)) for _ in range(20)]
        await asyncio.sleep(0.2)
        assert len(server.connections) == 8
        guests = [await asyncio.open_connection(*address, local_addr=("127.0.0.3", 0)) for _ in range(3)]
        for reader, writer in guests:
            writer.write(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 404")
        assert len(server.connections) == 8
        for _, writer in (*flood, *guests):
            writer.close()
        await asyncio.sleep(0.2)
        assert len(server.connections) == 0
        end.set()
        await serving

    asyncio.run(scene())


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", [b"", b"GET /livez HTT", b"GET /livez HTTP/1.1\r\n\r\n"], ids=["nothing", "half", "whole"]
)
def test_sixteen_addresses_that_keep_their_connections_starve_no_probe(sent: bytes) -> None:
    """Over real sockets, on the port for probes."""

    async def scene() -> None:
        bound = bind("", 0)
        bound.listen()
        ops = OpsServer(bound, metrics_text=lambda: b"", readiness=lambda: (True, "ok"))
        ops.start()
        dawdlers = []
        for number in range(16):
            source = (f"127.0.1.{number + 1}", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", ops.port, local_addr=source)
            writer.write(sent)
            dawdlers.append((reader, writer))
        await asyncio.sleep(0.2)
        for _ in range(45):
            reader, writer = await asyncio.open_connection("127.0.0.1", ops.port)
            writer.write(b"GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 200")
            writer.close()
        if sent == b"GET /livez HTT":
            # And none of them keeps its place: two seconds for a request, and one between two sweeps.
            ends = [reader.read() for reader, _ in dawdlers]
            assert await asyncio.wait_for(asyncio.gather(*ends, return_exceptions=True), 4)
        for _, writer in dawdlers:
            writer.close()
        ops.stop()

    asyncio.run(scene())


def test_a_loop_that_turned_lately_is_alive_and_one_that_did_not_is_not() -> None:
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    now[0] = 29.0
    assert pulse.is_beating()
    now[0] = 31.0
    assert not pulse.is_beating()
    pulse.beat()
    assert pulse.is_beating()
