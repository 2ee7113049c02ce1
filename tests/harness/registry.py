"""A real image registry on loopback whose speed, health and demands a test sets.

Owns a CNCF Distribution registry and the proxy before it, through which every pull goes. Pushes go past the proxy: they
are as fast as the machine, whatever the proxy was told.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import http.server
import json
import socket
import socketserver
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from tests.harness.binaries import ensure_binary
from tests.harness.images import MANIFEST_TYPE, Image, digest_of, make_image
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import Process, ProgramExitedError, RunFolder
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

READY_SECONDS = 30.0
LARGEST_CHUNK = 64 * 1024
# A slow pull moves in steps of about this long, so that a change of speed is felt at once.
STEP_SECONDS = 0.05
FORWARDED = ("Accept", "Range", "If-None-Match")
RETURNED = (
    "Content-Type",
    "Content-Range",
    "Accept-Ranges",
    "Docker-Content-Digest",
    "Docker-Distribution-Api-Version",
    "Etag",
)


@dataclass(frozen=True, slots=True)
class PushedImage:
    """What a push made: `reference` as a pod names it, `digest` of its manifest, bytes that a pull moves."""

    reference: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a pull, once it's answered."""

    moment: float  # time.time() when it came
    ended: float  # just before the last of its answer was sent
    path: str
    status: int
    bytes_served: int


