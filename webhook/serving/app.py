"""The webhook as a WSGI application: what is answered to which method, path, content type and body.

The Flask application is the whole definition. `create_wsgi` stands in front of it and answers the one request that
matters by itself, a review as kube-apiserver sends it: Flask costs more than the review does (docs/decisions/0002).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import orjson
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, UnsupportedMediaType

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)

REVIEW_PATH: Final = "/mutate"
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class ReviewAnswer(Protocol):
    """The HTTP answer to one AdmissionReview."""

    @property
    def status(self) -> int:
        """HTTP status: 200, or 4xx for what is no AdmissionReview."""

    @property
    def body(self) -> bytes:
        """An AdmissionReview as JSON, or one line of text."""


Review = Callable[[bytes], ReviewAnswer]


def create_wsgi(review: Review) -> WSGIApplication:
    """Return the application behind HTTPS: reviews are answered at once, anything else by Flask."""
    flask = create_app(review).wsgi_app

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if (environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("CONTENT_TYPE")) != (
            "POST",
            REVIEW_PATH,
            JSON,
        ):
            return flask(environ, start_response)
        status, body = answer_review(review, environ["wsgi.input"].read())
        start_response(f"{status} {HTTPStatus(status).phrase}", [("Content-Type", content_type_of(status))])
        return [body]

    return answer


def create_app(review: Review) -> Flask:
    """Return the Flask application: POST /mutate, and a 4xx for the rest."""
    app = Flask("roost-webhook", static_folder=None)
    # Faults are the server's to log and to answer.
    app.config["PROPAGATE_EXCEPTIONS"] = True

    def mutate() -> Response:
        if request.mimetype != JSON:
            raise UnsupportedMediaType(f"content type {JSON} is expected")
        status, body = answer_review(review, request.get_data(cache=False))
        return Response(body, status, content_type=content_type_of(status))

    app.add_url_rule(REVIEW_PATH, "mutate", mutate, methods=["POST"], provide_automatic_options=False)
    app.register_error_handler(HTTPException, _one_line)
    return app


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


def content_type_of(status: int) -> str:
    """Content type of a review's answer: JSON for reviews, text for refusals."""
    return JSON if status == 200 else TEXT


def _one_line(error: HTTPException) -> Response:
    response = Response(f"{error.code} {error.name}: {error.description}\n", error.code, content_type=TEXT)
    response.headers.extend([(name, value) for name, value in error.get_headers() if name.lower() == "allow"])
    return response
