"""An image registry on loopback whose speed, health and demands a test sets.

Owns what it holds, in memory, and how that is pulled; and as much of pushing as Helm asks for.
Source: OCI distribution specification 1.1.
"""

import base64
import http.server
import json
import re
import socketserver
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.harness.binaries import ensure_binary
from tests.harness.images import Image, digest_of, make_image
from tests.harness.life import Started
from tests.harness.open_sockets import OpenSockets
from tests.harness.ports import LOOPBACK, ReservedPort
from tools.release.oci import MANIFEST_TYPE

LARGEST_CHUNK = 64 * 1024
# A slow pull moves in steps of about this long, so that a change of speed is felt at once.
STEP_SECONDS = 0.05
_PATH = re.compile(r"/v2/(?P<repository>.+)/(?P<kind>manifests|blobs)/(?P<reference>.+)")


@dataclass(frozen=True, slots=True)
class PushedImage:
    """What a push made: `reference` as a pod names it, `digest` of its manifest, bytes that a pull
    moves.
    """

    reference: str
    digest: str
    size_bytes: int


class RealRegistry(Started):
    """`with RealRegistry() as registry: registry.push("me/image:1", size_bytes=10**6)`."""

    def __init__(self) -> None:
        self._throttle = _Throttle()
        self._credentials: str | None = None
        self._server: _Server | None = None
        self._lock = threading.Lock()
        # Digest -> contents; and (repository, tag or digest) -> media type and manifest.
        self._blobs: dict[str, bytes] = {}
        self._manifests: dict[tuple[str, str], tuple[str, bytes]] = {}

    # Life

    def start(self) -> Self:
        self._port = ReservedPort()
        self.up()
        return self

    def stop(self) -> None:
        self.down()
        self._port.release()

    # What pulls meet

    @property
    def host(self) -> str:
        return f"{LOOPBACK}:{self._port.number}"

    @property
    def bytes_per_second(self) -> float | None:
        """Over all pulls together, changeable at any time; None: unlimited, 0: nothing moves."""
        return self._throttle.bytes_per_second

    @bytes_per_second.setter
    def bytes_per_second(self, value: float | None) -> None:
        self._throttle.set(value)

    def down(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.break_off()

    def up(self) -> None:
        with self._lock:
            if self._server is None:
                self._server = _Server(self._port.number, self)

    def require_credentials(self, user: str, password: str) -> None:
        self._credentials = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def require_no_credentials(self) -> None:
        self._credentials = None

    def pull_secret(self, user: str, password: str) -> dict[str, Any]:
        """The data of a Secret of type kubernetes.io/dockerconfigjson for this registry."""
        auth = base64.b64encode(f"{user}:{password}".encode()).decode()
        config = {"auths": {self.host: {"username": user, "password": password, "auth": auth}}}
        return {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()}

    # What it holds

    def push(self, name: str, **how: Any) -> PushedImage:
        """Make an image (see `make_image`) and push it as NAME:TAG; the tag moves when it's there
        already.

        Without `entrypoint` there is nothing in it to run: such an image can only be pulled or
        mounted.
        """
        return self.push_image(name, make_image(**how))

    def push_program(self, name: str, *arguments: str, **how: Any) -> PushedImage:
        """Push an image that runs `in-pod ARGUMENTS` (waits for SIGTERM without any; see
        tests/controlplane/in-pod).
        """
        files, entrypoint = {"/in-pod": ensure_binary("in-pod")}, ["/in-pod", *arguments]
        return self.push(name, files=files, entrypoint=entrypoint, **how)

    def push_image(self, name: str, image: Image) -> PushedImage:
        repository, tag = self._split(name)
        for blob in (image.config, *image.layers):
            self._blobs[digest_of(blob)] = blob
        self._keep_manifest(repository, tag, MANIFEST_TYPE, image.manifest)
        return PushedImage(f"{self.host}/{repository}:{tag}", image.digest, image.size_bytes)

    def reference(self, name: str) -> str:
        """How a pod names NAME:TAG here, whether or not it has been pushed."""
        return "{}/{}:{}".format(self.host, *self._split(name))

    def _split(self, name: str) -> tuple[str, str]:
        path = name.removeprefix(f"{self.host}/")
        repository, colon, tag = path.rpartition(":")
        if not colon or "/" in tag:
            raise ValueError(
                f"found image {name!r}, expected NAME:TAG, with or without {self.host}/ before it"
            )
        return repository, tag

    def _keep_manifest(
        self, repository: str, reference: str, media_type: str, manifest: bytes
    ) -> None:
        for key in (reference, digest_of(manifest)):
            self._manifests[repository, key] = (media_type, manifest)

    # HTTP

    def serve(self, request: http.server.BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length)
        if (
            self._credentials is not None
            and request.headers.get("Authorization") != self._credentials
        ):
            wanted = {"WWW-Authenticate": 'Basic realm="test"'}
            _answer(request, HTTPStatus.UNAUTHORIZED, _fault("UNAUTHORIZED"), wanted)
        elif request.command in ("GET", "HEAD"):
            self._pull(request)
        else:
            self._push(request, body)

    def _pull(self, request: http.server.BaseHTTPRequestHandler) -> None:
        # Nodes add a query that names the registry which they were asked for.
        path = urlsplit(request.path).path
        if (found := _PATH.fullmatch(path)) is None:
            status = HTTPStatus.OK if path == "/v2/" else HTTPStatus.NOT_FOUND
            return _answer(request, status, b"{}")
        media_type, contents = "application/octet-stream", self._blobs.get(found["reference"])
        if found["kind"] == "manifests":
            media_type, contents = self._manifests.get(
                (found["repository"], found["reference"]), ("", None)
            )
        if contents is None:
            return _answer(
                request, HTTPStatus.NOT_FOUND, _fault(f"{found['kind'][:-1].upper()}_UNKNOWN")
            )
        headers = {"Content-Type": media_type, "Docker-Content-Digest": digest_of(contents)}
        return _answer(
            request,
            HTTPStatus.OK,
            contents,
            headers,
            self._throttle if found["kind"] == "blobs" else None,
        )

    def _push(self, request: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        url = urlsplit(request.path)
        found = _PATH.fullmatch(url.path)
        if request.command == "POST":
            return _answer(
                request, HTTPStatus.ACCEPTED, b"", {"Location": f"{url.path.rstrip('/')}/1"}
            )
        if found is not None and found["kind"] == "manifests":
            self._keep_manifest(
                found["repository"], found["reference"], request.headers["Content-Type"], body
            )
        else:
            (digest,) = parse_qs(url.query)["digest"]
            self._blobs[digest] = body
        return _answer(request, HTTPStatus.CREATED, b"", {"Docker-Content-Digest": digest_of(body)})


def _fault(code: str) -> bytes:
    return json.dumps(
        {"errors": [{"code": code, "message": code.lower().replace("_", " ")}]}
    ).encode()


def _answer(
    request: http.server.BaseHTTPRequestHandler,
    status: HTTPStatus,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    throttle: "_Throttle | None" = None,
) -> None:
    request.send_response(status)
    for key, value in {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }.items():
        request.send_header(key, value)
    request.end_headers()
    if request.command == "HEAD":
        return
    sent = 0
    while sent < len(body):
        chunk = body[sent : sent + (LARGEST_CHUNK if throttle is None else throttle.chunk_bytes)]
        if throttle is not None:
            throttle.wait_for(len(chunk))
        request.wfile.write(chunk)
        sent += len(chunk)


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
        return (
            LARGEST_CHUNK
            if rate is None
            else max(256, min(LARGEST_CHUNK, int(rate * STEP_SECONDS)))
        )

    def wait_for(self, length_bytes: int) -> None:
        """Return when so many more bytes may go."""
        with self._changed:
            while True:
                rate, now = self.bytes_per_second, time.monotonic()
                if rate is None:
                    return
                if rate > 0 and self._paid_until <= now:
                    self._paid_until = (
                        max(self._paid_until, now - STEP_SECONDS) + length_bytes / rate
                    )
                    return
                self._changed.wait(None if rate <= 0 else self._paid_until - now)


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """HTTP on a port that we have reserved, with all its connections at hand so that they can be
    broken.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = True  # beside our reservation

    def __init__(self, port: int, registry: RealRegistry) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                registry.serve(self)

            do_GET = do_HEAD = do_POST = do_PUT = serve  # noqa: N815 (its base's names)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its base's name)
                pass

        self._open = OpenSockets()
        super().__init__((LOOPBACK, port), Handler)
        threading.Thread(
            target=self.serve_forever, args=(0.05,), name="registry", daemon=True
        ).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A puller that hung up, or one that we hung up on, is nothing to report."""

    def break_off(self) -> None:
        self.shutdown()
        self.server_close()
        self._open.cut()
