"""Talk to the API server in plain JSON: read, write, and stream watch events.

`account.py` connects.
"""

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlencode

import orjson
import urllib3

from roost_core.objects.fields import JSONObject

Body = JSONObject | list[JSONObject]
Query = Mapping[str, str | int | bool]

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 15.0
# So long a thread waits for a server that refuses a request (429, 503), whatever it asks for:
# urllib3 alone would sleep for hours. A Lease leaves ten seconds for two tries.
MOST_REFUSED_SECONDS: Final = 2.0
# The user agent in audit logs and managed fields.
USER_AGENT: Final = "roost"
NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
# Kept open: watches have connections of their own.
POOL_CONNECTIONS: Final = 10
# Objects in one page of a list: a few MB, even of pods.
PAGE_OBJECTS: Final = 500
# A header Date is cut to seconds, and an answer takes a moment.
_DATE_SECONDS: Final = 2.0
_JSON: Final = "application/json"
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_SILENT: Final = (urllib3.exceptions.TimeoutError, TimeoutError)


class _Once(urllib3.Retry):
    """Repeat a GET, PUT or DELETE once: at once if it had no answer, or after Retry-After.

    Who writes or watches waits longer before it asks again: `runtime/apply.py` of the controllers,
    `event_stream.py`.
    """

    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        """Seconds until the request is repeated; None: the header is missing."""
        seconds = super().get_retry_after(response)
        return None if seconds is None else min(seconds, MOST_REFUSED_SECONDS)


# Redirects aren't followed: an API server sends none.
RETRIES: Final = _Once(1, redirect=False)


class ClusterError(Exception):
    """The API server could not be reached; the message says why, without credentials."""


