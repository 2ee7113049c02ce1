"""Speak HTTP: one Flask application for reviews, one for probes and metrics.

Owns methods, content types, size bounds and status codes; what a review answers comes in as a function.
Guarantee: whatever is sent, no 5xx and no traceback leaves the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

import orjson
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, UnsupportedMediaType

from webhook.rules.bounds import MAX_BODY_BYTES

log = logging.getLogger(__name__)

REVIEW_PATH: Final = "/mutate"
JSON: Final = "application/json"
# What Prometheus asks for; the version of its text format.
METRICS_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


class ReviewAnswer(Protocol):
    """The HTTP answer to one AdmissionReview."""

    @property
    def status(self) -> int:
        """HTTP status: 200, or 4xx for what is no AdmissionReview."""

    @property
    def body(self) -> bytes:
        """An AdmissionReview as JSON, or one line of text."""


Review = Callable[[bytes], ReviewAnswer]


def answer_review(review: Review, body: bytes) -> tuple[int, bytes]:
    """Answer one POST body; a fault of ours admits the pod as it came."""
    try:
        answer = review(body)
    except Exception:  # the edge: a fault of ours must not stop a hub from starting pods
        log.exception("review failed, pod admitted untouched")
        return admit_untouched(body)
    return answer.status, answer.body


def admit_untouched(body: bytes) -> tuple[int, bytes]:
    """Answer `allowed: true` without a patch; 400 when `body` has no uid to answer to."""
    try:
        uid = orjson.loads(body)["request"]["uid"]
    except (ValueError, TypeError, KeyError):
        return 400, b"not an AdmissionReview with request.uid\n"
    response = {
        "uid": uid,
        "allowed": True,
        "warnings": ["Roost placed nothing: internal fault, see the webhook's log"],
    }
    return 200, orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


def create_app(review: Review) -> Flask:
    """Return the application behind HTTPS: POST /mutate."""
    app = _bare_app("roost-webhook")
    # A review beyond the bound comes with its first bytes, one more than the bound: enough to be answered.
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES + 1

    def mutate() -> Response:
        if request.mimetype != JSON:
            raise UnsupportedMediaType(f"content type {JSON} is expected")
        status, body = answer_review(review, request.get_data(cache=False))
        return Response(body, status, content_type=content_type_of(status))

    app.add_url_rule(REVIEW_PATH, "mutate", mutate, methods=["POST"], provide_automatic_options=False)
    return app


def create_ops_app(
    metrics_text: Callable[[], bytes],
    readiness: Callable[[], tuple[bool, str]],
    is_alive: Callable[[], bool] = lambda: True,
) -> Flask:
    """Return the application behind plain HTTP: /metrics, /livez and /readyz (503 with a line a check until ready).

    is_alive: whether reviews are still being answered; they have a loop of their own.
    """
    app = _bare_app("roost-webhook-ops")

    def live() -> Response:
        alive = is_alive()
        text = "ok\n" if alive else "stuck: no review can be answered\n"
        return Response(text, 200 if alive else 503, content_type="text/plain; charset=utf-8")

    def ready() -> Response:
        is_ready, detail = readiness()
        return Response(detail, 200 if is_ready else 503, content_type="text/plain; charset=utf-8")

    app.add_url_rule("/metrics", "metrics", lambda: Response(metrics_text(), 200, content_type=METRICS_TEXT))
    app.add_url_rule("/livez", "livez", live)
    app.add_url_rule("/readyz", "readyz", ready)
    return app


def content_type_of(status: int) -> str:
    """Content type of a review's answer: JSON for reviews, text for refusals."""
    return JSON if status == 200 else "text/plain; charset=utf-8"


def _bare_app(name: str) -> Flask:
    app = Flask(name, static_folder=None)
    app.register_error_handler(Exception, _one_line)
    return app


def _one_line(error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.code is not None and error.code < 500:
        response = Response(f"{error.code} {error.name}: {error.description}\n", error.code)
        response.headers.extend([(name, value) for name, value in error.get_headers() if name.lower() == "allow"])
        response.content_type = "text/plain; charset=utf-8"
        return response
    log.error("request failed", exc_info=error)
    # 4xx, not 5xx: the API server treats both alike, and a 5xx would page somebody for a request nobody can mend.
    return Response("400 the request could not be handled, see the webhook's log\n", 400)
