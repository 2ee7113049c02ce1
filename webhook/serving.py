"""HTTP around the reviews: the Flask application, and its event loop from start to end.

Reviews run on the event loop itself, not in threads: they use memory only, and handing one to a
thread costs more than the review (docs/decisions/0002-webhook-server.md). Probes and metrics have a
thread of their own. The HTTP server is `roost_core/http/`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, UnsupportedMediaType

from roost_core.http.server import REQUEST_SECONDS, TEXT, Server
from webhook.certificates.tls import ServingCertificate
from webhook.review import Answer

log = logging.getLogger(__name__)

REVIEW_PATH: Final = "/mutate"
JSON: Final = "application/json"
# A loop without an iteration for so long is stuck: each review is bounded far below it.
STUCK_SECONDS: Final = 30.0
# How the API server says how long it waits, in the URL's query: `timeout=2s`, as Go writes it.
_TIMEOUT: Final = re.compile(rb"[?&]timeout=((?:[0-9]{1,9}(?:\.[0-9]{0,9})?(?:ms|[hms]))+)(?:&|$)")
_TIMEOUT_PART: Final = re.compile(rb"([0-9.]+)(ms|[hms])")
_UNIT_SECONDS: Final = {b"h": 3600.0, b"m": 60.0, b"s": 1.0, b"ms": 0.001}


def create_app(review: Callable[[bytes], Answer]) -> Flask:
    """Return the Flask application: POST /mutate, and a 4xx for every other request.

    An exception of `review` passes through: `Reviewer` raises none.
    """
    app = Flask("roost-webhook", static_folder=None)
    # The HTTP server logs and answers exceptions.
    app.config["PROPAGATE_EXCEPTIONS"] = True

    def mutate() -> Response:
        if request.mimetype != JSON:
            raise UnsupportedMediaType(f"expected content type {JSON}")
        response = review(request.get_data(cache=False))
        content_type = JSON if response.status == HTTPStatus.OK else TEXT
        return Response(response.body, response.status, content_type=content_type)

    app.add_url_rule(
        REVIEW_PATH, "mutate", mutate, methods=["POST"], provide_automatic_options=False
    )
    app.register_error_handler(HTTPException, _one_line)
    return app


def client_waits(url: bytes) -> float:
    """For how many seconds the API server waits for an answer, by its request's target; at most
    REQUEST_SECONDS, and that where it doesn't say.
    """
    timeout = _TIMEOUT.search(url)
    if timeout is None:
        return REQUEST_SECONDS
    parts = _TIMEOUT_PART.findall(timeout[1])
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    if seconds == 0:
        return REQUEST_SECONDS
    return min(seconds, REQUEST_SECONDS)


def _one_line(error: HTTPException) -> Response:
    response = Response(
        f"{error.code} {error.name}: {error.description}\n", error.code, content_type=TEXT
    )
    response.headers.extend(
        [(name, value) for name, value in error.get_headers() if name.lower() == "allow"]
    )
    return response


class Pulse:
    """Tells whether the event loop runs: the loop beats each second, another thread checks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()

    def beat(self) -> None:
        """Note that the loop runs."""
        self._at = self._clock()

    def is_beating(self) -> bool:
        """Whether the loop has run in the last STUCK_SECONDS."""
        return self._clock() - self._at < STUCK_SECONDS


async def serve(
    server: Server,
    bound: socket.socket,
    certificate: ServingCertificate,
    *,
    draining: threading.Event,
    drain_seconds: float,
    pulse: Pulse,
) -> None:
    """Serve until SIGTERM or SIGINT, then set `draining` and serve `drain_seconds` more; a second
    signal ends at once.

    Doesn't listen until there is a certificate.
    """
    loop = asyncio.get_running_loop()
    end = asyncio.Event()

    def on_signal() -> None:
        if draining.is_set():
            end.set()
            return
        log.info("draining seconds=%g", drain_seconds)
        draining.set()
        loop.call_later(drain_seconds, end.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    while not certificate.is_loaded and not end.is_set():
        pulse.beat()
        await asyncio.sleep(0.05)
    await server.serve(bound, end, pulse.beat)
