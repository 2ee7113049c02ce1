"""Talk to the API server in plain JSON: read, write, and stream watch events.

`account.py` and `user_account.py` make clients.
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
# A server that refuses a request (429, 503) may say after which time to try again. No thread waits
# longer than this: urllib3 would sleep for hours if the server said so. To renew a Lease, there are
# ten seconds for two tries.
MOST_REFUSED_SECONDS: Final = 2.0
# The user agent in audit logs and managed fields.
USER_AGENT: Final = "roost"
NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
# Connections that are kept open. Those of watches don't count.
POOL_CONNECTIONS: Final = 10
# Objects in one page of a list. Of pods, that is a few MB.
PAGE_OBJECTS: Final = 500
# A difference of clocks up to this means nothing: the header Date has whole seconds, and the answer
# was under way for a moment.
_DATE_SECONDS: Final = 2.0
_JSON: Final = "application/json"
_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
# The errors of a server that doesn't answer in time.
_SILENT: Final = (urllib3.exceptions.TimeoutError, TimeoutError)


class _Once(urllib3.Retry):
    """Repeat a GET, PUT or DELETE once: at once if it had no answer, or after Retry-After.

    Longer waits are up to callers: `runtime/apply.py` of the controllers waits before it writes
    again, and `event_stream.py` before it watches again.
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

    `status` is the HTTP status; 0: a fault within a stream that names no status.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Sends requests to an API server, as one user. Threads may share it."""

    def __init__(
        self,
        host: str,
        pool: urllib3.PoolManager,
        authorization: Callable[[], str] = lambda: "",
        on_request: Callable[[str], None] = lambda _verb: None,
    ) -> None:
        """host: URL of the API server. authorization: returns the header Authorization; "": none.

        on_request: called with the HTTP method before each request, for metrics.
        """
        self.host = host
        self.pool = pool
        self._authorization = authorization
        self._on_request = on_request
        # Of the kubeconfig's context.
        self.namespace = "default"
        # The header Date of the last answer, and this machine's clock then, in Unix time. One
        # tuple, so that threads that share the client replace both at once.
        self._dated: tuple[str, float] = ("", 0.0)

    def clock_difference(self) -> float:
        """By how many seconds the API server's clock was ahead of this machine's, at its last
        answer.

        0.0 if the clocks agree within _DATE_SECONDS, or if no answer had the header Date.
        """
        text, own_clock = self._dated
        try:
            difference = parsedate_to_datetime(text).timestamp() - own_clock
        except ValueError:
            return 0.0
        return difference if abs(difference) > _DATE_SECONDS else 0.0

    def get(
        self, path: str, query: Query | None = None, *, read_seconds: float = READ_SECONDS
    ) -> JSONObject:
        """Read an object or a list. read_seconds: how long the server may be silent.

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
        """Replace an object.

        If `body` has a metadata.resourceVersion, the object must still have it. Raises ApiError
        (409: it has changed), ClusterError.
        """
        return self._call("PUT", path, None, body, read_seconds=read_seconds)

    def change(self, path: str, operations: list[JSONObject], manager: str) -> JSONObject:
        """Change an object by a JSON Patch (RFC 6902).

        Raises ApiError (422: a `test` in the patch failed), ClusterError.
        """
        return self._call("PATCH", path, {"fieldManager": manager}, operations, _JSON_PATCH)

    def merge(self, path: str, body: JSONObject, manager: str) -> JSONObject:
        """Change an object by a JSON Merge Patch (RFC 7396), where null removes a key.

        If `body` has a metadata.resourceVersion, the object must still have it. Raises ApiError
        (409: it has changed), ClusterError.
        """
        return self._call("PATCH", path, {"fieldManager": manager}, body, _MERGE_PATCH)

    def try_apply(self, path: str, body: JSONObject, manager: str) -> JSONObject:
        """What an object would be after a server-side apply, by force. Nothing is written.

        Raises ApiError, ClusterError.
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
        """Yield the lines of a response as they arrive, until the server ends it.

        silence_seconds: a connection without a byte for longer counts as dead. Raises ApiError,
        ClusterError.
        """
        answer = self._request("GET", path, query, read_seconds=silence_seconds)
        try:
            yield from answer
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(_describe(error)) from None
        finally:
            # The connection doesn't return to the pool: the next request would read what is left of
            # this stream.
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
        # Python writes True, and the API server reads true.
        parameters = urlencode(
            {
                key: str(value).lower() if isinstance(value, bool) else str(value)
                for key, value in query.items()
            }
        )
        url = f"{self.host}{path}"
        if parameters:
            url += f"?{parameters}"
        headers = {"Accept": _JSON, "User-Agent": USER_AGENT}
        if body is not None:
            headers["Content-Type"] = content_type
        self._on_request("WATCH" if query.get("watch") else method)
        try:
            authorization = self._authorization()
            if authorization:
                headers["Authorization"] = authorization
            answer = self.pool.request(
                method,
                url,
                body=None if body is None else orjson.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(_describe(error, _address(self.host))) from None
        self._dated = (answer.headers.get("Date") or "", time.time())
        # A redirect isn't followed, so that credentials go nowhere else.
        if answer.status >= 300:
            raise ApiError(answer.status, f"{method} {path}: {answer.status} {_reason(answer)}")
        return answer


def list_all(client: Client, path: str, query: Query | None = None) -> Iterator[JSONObject]:
    """Yield the objects of a list, page by page: thousands in one answer could take too long.

    To read a list again and again, use a watch. Raises ApiError (410: reading took so long that the
    next page is gone), ClusterError.
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
    """The error for credentials that can't be used. where: the file, or what else has them."""
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


def _address(host: str) -> str:
    """Host and port of a URL, without a password that it may have."""
    _, _, without_scheme = host.partition("://")
    authority, _, _ = without_scheme.partition("/")
    _, _, address = authority.rpartition("@")
    return address


def _describe(error: Exception, address: str = "") -> str:
    """Describe a network error in one line. urllib3 wraps the error that says what happened."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, Exception) else error
    where = f"API server {address}" if address else "API server"
    return f"{where} unreachable: {_cause(cause)}"


def _cause(error: BaseException) -> str:
    """An error's reason, in words of the operating system or of TLS; else the error's class."""
    within = [error, error.__cause__, error.__context__, *error.args]
    for cause in within:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate isn't trusted: {cause.verify_message}"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return "no answer in time" if isinstance(error, _SILENT) else type(error).__name__
