"""The server's short way for reviews gives what Flask gives; nothing a handler does becomes a 5xx."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import build_pod, facts, placeholder_pod, review, settings, user_pod
from webhook import logs
from webhook.admission import Admission, Answer
from webhook.app import MAX_BODY_BYTES, create_app, create_ops_app
from webhook.readiness import Readiness, Verdict
from webhook.server import Gateway

Sent = list[dict[str, Any]]


def ask(
    gateway: Gateway,
    body: bytes,
    *,
    method: str = "POST",
    path: str = "/mutate",
    headers: list[tuple[bytes, bytes]] | None = None,
    chunks: int = 1,
) -> tuple[int, dict[bytes, bytes], bytes]:
    """One request through the ASGI interface: status, headers, body."""
    size = max(1, -(-len(body) // chunks))
    parts = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    messages = iter(
        {"type": "http.request", "body": part, "more_body": n < len(parts)} for n, part in enumerate(parts, 1)
    )
    sent: Sent = []

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "scheme": "https",
        "headers": [(b"content-type", b"application/json")] if headers is None else headers,
    }
    asyncio.run(gateway(scope, receive, send))
    start, end = sent
    return start["status"], dict(start["headers"]), end["body"]


def admission() -> Admission:
    rules, known = settings(), facts()
    return Admission(lambda: rules, lambda: known, lambda: 0.0, lambda _outcome: None)


def both_ways() -> tuple[Gateway, Gateway]:
    """The short way and the way through Flask, each with an admission of its own."""
    short, flask = admission().review, admission().review
    return Gateway(create_app(short), lambda: False, short), Gateway(create_app(flask), lambda: False)


BODIES = [
    review(user_pod()),
    review(build_pod()),
    review(placeholder_pod()),
    b"",
    b"{}",
    b"[",
    b'{"request": {"uid": 5}}',
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("content_type", [b"application/json", b"Application/JSON; charset=utf-8", b"text/plain", b""])
def test_the_short_way_answers_as_flask_does(body: bytes, method: str, content_type: bytes) -> None:
    answers = [ask(way, body, method=method, headers=[(b"content-type", content_type)]) for way in both_ways()]
    assert answers[0] == answers[1]
    assert answers[0][0] < 500


@given(
    body=st.one_of(st.binary(), st.recursive(st.none() | st.text(), st.lists).map(orjson.dumps)),
    chunks=st.integers(1, 5),
)
def test_any_body_is_answered_alike_and_without_a_5xx(body: bytes, chunks: int) -> None:
    answers = [ask(way, body, chunks=chunks) for way in both_ways()]
    assert answers[0] == answers[1]
    assert 400 <= answers[0][0] < 500


@given(path=st.text(), method=st.sampled_from(["GET", "POST", "BREW", "CONNECT"]))
def test_any_path_gets_a_4xx(path: str, method: str) -> None:
    encoded = f"/{path}".encode("utf-8", "replace").decode()
    assert ask(both_ways()[0], b"", method=method, path=encoded)[0] in (400, 404, 405, 415, 308)


def test_a_body_at_the_bound_is_read_and_one_byte_more_is_refused() -> None:
    gateway = both_ways()[0]
    assert ask(gateway, b"x" * MAX_BODY_BYTES, chunks=4)[0] == 400
    status, headers, _ = ask(gateway, b"x" * (MAX_BODY_BYTES + 1), chunks=4)
    assert (status, headers[b"connection"]) == (413, b"close")


@pytest.mark.parametrize("is_short", [True, False])
def test_a_fault_in_the_review_admits_the_pod_and_logs_no_content(
    caplog: pytest.LogCaptureFixture, *, is_short: bool
) -> None:
    def broken(_body: bytes) -> Answer:
        raise ValueError("JUPYTERHUB_API_TOKEN=secret")

    gateway = Gateway(create_app(broken), lambda: False, broken if is_short else None)
    status, _, body = ask(gateway, review(user_pod()))
    response = orjson.loads(body)["response"]
    assert (status, response["allowed"]) == (200, True)
    assert "patch" not in response
    assert "Traceback" not in body.decode()
    (record,) = caplog.records
    line = logs.OneLineFormatter().format(record)
    assert "fault=ValueError at test_server_gateway.py" in line
    assert "secret" not in line


def test_a_fault_with_a_body_that_names_no_uid_is_a_400() -> None:
    def broken(_body: bytes) -> Answer:
        raise ValueError

    assert ask(Gateway(create_app(broken), lambda: False, broken), b"[]")[0] == 400


def test_while_draining_every_answer_asks_the_connection_to_close() -> None:
    review_it = admission().review
    gateway = Gateway(create_app(review_it), lambda: True, review_it)
    for path in ("/mutate", "/nothing"):
        assert ask(gateway, review(user_pod()), path=path)[1][b"connection"] == b"close"


def test_a_client_that_leaves_gets_no_answer() -> None:
    sent: Sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(both_ways()[0]({"type": "http"}, receive, send))
    assert sent == []


def test_readiness_lists_every_check_and_fails_with_any_of_them() -> None:
    checks = {"policy": lambda: Verdict(passed=True, detail="revision 1"), "facts": lambda: Verdict(passed=False)}
    gateway = Gateway(create_ops_app(lambda: b"", Readiness(checks)), lambda: False)
    status, _, body = ask(gateway, b"", method="GET", path="/readyz")
    assert status == 503
    assert body.decode().splitlines() == ["[+]policy ok: revision 1", "[-]facts failed", "not ready"]
    assert ask(gateway, b"", method="GET", path="/livez")[0] == 200


def test_a_fault_in_a_check_is_no_5xx(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> tuple[bool, str]:
        raise RuntimeError

    gateway = Gateway(create_ops_app(lambda: b"", broken), lambda: False)
    assert ask(gateway, b"", method="GET", path="/readyz")[0] == 400
    assert caplog.records


def test_a_log_line_stays_one_line_whatever_it_holds() -> None:
    record = logging.LogRecord("name", logging.INFO, "file", 1, "one\ntwo\x1b[31m", None, None)
    assert "\n" not in logs.OneLineFormatter().format(record)
    assert "\x1b" not in logs.OneLineFormatter().format(record)
