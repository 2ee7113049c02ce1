"""Push an image of an OCI layout to a registry, by its HTTP API.

Owns that conversation. It logs in nowhere: for a registry that asks who we are, load the archive with a client that
knows. Source: OCI distribution specification 1.1.
"""

from __future__ import annotations

import contextlib
import http.client
import re
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from tools.oci.errors import ImageError
from tools.oci.layout import MANIFEST_TYPE, Image

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

TIMEOUT_SECONDS = 300.0


def push(image: Image, target: str) -> str:
    """Push to `http(s)://HOST/NAME:TAG`; returns the reference with the manifest's digest. Raises ImageError."""
    place = urlsplit(target)
    name = re.fullmatch(r"/([a-z0-9._/-]+):([A-Za-z0-9_][A-Za-z0-9._-]{0,127})", place.path)
    if place.scheme not in ("http", "https") or not place.hostname or name is None:
        raise ImageError(f"found target {target!r}, expected http://HOST:PORT/NAME:TAG")
    repository, tag = name[1], name[2]
    manifest = image.manifest
    try:
        for blob in (*manifest["layers"], manifest["config"]):
            _push_blob(place, repository, image, blob["digest"])
        content = image.blob(image.digest).read_bytes()
        path = f"/v2/{repository}/manifests/{tag}"
        _ask(place, "PUT", path, content, {"Content-Type": MANIFEST_TYPE}, expect=(201,))
    except OSError as error:
        raise ImageError(f"{place.scheme}://{place.netloc}: {error}. Is a registry there?") from error
    return f"{place.netloc}/{repository}@{image.digest}"


def _push_blob(place: SplitResult, repository: str, image: Image, digest: str) -> None:
    status, _ = _ask(place, "HEAD", f"/v2/{repository}/blobs/{digest}", expect=(200, 404))
    if status == 200:
        return
    _, location = _ask(place, "POST", f"/v2/{repository}/blobs/uploads/", b"", expect=(202,))
    upload = urlsplit(urljoin(place.geturl(), location))
    path = f"{upload.path}?{upload.query}&digest={digest}" if upload.query else f"{upload.path}?digest={digest}"
    size = image.blob(digest).stat().st_size
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    with image.blob(digest).open("rb") as content:
        _ask(place, "PUT", path, content, headers, expect=(201,))


def _ask(
    place: SplitResult,
    method: str,
    path: str,
    body: bytes | BinaryIO | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    expect: tuple[int, ...],
) -> tuple[int, str]:
    """One request: the answer's status and Location."""
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    with contextlib.closing(kind(place.netloc, timeout=TIMEOUT_SECONDS)) as connection:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        said = answer.read(500).decode(errors="replace")
        if answer.status not in expect:
            raise ImageError(f"{method} {place.scheme}://{place.netloc}{path}: status {answer.status}: {said.strip()}")
        return answer.status, answer.headers.get("Location", "")
