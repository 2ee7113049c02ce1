"""HTTP around the reviews: the Flask application, and its event loop from start to end.

Reviews run on the event loop itself. A review reads only memory, and to hand it to a thread would
cost more than the review (docs/decisions/0002-webhook-server.md). Probes and metrics have their own
thread. The HTTP server is `roost_core/http/`.
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
# A loop that hasn't come round for so long is stuck: a review takes much less.
STUCK_SECONDS: Final = 30.0
# The API server says in the URL's query how long it waits. Go writes durations as 2s or 1m30s.
_TIMEOUT: Final = re.compile(rb"[?&]timeout=((?:[0-9]{1,9}(?:\.[0-9]{0,9})?(?:ms|[hms]))+)(?:&|$)")
_TIMEOUT_PART: Final = re.compile(rb"([0-9.]+)(ms|[hms])")
_UNIT_SECONDS: Final = {b"h": 3600.0, b"m": 60.0, b"s": 1.0, b"ms": 0.001}


def create_app(review: Callable[[bytes], Answer]) -> Flask:
    """Return the Flask application. It answers POST /mutate, and any other request with a 4xx.

    It doesn't catch exceptions of `review`: `Reviewer` raises none.
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
    """For how many seconds the API server waits for the answer to a request with this URL.

    REQUEST_SECONDS at most, and also if the URL doesn't say it.
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
    """The answer to a wrong request: a line of text, with the Allow header of a 405."""
    response = Response(
        f"{error.code} {error.name}: {error.description}\n", error.code, content_type=TEXT
    )
    response.headers.extend(
        [(name, value) for name, value in error.get_headers() if name.lower() == "allow"]
    )
    return response


class Pulse:
    """Tells whether the event loop runs. The loop beats each second, and another thread checks."""

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
    """Serve until SIGTERM or SIGINT.

    Then `draining` is set, and requests are served for `drain_seconds` more. A second signal ends
    that at once. Nothing listens before there is a certificate.
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