class ApiError(ClusterError):
    """The API server refused a request.

    `status` is the HTTP status; 0 for a fault within a stream without one.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """One API server, as one user. Safe to share between threads: connections are pooled."""

    def __init__(
        self,
        host: str,
        pool: urllib3.PoolManager,
        authorization: Callable[[], str] = lambda: "",
        on_request: Callable[[str], None] = lambda _verb: None,
    ) -> None:
        """host: URL of the API server. authorization: gives the header of that name; "": none.

        on_request: called with the HTTP method before each request, for metrics.
        """
        self.host = host
        self.pool = pool
        self._authorization = authorization
        self._on_request = on_request
        # As the kubeconfig's context says.
        self.namespace = "default"
        # The header Date of the last answer, and this machine's clock then.
        self._dated: tuple[str, float] = ("", 0.0)

    def clock_difference(self) -> float:
        """Seconds by which the API server's clock is ahead of this machine's, as the last answer
        said; 0.0: no answer said it.

        A header has whole seconds, so a difference of a second or less is none.
        """
        text, own = self._dated
        try:
            difference = parsedate_to_datetime(text).timestamp() - own
        except ValueError:
            return 0.0
        return difference if abs(difference) > _DATE_SECONDS else 0.0

    def get(
        self, path: str, query: Query | None = None, *, read_seconds: float = READ_SECONDS
    ) -> JSONObject:
        """Read one object or list; read_seconds: how long the server may be silent.

        Raises ApiError, ClusterError.
        """
        return self._call("GET", path, query, read_seconds=read_seconds)

    def find(self, path: str, *, read_seconds: float = READ_SECONDS) -> JSONObject | None:
        """Read one object; None if it doesn't exist. Raises ApiError, ClusterError."""
        try:
            return self.get(path, read_seconds=read_seconds)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def create(self, path: str, body: JSONObject) -> JSONObject:
        """Create an object in a collection. Raises ApiError (409: it exists), ClusterError."""
        return self._call("POST", path, None, body)

    def replace(
        self, path: str, body: JSONObject, *, read_seconds: float = READ_SECONDS
    ) -> JSONObject:
        """Replace an object; with a resourceVersion inside, only if it is unchanged (409
        otherwise).
        """
        return self._call("PUT", path, None, body, read_seconds=read_seconds)

    def change(self, path: str, operations: list[JSONObject], manager: str) -> JSONObject:
        """JSON Patch (RFC 6902). Raises ApiError (422: a `test` in it failed), ClusterError."""
        return self._call("PATCH", path, {"fieldManager": manager}, operations, _JSON_PATCH)

    def merge(self, path: str, body: JSONObject, manager: str) -> JSONObject:
        """JSON Merge Patch (RFC 7396): null removes.

        With metadata.resourceVersion: 409 if it has changed.
        """
        return self._call("PATCH", path, {"fieldManager": manager}, body, _MERGE_PATCH)

    def try_apply(self, path: str, body: JSONObject, manager: str) -> JSONObject:
        """What an object would be once it is applied (server-side, by force); a dry run.

        Raises as `merge`.
        """
        query: Query = {"fieldManager": manager, "force": True, "dryRun": "All"}
        return self._call("PATCH", path, query, body, _APPLY_PATCH)

    def delete(self, path: str, uid: str) -> None:
        """Delete an object if it has this uid.

        Raises ApiError (404: gone; 409: it was replaced), ClusterError.
        """
        options: JSONObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
        }
        self._call("DELETE", path, None, options)

    def lines(self, path: str, query: Query, silence_seconds: float) -> Iterator[bytes]:
        """Stream the response line by line; ends when the server ends it.

        silence_seconds: longer without a byte means that the connection is dead. Raises ApiError,
        ClusterError.
        """
        answer = self._request("GET", path, query, read_seconds=silence_seconds)
        try:
            yield from answer
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(_describe(error)) from None
        finally:
            # Closed, not returned to the pool: the next request must not read the remaining stream.
            answer.close()

    def _call(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Body | None = None,
        content_type: str = _JSON,
        *,
        read_seconds: float = READ_SECONDS,
    ) -> JSONObject:
        answer = self._request(
            method, path, query or {}, body, content_type=content_type, read_seconds=read_seconds
        )
        try:
            parsed = orjson.loads(answer.data)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(_describe(error)) from None
        except ValueError:
            raise ClusterError(f"{method} {path}: the response is not valid JSON") from None
        finally:
            answer.release_conn()
        if not isinstance(parsed, dict):
            raise ClusterError(f"{method} {path}: the response is not a JSON object")
        return parsed

    def _request(
        self,
        method: str,
        path: str,
        query: Query,
        body: Body | None = None,
        *,
        content_type: str = _JSON,
        read_seconds: float = READ_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        plain = [
            (key, str(value).lower() if isinstance(value, bool) else str(value))
            for key, value in query.items()
        ]
        headers = {"Accept": _JSON, "User-Agent": USER_AGENT}
        if body is not None:
            headers["Content-Type"] = content_type
        self._on_request("WATCH" if query.get("watch") else method)
        try:
            if authorization := self._authorization():
                headers["Authorization"] = authorization
            answer = self.pool.request(
                method,
                f"{self.host}{path}{'?' if plain else ''}{urlencode(plain)}",
                body=None if body is None else orjson.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # Host and port, without a password that may be in it.
            raise ClusterError(
                _describe(error, self.host.partition("://")[2].partition("/")[0].rpartition("@")[2])
            ) from None
        self._dated = (answer.headers.get("Date") or "", time.time())
        # A redirect isn't followed, so that credentials go nowhere else.
        if answer.status >= 300:
            raise ApiError(answer.status, f"{method} {path}: {answer.status} {_reason(answer)}")
        return answer


def list_all(client: Client, path: str, query: Query | None = None) -> Iterator[JSONObject]:
    """The objects of a list, read page by page: of thousands, no answer takes longer than
    READ_SECONDS.

    For who reads a list once; who follows it uses a watch. Raises ApiError (410: the list took so
    long that its next page is gone), ClusterError.
    """
    page_query = {**(query or {}), "limit": PAGE_OBJECTS}
    while True:
        page = client.get(path, page_query)
        yield from page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue")
        if not token:
            return
        page_query["continue"] = token


def unusable(where: str, error: Exception, fix: str) -> ClusterError:
    """The error of credentials that can't be used."""
    reason = " ".join(str(error).split()).rstrip(".")
    return ClusterError(f"{where} can't be used: {reason}. {fix}")


def _reason(answer: urllib3.BaseHTTPResponse) -> str:
    """The reason and message of a Status object, if the response has one."""
    try:
        status = orjson.loads(answer.data)
        return f"{status.get('reason', '')}: {status.get('message', '')}"
    except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
        return answer.reason or ""
    finally:
        answer.release_conn()


def _describe(error: Exception, address: str = "") -> str:
    """Describe a network error in one line: urllib3 nests them."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, Exception) else error
    where = f"API server {address}" if address else "API server"
    return f"{where} unreachable: {_cause(cause)}"


def _cause(error: BaseException) -> str:
    """What the operating system or TLS said, else the error's kind."""
    within = [error, error.__cause__, error.__context__, *error.args]
    for cause in within:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate isn't trusted: {cause.verify_message}"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return "no answer in time" if isinstance(error, _SILENT) else type(error).__name__
