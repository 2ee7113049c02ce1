"""Serve the page and what it asks for: a moment, and a pod's `why`. Read-only.

A source is a record or a live cluster. Each request needs the token, and questions a header that
only this page sends.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson
from flask import Flask, Response, abort, redirect, request
from werkzeug.exceptions import HTTPException
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from roost_core.objects.fields import JSONObject
from roost_lab.pages.html_page import resource
from roost_lab.recorder.store.database import StoreError
from roost_lab.report.statistics import Span
from roost_lab.units import DAY_US
from roost_lab.view.course import Course, tell_course, tell_difference
from roost_lab.view.moment import ClusterMoment, as_json

if TYPE_CHECKING:
    from socket import socket

    from werkzeug.wrappers import Response as AnyResponse


log = logging.getLogger(__name__)

JSON: Final = "application/json"
COOKIE: Final = "roost-view"
# On each question of the page's script. A page from elsewhere can't send it: browsers ask for leave
# first.
OWN_HEADER: Final = "X-Roost-View"
# Name below /, of roost_lab/pages -> type.
FILES: Final = {"page.css": "text/css", "view.css": "text/css", "view.js": "text/javascript"}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
# A connection that sends or takes nothing for so long is closed.
IDLE_SECONDS: Final = 60.0
# The least time between two readings of the latest state, however many look at it.
PAUSE_SECONDS: Final = 2.0
_AT_EXPECTED: Final = "expected microseconds since 1970, as a whole number"
_MAX_US: Final = 2**62


class MomentSource(Protocol):
    """Something that knows nodes and pods. Its methods raise StoreError."""

    def moment(self, at_us: int | None) -> ClusterMoment | None:
        """The cluster at that time, None: the latest; None where nothing is known at all."""

    def course(self, span: Span) -> Course | None:
        """What users waited for in that time, which lies within what a moment says is known; None:
        without a past.
        """

    def why(self, uid: str) -> str | None:
        """What explains a pod; None when it isn't known."""


def common_time(sources: Sequence[MomentSource]) -> Span | None:
    """The time that all of them know; None where there is none."""
    known = [source.moment(None) for source in sources]
    from_us = max(_MAX_US if moment is None else moment.begin_us for moment in known)
    to_us = min(0 if moment is None else moment.end_us for moment in known)
    return Span(from_us, to_us) if from_us < to_us else None


def story(
    sources: Sequence[MomentSource], names: Sequence[str], wanted: Span | None = None
) -> JSONObject:
    """What users waited for in the common time, as far as it is wanted, by default its last day.

    sentence; to: the end; courses: of each source, none where there is nothing to tell.
    """
    known = common_time(sources)
    if known is None:
        return {"sentence": "", "to": 0, "courses": []}
    wanted = wanted or Span(known.to_us - DAY_US, known.to_us)
    span = Span(max(known.from_us, wanted.from_us), min(known.to_us, wanted.to_us))
    courses: list[Course] = []
    if span.from_us < span.to_us:
        all_courses = [source.course(span) for source in sources]
        courses = [course for course in all_courses if course is not None]
    if len(courses) < len(sources):
        return {"sentence": "", "to": known.to_us, "courses": []}
    sentence = tell_course(courses[0]) if len(courses) == 1 else tell_difference(names, courses)
    return {"sentence": sentence, "to": span.to_us, "courses": courses}


