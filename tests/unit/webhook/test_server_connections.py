"""No connection takes longer, holds more or asks for more than it may, whichever way its requests go."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest
from uvicorn.server import ServerState

from tests.builders import review, user_pod
from tests.unit.webhook.test_server_gateway import FakeTransport, admission, request
from webhook.serving import connections
from webhook.serving.app import create_app
from webhook.serving.connections import (
    HEADER_BYTES,
    KEEP_ALIVE_SECONDS,
    MAX_HEADERS,
    REQUEST_SECONDS,
    Connection,
    Traffic,
)
from webhook.serving.doors import Door
from webhook.serving.server import Pulse, make_config

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

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
    """Connections that share one `Traffic`. To be made inside a loop."""

    def __init__(self, most_bytes: int = connections.MAX_HELD_BYTES) -> None:
        self.traffic = Traffic(most_bytes)
        self._socket = socket.socket()
        review_it = admission().review
        self.listener = connections.Listener(
            bound=self._socket, app=create_app(review_it), is_draining=lambda: False, review=review_it
        )
        self._config = make_config(self.listener)
        self._config.load()

    def connect(self) -> tuple[Connection, Wire]:
        connection, wire = Connection(self.listener, self._config, ServerState(), self.traffic), Wire()
        connection.connection_made(wire)
        return connection, wire

    def close(self) -> None:
        self._socket.close()


def run(scene: Callable[[Desk], Coroutine[Any, Any, None]], **how: int) -> None:
    async def play() -> None:
        desk = Desk(**how)
        try:
            await scene(desk)
        finally:
            for connection in list(desk.traffic.connections):
                connection.connection_lost(None)
            await asyncio.sleep(0)
            desk.close()

    asyncio.run(play())


@pytest.mark.parametrize("sent", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_request_that_is_not_whole_is_cut_at_its_deadline_however_lively_it_is(sent: bytes) -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(sent)
        await asyncio.sleep(0)
        began = connection.since
        connection.data_received(b"c")
        desk.traffic.sweep(began + REQUEST_SECONDS - 1)
        assert not wire.is_closing()
        desk.traffic.sweep(began + REQUEST_SECONDS + 1)
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
        assert desk.traffic.held_bytes == 0
        desk.traffic.sweep(connection.since + 95)
        assert not wire.is_closing()
        desk.traffic.sweep(connection.since + KEEP_ALIVE_SECONDS + 1)
        assert wire.is_closing()

    run(scene)


def test_an_answer_that_nobody_reads_ends_the_connection() -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(request(review(user_pod()), closes=False))
        wire.unread_bytes = 10
        desk.traffic.sweep(connection.since + REQUEST_SECONDS + 1)
        assert wire.is_closing()

    run(scene)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n" + b"a:\r\n" * (MAX_HEADERS + 1) + b"\r\n",
        b"GET / HTTP/1.1\r\na: " + b"b" * HEADER_BYTES + b"\r\n\r\n",
        b"GET /" + b"b" * HEADER_BYTES + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n" * 50,
    ],
    ids=["many headers", "a long header", "a long path", "many requests at once"],
)
def test_what_is_more_than_any_request_is_refused_at_once(sent: bytes) -> None:
    async def scene(desk: Desk) -> None:
        connection, wire = desk.connect()
        connection.data_received(sent)
        assert wire.is_closing()
        assert wire.written.startswith(b"HTTP/1.1 400 ")

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
            assert desk.traffic.held_bytes <= 20_000
        assert slow.is_closing()
        assert not others[-1].is_closing()
        for connection in list(desk.traffic.connections):
            connection.connection_lost(None)
        assert desk.traffic.held_bytes == 0

    run(scene, most_bytes=20_000)


def test_when_all_places_are_taken_the_address_with_most_gives_way() -> None:
    """Over real sockets: a flood from one address, and a newcomer from another."""

    async def scene() -> None:
        desk = Desk()
        desk.close()
        bound = socket.create_server(("127.0.0.1", 0))
        address = bound.getsockname()
        listener = connections.Listener(
            bound=bound, app=desk.listener.app, is_draining=lambda: False, most_connections=8
        )
        config = make_config(listener)
        config.load()
        state = ServerState()
        door = Door(listener, lambda on_lost: Connection(listener, config, state, desk.traffic, on_lost))
        accepting = asyncio.create_task(door.run())
        flood = [await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0)) for _ in range(20)]
        await asyncio.sleep(0.2)
        assert door.open == 8
        guests = [await asyncio.open_connection(*address, local_addr=("127.0.0.3", 0)) for _ in range(3)]
        for reader, writer in guests:
            writer.write(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 404")
        assert door.open == 8
        for _, writer in (*flood, *guests):
            writer.close()
        await asyncio.sleep(0.2)
        assert door.open == 0
        accepting.cancel()
        await asyncio.wait([accepting])

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
