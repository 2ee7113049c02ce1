"""Serve the page and what it asks for: a moment, a pod's `why`, and live states. Read-only.

A source is a record or a live cluster. Each request needs the token.
"""

from __future__ import annotations

import hmac
import logging
import threading
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import orjson
from flask import Flask, Response, abort, redirect, request
from werkzeug.exceptions import HTTPException
from werkzeug.serving import BaseWSGIServer, ThreadedWSGIServer, WSGIRequestHandler

from roost_lab.recorder.store.database import StoreError
from roost_lab.view.feed import Feed, State, TooManyViewersError
from roost_lab.view.moment import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket

    from werkzeug.wrappers import Response as AnyResponse

    from roost_lab.view.sources import Source

log = logging.getLogger(__name__)

JSON: Final = "application/json"
COOKIE: Final = "roost-view"
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
# Of a connection that sends or takes nothing.
IDLE_SECONDS: Final = 60.0
# Open at once: each has a thread, and a browser opens a few for each viewer.
MAX_CONNECTIONS: Final = 200
_AT_EXPECTED: Final = "expected microseconds since 1970, as a whole number"
_MAX_US: Final = 2**63 - 1


def make_app(sources: Sequence[Source], token: str, *, names: Sequence[str] = ("", "")) -> Flask:
    """The application. sources: one, or two that are shown beside each other, with their names; token: see `_admit`."""
    app = Flask(__name__, static_folder=None)

    def chosen() -> Source:
        """The source that the request is about; the first if it names none."""
        text = request.args.get("record", "0")
        if text not in map(str, range(len(sources))):
            abort(400, f"record: found {text!r}, expected a number from 0 to {len(sources) - 1}")
        return sources[int(text)]

    def read(source: Source, at_us: int | None) -> State:
        found = source.moment(at_us)
        if found is None:
            return _state({"empty": True})
        moment, extent = found
        return _state(as_json(moment), at=moment.at_us, begin=extent.from_us, end=extent.to_us)

    feed = Feed(lambda: _orrefusal(lambda: read(sources[0], None)))

    @app.before_request
    def admit() -> Any:  # noqa: ANN401 - Flask's
        return _admit(token)

    @app.get("/")
    def page() -> Response:
        return Response(_resource("view.html"), mimetype="text/html")

    @app.get("/<name>")
    def file(name: str) -> Response:
        if name not in FILES:
            return refusal(404, "no such page")
        return Response(_resource(name), mimetype=FILES[name])

    @app.get("/api/records")
    def records() -> Response:
        return Response(orjson.dumps({"records": list(names[: len(sources)])}), mimetype=JSON)

    @app.get("/api/moment")
    def moment() -> Response:
        text = request.args.get("at")
        try:
            at_us = int(text) if text is not None else None
        except ValueError:
            at_us = -1
        if at_us is not None and not 0 <= at_us <= _MAX_US:
            return refusal(400, f"at: found {text!r}, {_AT_EXPECTED}")
        return Response(read(chosen(), at_us).line, mimetype=JSON)

    @app.get("/api/why")
    def why() -> Response:
        uid = request.args.get("uid", "")
        text = chosen().why(uid)
        if text is None:
            return refusal(404, f"uid: found {uid!r}, expected the uid of a recorded pod")
        return Response(orjson.dumps({"text": text}), mimetype=JSON)

    @app.get("/api/live")
    def live() -> Response:
        try:
            return Response(feed.watch(), mimetype="text/event-stream")
        except TooManyViewersError:
            return refusal(503, "too many viewers: close another tab, or try again later")

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

    return app


def _admit(token: str) -> AnyResponse | None:
    """Swap a token in the address for a cookie; refuse whoever has neither. None: they may see everything."""
    cookie = f"{COOKIE}-{request.environ.get('SERVER_PORT', '')}"
    if hmac.compare_digest(request.args.get("token", "").encode(), token.encode()):
        # Without the token in the address, which browsers remember.
        answer = redirect(request.path)
        answer.set_cookie(cookie, token, httponly=True, samesite="Lax")
        return answer
    if hmac.compare_digest(request.cookies.get(cookie, "").encode(), token.encode()):
        return None
    return refusal(403, "open the address that `roost view` printed: it holds this page's token")


def refusal(status: int, message: str) -> Response:
    """An answer that says in one sentence what is wrong."""
    return Response(orjson.dumps({"error": message}), status=status, mimetype=JSON)


def serve(app: Flask, bound: socket) -> BaseWSGIServer:
    """A server on a socket that is bound and listens; `serve_forever` runs it."""
    host, port = bound.getsockname()[:2]
    return _Server(host, port, app, handler=_Handler, fd=bound.fileno())


class _Handler(WSGIRequestHandler):
    timeout = IDLE_SECONDS

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - werkzeug's
        """Log nothing: the first request's address holds the token."""


class _Server(ThreadedWSGIServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - werkzeug's
        super().__init__(*arguments, **named)
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


def _state(content: dict[str, Any], **times_us: int) -> State:
    return State(orjson.dumps({**content, **times_us}), orjson.dumps(content))


def _orrefusal(read: Callable[[], State]) -> State:
    # A stream that has begun can't answer with another status.
    try:
        return read()
    except StoreError as error:
        return _state({"error": str(error)})


def _resource(name: str) -> bytes:
    return (resources.files("roost_lab.pages") / name).read_bytes()
