"""What each request gets; nothing that is sent or that a handler does becomes a 5xx."""

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost_core.http.ops_server import OpsServer
from roost_core.http.server import Connection, Server, bind, call_wsgi
from roost_core.kube import logs
from roost_core.kube.readiness import ReadyVerdict, check_all
from tests.builders import build_pod, facts, placeholder_pod, review, settings, user_pod
from webhook.bounds import MAX_BODY_BYTES
from webhook.review import Answer, Reviewer
from webhook.serving import create_app

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
        server = Server(create_app(review_it), max_body_bytes=MAX_BODY_BYTES)
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
    return (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\n{connection}Content-Length: {len(body)}\r\n".encode()
        + b"Content-Type: %b\r\n\r\n%b" % (content_type, body)
    )


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


@pytest.mark.parametrize(
    ("method", "content_type", "status"),
    [
        ("GET", b"application/json", 405),
        ("PUT", b"application/json", 405),
        ("HEAD", b"application/json", 405),
        ("OPTIONS", b"application/json", 405),
        ("POST", b"text/plain", 415),
        ("POST", b"", 415),
    ],
)
def test_other_methods_and_content_types_are_refused(method: str, content_type: bytes, status: int) -> None:
    found, headers, _ = answer(request(PODS[0], method=method, content_type=content_type))
    assert found == status
    assert headers.get(b"allow") == (b"POST" if status == 405 else None)


@given(path=PATHS)
@pytest.mark.slow
def test_any_path_gets_a_4xx(path: str) -> None:
    assert read_answer(converse(request(b"", path=f"/-{path}"), admission().review))[0] in (400, 404)


def test_pipelined_requests_are_answered_in_order() -> None:
    plain, other = request(PODS[0], closes=False), request(b"", path="/nothing", closes=False)
    written = converse(plain + other + plain + other + request(PODS[0]), admission().review)
    assert re.findall(rb"HTTP/1.1 (\d+)", written) == [b"200", b"404", b"200", b"404", b"200"]


def get(path: str, readiness: Callable[[], tuple[bool, str]]) -> tuple[str, bytes]:
    """GET a page for probes."""
    with bind("127.0.0.1", 0) as bound:
        ops = OpsServer(bound, metrics_text=lambda: b"", readiness=readiness)
        status, _, body = call_wsgi(ops.answer, {"REQUEST_METHOD": "GET", "PATH_INFO": path})
    return status, body


def test_readiness_lists_every_check_and_fails_with_any_of_them() -> None:
    checks = {
        "policy": lambda: ReadyVerdict(passed=True, detail="revision 1"),
        "facts": lambda: ReadyVerdict(passed=False),
    }
    status, body = get("/readyz", lambda: check_all(checks))
    assert status.startswith("503 ")
    assert body.decode().splitlines() == ["[+]policy ok: revision 1", "[-]facts failed", "not ready"]
    assert get("/livez", lambda: check_all(checks))[0] == "200 OK"


def test_a_fault_in_an_application_is_no_5xx(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> list[bytes]:
        raise RuntimeError

    async def run() -> bytes:
        connection, transport = Connection(Server(broken), "", 0), FakeTransport()
        connection.connection_made(transport)
        connection.data_received(b"GET /readyz HTTP/1.1\r\n\r\n")
        return transport.written

    assert read_answer(asyncio.run(run()))[0] == 400
    assert caplog.records


def test_a_log_line_stays_one_line_whatever_it_holds() -> None:
    record = logging.LogRecord("name", logging.INFO, "file", 1, "one\ntwo\x1b[31m", None, None)
    assert "\n" not in logs.OneLineFormatter().format(record)
    assert "\x1b" not in logs.OneLineFormatter().format(record)