class RealRegistry:
    """`with RealRegistry() as registry: registry.push("me/image:1", size_bytes=10**6)`.

    bytes_per_second: over all pulls together, changeable at any time; None: unlimited, 0: nothing moves.
    """

    def __init__(self) -> None:
        self._throttle = _Throttle()
        self._credentials: str | None = None
        self._server: _Server | None = None
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.blob_bytes: Counter[str] = Counter()  # repository -> bytes of layers and configurations served

    # Life

    def start(self) -> Self:
        program = ensure_binary("registry")
        self._run = RunFolder()
        self._stack = contextlib.ExitStack()
        try:
            self._port = self._stack.enter_context(ReservedPort())
            self._start_backend(program)
            self.up()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop it and forget all images."""
        self.down()
        self._run.close()
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What pulls meet

    @property
    def host(self) -> str:
        """127.0.0.1:PORT, as in references."""
        return f"{LOOPBACK}:{self._port.number}"

    @property
    def upload_host(self) -> str:
        """127.0.0.1:PORT of the registry itself, past the proxy: for programs that push."""
        return f"{LOOPBACK}:{self._backend_port}"

    @property
    def bytes_per_second(self) -> float | None:
        return self._throttle.bytes_per_second

    @bytes_per_second.setter
    def bytes_per_second(self, value: float | None) -> None:
        self._throttle.set(value)

    def down(self) -> None:
        """Refuse connections and break those that are open; pushes still work."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.break_off()

    def up(self) -> None:
        """Answer again."""
        with self._lock:
            if self._server is None:
                self._server = _Server(self._port.number, self._serve)

    def require_credentials(self, user: str, password: str) -> None:
        """Answer 401 to whoever doesn't say so (HTTP basic authentication)."""
        self._credentials = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def require_no_credentials(self) -> None:
        self._credentials = None

    def pull_secret(self, user: str, password: str) -> dict[str, Any]:
        """The data of a Secret of type kubernetes.io/dockerconfigjson for this registry."""
        auth = base64.b64encode(f"{user}:{password}".encode()).decode()
        config = {"auths": {self.host: {"username": user, "password": password, "auth": auth}}}
        return {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()}

    # What it holds

    def push(
        self,
        name: str,
        *,
        files: Mapping[str, bytes | Path] | None = None,
        size_bytes: int = 0,
        layers: int = 1,
        entrypoint: Sequence[str] = (),
    ) -> PushedImage:
        """Make an image (see `make_image`) and push it as NAME:TAG; the tag moves when it's there already.

        Without `entrypoint` there is nothing in it to run: such an image can only be pulled or mounted.
        """
        return self.push_image(
            name, make_image(files=files, size_bytes=size_bytes, layers=layers, entrypoint=entrypoint)
        )

    def push_program(self, name: str, *arguments: str, size_bytes: int = 0, layers: int = 1) -> PushedImage:
        """Push an image that runs `in-pod ARGUMENTS` (waits for SIGTERM without any; see tests/controlplane/in-pod)."""
        return self.push(
            name,
            files={"/in-pod": ensure_binary("in-pod")},
            size_bytes=size_bytes,
            layers=layers,
            entrypoint=["/in-pod", *arguments],
        )

    def push_image(self, name: str, image: Image) -> PushedImage:
        repository, tag = self._split(name)
        for blob in (image.config, *image.layers):
            self._push_blob(repository, blob)
        self._ask("PUT", f"/v2/{repository}/manifests/{tag}", image.manifest, {"Content-Type": MANIFEST_TYPE}, 201)
        return PushedImage(f"{self.host}/{repository}:{tag}", image.digest, image.size_bytes)

    def reference(self, name: str) -> str:
        """How a pod names NAME:TAG here, whether or not it has been pushed."""
        return "{}/{}:{}".format(self.host, *self._split(name))

    def _split(self, name: str) -> tuple[str, str]:
        path = name.removeprefix(f"{self.host}/")
        repository, colon, tag = path.rpartition(":")
        if not colon or "/" in tag:
            raise ValueError(f"found image {name!r}, expected NAME:TAG, with or without {self.host}/ before it")
        return repository, tag

    def _push_blob(self, repository: str, blob: bytes) -> None:
        begun = self._ask("POST", f"/v2/{repository}/blobs/uploads/", b"", {}, 202)
        location = urlsplit(begun["location"])
        target = f"{location.path}?{location.query}&digest={digest_of(blob)}"
        self._ask("PUT", target, blob, {"Content-Type": "application/octet-stream"}, 201)

    def _ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], expected: int
    ) -> dict[str, str]:
        connection = http.client.HTTPConnection(LOOPBACK, self._backend_port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            said = response.read()
            if response.status != expected:
                raise RuntimeError(f"registry: {method} {path}: {response.status} {said.decode(errors='replace')}")
            return {key.lower(): value for key, value in response.getheaders()}

    # The registry itself

    def _start_backend(self, program: Path) -> None:
        port = self._stack.enter_context(ReservedPort())
        config = {
            "version": 0.1,
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {
                "filesystem": {"rootdirectory": str(self._run.path / "storage")},
                "delete": {"enabled": True},
            },
            "http": {"addr": f"{LOOPBACK}:{port.number}", "secret": "shared with nobody"},
        }
        path = self._run.path / "registry.yml"
        path.write_text(json.dumps(config))  # JSON is YAML
        self._backend_port = port.release()
        self.process: Process = self._run.start("registry", program, ["serve", str(path)])

        def answers() -> bool:
            if not self.process.is_running:
                raise ProgramExitedError(self.process.epitaph("before it answered"))
            with contextlib.suppress(OSError):
                self._ask("GET", "/v2/", None, {}, 200)
                return True
            return False

        wait_until(answers, READY_SECONDS, "the registry to answer", explain=self.process.tail)

    # The proxy

    def _serve(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        """Answer one request of a pull."""
        moment, path = time.time(), handler.path
        if self._credentials is not None and handler.headers.get("Authorization") != self._credentials:
            body = b'{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}'
            handler.send_response(401)
            handler.send_header("WWW-Authenticate", 'Basic realm="test"')
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(body)
            self.requests.append(Request(moment, time.time(), path, 401, 0))
            return
        served = 0
        status = 0
        ended = moment
        connection = http.client.HTTPConnection(LOOPBACK, self._backend_port, timeout=60)
        try:
            asked = {key: value for key in FORWARDED if (value := handler.headers.get(key))}
            connection.request(handler.command, path, headers=asked)
            response = connection.getresponse()
            status = response.status
            handler.send_response(status)
            for key in RETURNED:
                if value := response.getheader(key):
                    handler.send_header(key, value)
            handler.send_header("Content-Length", response.getheader("Content-Length") or "0")
            handler.end_headers()
            if handler.command != "HEAD":
                is_blob = "/blobs/" in path
                while chunk := response.read(self._throttle.chunk_bytes if is_blob else LARGEST_CHUNK):
                    if is_blob:
                        self._throttle.wait_for(len(chunk))
                    ended = time.time()
                    handler.wfile.write(chunk)
                    served += len(chunk)
                    if is_blob:
                        with self._lock:
                            self.blob_bytes[path.removeprefix("/v2/").partition("/blobs/")[0]] += len(chunk)
        finally:
            connection.close()
            self.requests.append(Request(moment, ended, path, status, served))


class _Throttle:
    """One stream of bytes, shared by all that pull."""

    def __init__(self) -> None:
        self.bytes_per_second: float | None = None
        self._changed = threading.Condition()
        self._paid_until = 0.0

    def set(self, bytes_per_second: float | None) -> None:
        with self._changed:
            self.bytes_per_second = bytes_per_second
            self._paid_until = 0.0
            self._changed.notify_all()

    @property
    def chunk_bytes(self) -> int:
        rate = self.bytes_per_second
        return LARGEST_CHUNK if rate is None else max(256, min(LARGEST_CHUNK, int(rate * STEP_SECONDS)))

    def wait_for(self, length_bytes: int) -> None:
        """Return when so many more bytes may go."""
        with self._changed:
            while True:
                rate, now = self.bytes_per_second, time.monotonic()
                if rate is None:
                    return
                if rate > 0 and self._paid_until <= now:
                    self._paid_until = max(self._paid_until, now - STEP_SECONDS) + length_bytes / rate
                    return
                self._changed.wait(None if rate <= 0 else self._paid_until - now)


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """HTTP on a port that we have reserved, with all its connections at hand so that they can be broken."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = True  # beside our reservation

    def __init__(self, port: int, serve: Callable[[http.server.BaseHTTPRequestHandler], None]) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                serve(self)

            def do_HEAD(self) -> None:
                serve(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its base's name)
                pass

        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__((LOOPBACK, port), Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), name="registry-proxy", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A puller that hung up, or one that we hung up on, is nothing to report."""

    def break_off(self) -> None:
        self.shutdown()
        self.server_close()
        with self._open_lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