def make_app(
    sources: Sequence[MomentSource], token: str, *, names: Sequence[str] = ("", "")
) -> Flask:
    """The application. sources: one, or two that are shown beside each other, with their names;
    token: see `_admit`.
    """
    app = Flask(__name__, static_folder=None)

    def chosen() -> int:
        """The number of the source that the request is about; the first if it names none."""
        text = request.args.get("record", "0")
        if text not in [str(number) for number in range(len(sources))]:
            abort(400, f"record: found {text!r}, expected a number from 0 to {len(sources) - 1}")
        return int(text)

    def read(number: int, at_us: int | None) -> bytes:
        cluster_moment = sources[number].moment(at_us)
        if cluster_moment is None:
            return orjson.dumps({"empty": True})
        return orjson.dumps(as_json(cluster_moment))

    @lru_cache(maxsize=len(sources))
    def latest(number: int, _slot: int) -> bytes:
        """The latest moment, read once in each slot of PAUSE_SECONDS: the slot is in the cache's
        key.
        """
        return read(number, None)

    @app.before_request
    def admit() -> Any:  # noqa: ANN401 - Flask's
        return _admit(token)

    @app.get("/")
    def page() -> Response:
        return Response(resource("view.html"), mimetype="text/html")

    @app.get("/<name>")
    def file(name: str) -> Response:
        if name not in FILES:
            return refusal(404, "no such page")
        return Response(resource(name), mimetype=FILES[name])

    @app.get("/api/records")
    def records() -> Response:
        return Response(orjson.dumps({"records": list(names[: len(sources)])}), mimetype=JSON)

    @app.get("/api/story")
    def read_story() -> Response:
        begin = request.args.get("from")
        end = request.args.get("to")
        if begin is None and end is None:
            return Response(orjson.dumps(story(sources, names)), mimetype=JSON)
        from_us = as_time(begin)
        to_us = as_time(end)
        if from_us is None or to_us is None:
            return refusal(400, f"from, to: found {begin!r} and {end!r}, {_AT_EXPECTED}")
        return Response(orjson.dumps(story(sources, names, Span(from_us, to_us))), mimetype=JSON)

    @app.get("/api/moment")
    def moment() -> Response:
        number = chosen()
        text = request.args.get("at")
        if text is None:
            slot = int(time.monotonic() / PAUSE_SECONDS)
            return Response(latest(number, slot), mimetype=JSON)
        at_us = as_time(text)
        if at_us is None:
            return refusal(400, f"at: found {text!r}, {_AT_EXPECTED}")
        return Response(read(number, at_us), mimetype=JSON)

    @app.get("/api/why")
    def why() -> Response:
        uid = request.args.get("uid", "")
        text = sources[chosen()].why(uid)
        if text is None:
            return refusal(404, f"uid: found {uid!r}, expected the uid of a recorded pod")
        return Response(orjson.dumps({"text": text}), mimetype=JSON)

    _add_refusals(app)
    return app


def _add_refusals(app: Flask) -> None:
    """What is answered where a request fails, and the headers of every answer."""

    @app.errorhandler(StoreError)
    def no_database(error: StoreError) -> Response:
        return refusal(503, str(error))

    @app.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        return refusal(error.code or 500, error.description or "")

    @app.errorhandler(Exception)
    def failed(error: Exception) -> Response:  # the viewer gets no traceback; the log has it
        log.exception("a request failed: %s", request.path, exc_info=error)
        return refusal(500, f"unexpected {type(error).__name__}: see the log of `roost view`")

    @app.after_request
    def guard(response: Response) -> Response:
        response.headers.update(HEADERS)
        return response


def _admit(token: str) -> AnyResponse | None:
    """Swap a token in the address for a cookie; refuse whoever has neither, and other pages.

    None: go on.
    """
    cookie = f"{COOKIE}-{request.environ.get('SERVER_PORT', '')}"
    if hmac.compare_digest(request.args.get("token", "").encode(), token.encode()):
        # Without the token in the address, which browsers remember.
        answer = redirect(request.path)
        answer.set_cookie(cookie, token, httponly=True, samesite="Lax")
        return answer
    if not hmac.compare_digest(request.cookies.get(cookie, "").encode(), token.encode()):
        return refusal(
            403, "open the address that `roost view` printed: it holds this page's token"
        )
    if request.path.startswith("/api/") and OWN_HEADER not in request.headers:
        return refusal(403, f"only the page of `roost view` may ask: no header {OWN_HEADER}")
    return None


def as_time(text: str | None) -> int | None:
    """Microseconds since 1970; None for another text."""
    try:
        at_us = int(text or "")
    except ValueError:
        return None
    return at_us if 0 <= at_us <= _MAX_US else None


def refusal(status: int, message: str) -> Response:
    """An answer that says in one sentence what is wrong."""
    return Response(orjson.dumps({"error": message}), status=status, mimetype=JSON)


def serve(app: Flask, bound: socket) -> ThreadedWSGIServer:
    """A server on a socket that is bound and listens; `serve_forever` runs it."""
    host, port = bound.getsockname()[:2]
    return ThreadedWSGIServer(host, port, app, handler=_Handler, fd=bound.fileno())


class _Handler(WSGIRequestHandler):
    timeout = IDLE_SECONDS

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - werkzeug's
        """Log nothing: the first request's address holds the token."""
