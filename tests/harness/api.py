"""Speak JSON with the API server, on one kept connection a thread.

Owns raw requests. The official client turns each object into Python classes, which takes longer
than the request itself: too slow for thousands of pods, and its classes drop fields that they don't
know.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

from roost_core.objects.fields import JSONObject

Query = str | int | bool
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
REQUEST_TIMEOUT_SECONDS = 60.0


class ApiError(RuntimeError):
    def __init__(self, status: int, method: str, path: str, body: bytes) -> None:
        self.status = status
        try:
            self.details: JSONObject = json.loads(body)
        except ValueError:
            self.details = {"message": body.decode(errors="replace")}
        self.reason = str(self.details.get("reason", ""))
        super().__init__(
            f"{method} {path}: {status} {self.reason}: {self.details.get('message', '')}"
        )


class Api:
    """Requests as one user: `api.get("/api/v1/pods")`, `api.create(pod)`.

    Safe to share between threads.
    """

    def __init__(self, server: str, token: str, ca_path: str) -> None:
        self.server = server
        self._address = urlsplit(server)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": JSON}
        self._tls = ssl.create_default_context(cafile=ca_path)
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []
        self._lock = threading.Lock()
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    # Requests

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, Query] | None = None,
        content_type: str = JSON,
    ) -> JSONObject:
        """One request and its answer. Raises ApiError on any status from 400 up."""
        target = _with_query(path, query or {})
        payload = None if body is None else json.dumps(body).encode()
        headers = (
            self._headers if payload is None else {**self._headers, "Content-Type": content_type}
        )
        for attempt in (1, 2):
            connection = self._connection()
            is_fresh = connection.sock is None
            try:
                connection.request(method, target, payload, headers)
                response = connection.getresponse()
                answer = response.read()
                break
            except (
                http.client.RemoteDisconnected,
                BrokenPipeError,
                ConnectionResetError,
                ssl.SSLEOFError,
            ):
                # An idle connection that the server closed: once more on a new one. A new one that
                # breaks is an error.
                connection.close()
                if is_fresh or attempt == 2:
                    raise
            except BaseException:
                connection.close()  # half an answer must not be read by the next request
                raise
        if response.status >= 400:
            raise ApiError(response.status, method, target, answer)
        return (
            cast("JSONObject", json.loads(answer))
            if answer.startswith(b"{")
            else {"text": answer.decode()}
        )

    def get(self, path: str, **query: Query) -> JSONObject:
        return self.request("GET", path, query=query)

    def find(self, path: str) -> JSONObject | None:
        with absent_is_fine():
            return self.get(path)
        return None

    def list(self, path: str, **query: Query) -> list[JSONObject]:
        """The items of a list; they carry no kind of their own, as the API server sends them."""
        return cast("list[JSONObject]", self.get(path, **query)["items"])

    def create(
        self, manifest: Mapping[str, Any], namespace: str | None = None, **query: Query
    ) -> JSONObject:
        """Create an object from its manifest; `namespace` is for one that names none."""
        return self.request("POST", self.path_of(manifest, namespace, named=False), manifest, query)

    def apply(
        self, manifest: Mapping[str, Any], namespace: str | None = None, **query: Query
    ) -> JSONObject:
        """Server-side apply, taking over fields of others."""
        path = self.path_of(manifest, namespace)
        return self.request(
            "PATCH", path, manifest, {**query, "fieldManager": "tests", "force": True}, APPLY
        )

    def patch(
        self, path: str, change: object, *, content_type: str = MERGE, **query: Query
    ) -> JSONObject:
        return self.request("PATCH", path, change, query, content_type)

    def delete(
        self, path: str, body: Mapping[str, Any] | None = None, **query: Query
    ) -> JSONObject | None:
        """None: it was gone already."""
        with absent_is_fine():
            return self.request("DELETE", path, body, query)
        return None

    def watch(self, path: str, *, timeout_seconds: int = 300, **query: Query) -> "Watch":
        """Events as (type, object), until the server ends the watch or somebody closes it.

        Give `resourceVersion` of a list. Raises ApiError on an ERROR event, such as 410 when that
        version is too old.
        """
        target = _with_query(path, {**query, "watch": True, "timeoutSeconds": timeout_seconds})
        connection = self._new_connection(timeout_seconds + 30.0)
        return Watch(connection, target, self._headers, lambda: self._forget(connection))

    # Addresses

    def path_of(
        self, manifest: Mapping[str, Any], namespace: str | None = None, *, named: bool = True
    ) -> str:
        """The path of a manifest's object, or with `named=False` of its collection.

        Asks the server for a kind's plural, once.
        """
        group_version, kind = manifest["apiVersion"], manifest["kind"]
        prefix = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        kinds = self._plurals.get(group_version, {})
        # asked again for an unknown one: a CustomResourceDefinition may have come since
        if kind not in kinds:
            resources = self.get(prefix)["resources"]
            kinds = {
                r["kind"]: (r["name"], r["namespaced"]) for r in resources if "/" not in r["name"]
            }
            self._plurals[group_version] = kinds
        if kind not in kinds:
            served = ", ".join(sorted(kinds))
            raise ValueError(
                f"found kind {kind!r}, expected one that {group_version} serves: {served}"
            )
        plural, namespaced = kinds[kind]
        if namespaced:
            prefix += (
                f"/namespaces/{manifest['metadata'].get('namespace') or namespace or 'default'}"
            )
        return (
            f"{prefix}/{plural}/{quote(manifest['metadata']['name'])}"
            if named
            else f"{prefix}/{plural}"
        )

    # Connections

    def close(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        if (connection := getattr(self._local, "connection", None)) is None:
            connection = self._local.connection = self._new_connection(REQUEST_TIMEOUT_SECONDS)
        return cast("http.client.HTTPSConnection", connection)

    def _new_connection(self, timeout_seconds: float) -> http.client.HTTPSConnection:
        host, port = self._address.hostname or "", self._address.port
        connection = http.client.HTTPSConnection(
            host, port, timeout=timeout_seconds, context=self._tls
        )
        with self._lock:
            self._connections.append(connection)
        return connection

    def _forget(self, connection: http.client.HTTPSConnection) -> None:
        connection.close()
        with self._lock, contextlib.suppress(ValueError):
            self._connections.remove(connection)


class Watch:
    """An open watch: iterate it, and close it from any thread."""

    def __init__(
        self,
        connection: http.client.HTTPSConnection,
        target: str,
        headers: Mapping[str, str],
        forget: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._target = target
        self._forget = forget
        self._is_closed = False
        try:
            connection.request("GET", target, headers=dict(headers))
            self._response = connection.getresponse()
            if self._response.status >= 400:
                raise ApiError(self._response.status, "WATCH", target, self._response.read())  # noqa: TRY301
        except BaseException:
            forget()
            raise

    def __iter__(self) -> Iterator[tuple[str, JSONObject]]:
        try:
            while not self._is_closed and (line := self._read_line()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(
                        status.get("code", 500), "WATCH", self._target, json.dumps(status).encode()
                    )
                yield event["type"], event["object"]
        finally:
            self._response.close()
            self._forget()

    def close(self) -> None:
        self._is_closed = True
        if (sock := self._connection.sock) is not None:
            with contextlib.suppress(OSError):
                # Not the TLS socket's own method, which isn't made for a second thread.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def _read_line(self) -> bytes:
        try:
            return self._response.readline()
        except (OSError, http.client.HTTPException):
            if self._is_closed:
                return b""
            raise


@contextlib.contextmanager
def absent_is_fine() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        if error.status != 404:
            raise


def _with_query(path: str, query: Mapping[str, Query]) -> str:
    plain = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in query.items()
    }
    return f"{path}?{urlencode(plain)}" if plain else path
