"""The webhook as a Flask application: which method, path, content type and body get which answer.

An exception of `review` passes through: `Reviewer` raises none.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, UnsupportedMediaType

REVIEW_PATH: Final = "/mutate"
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class ReviewAnswer(Protocol):
    """The HTTP answer to one AdmissionReview."""

    @property
    def status(self) -> int:
        """HTTP status: 200, or 4xx for a body that is not an AdmissionReview."""

    @property
    def body(self) -> bytes:
        """An AdmissionReview as JSON, or one line of text."""


Review = Callable[[bytes], ReviewAnswer]


def create_app(review: Review) -> Flask:
    """Return the Flask application: POST /mutate, and a 4xx for every other request."""
    app = Flask("roost-webhook", static_folder=None)
    # The HTTP server logs and answers exceptions.
    app.config["PROPAGATE_EXCEPTIONS"] = True

    def mutate() -> Response:
        if request.mimetype != JSON:
            raise UnsupportedMediaType(f"expected content type {JSON}")
        response = review(request.get_data(cache=False))
        return Response(response.body, response.status, content_type=_content_type(response))

    app.add_url_rule(REVIEW_PATH, "mutate", mutate, methods=["POST"], provide_automatic_options=False)
    app.register_error_handler(HTTPException, _one_line)
    return app


def _content_type(answer: ReviewAnswer) -> str:
    return JSON if answer.status == HTTPStatus.OK else TEXT


def _one_line(error: HTTPException) -> Response:
    response = Response(f"{error.code} {error.name}: {error.description}\n", error.code, content_type=TEXT)
    response.headers.extend([(name, value) for name, value in error.get_headers() if name.lower() == "allow"])
    return response
