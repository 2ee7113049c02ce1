"""Push OCI archives to a registry, list what it has, and say in an operator's words why not.

Owns the requests; needs nothing but Python.
Source: OCI distribution specification 1.1, and the token flow that registries of Docker's kind
announce in WWW-Authenticate.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import IO, TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tools.release.logins import LoginError, find_login
from tools.release.oci import INDEX_TYPES, Archive, Descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tools.release.logins import Login

# A registry that takes a large blob may be silent for long while it stores it.
SECONDS: Final = 120.0
MOST_PAGES: Final = 200
_MOST_HOPS: Final = 4
_LOOPBACK: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?")
_CHALLENGE: Final = re.compile(r'(\w+)="([^"]*)"')
_CREDENTIAL_STATUSES: Final = (401, 403)


class RegistryError(Exception):
    """A registry did not as it was asked; the message names it, what it said, and what to do."""


class Answer(NamedTuple):
    """Status, headers with lower-case names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would lose a PUT's body, or carry a login to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


Send: TypeAlias = "Callable[[str, str, Mapping[str, str], bytes | IO[bytes] | None], Answer]"
_OPENER: Final = urllib.request.build_opener(_NoRedirect)


def send(
    method: str, url: str, headers: Mapping[str, str], data: bytes | IO[bytes] | None
) -> Answer:
    """One request over HTTP. Raises OSError where nothing answers."""
    request = urllib.request.Request(url, data=data, headers=dict(headers), method=method)
    try:
        with _OPENER.open(request, timeout=SECONDS) as response:
            return _answer(response.status, response.headers.items(), response.read())
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.headers.items(), error.read())
    except http.client.HTTPException as error:
        raise OSError(f"its answer isn't HTTP: {error!r}") from error


def follow(ask: Callable[[str], Answer], address: str) -> Answer:
    """What is read at an address, or where that sends on to."""
    for _ in range(_MOST_HOPS):
        answer = ask(address)
        address = answer.headers.get("location", "")
        if not 300 <= answer.status < 400 or not address.startswith(("https://", "/")):
            break
    return answer


def _answer(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
    named = {key.lower(): value for key, value in headers}
    return Answer(status, named, body)


class Registry:
    """One registry, with the login that this machine has for it."""

    def __init__(
        self,
        host: str,
        *,
        plain_http: bool = False,
        environment: Mapping[str, str] | None = None,
        actions: str = "pull,push",
        send: Send = send,
    ) -> None:
        self.host = host
        self.is_plain = plain_http or _LOOPBACK.fullmatch(host) is not None
        self._base = f"{'http' if self.is_plain else 'https'}://{host}"
        self._environment = os.environ if environment is None else environment
        self._actions = actions
        self._send = send
        # Repository -> the header that it took last.
        self._authorization: dict[str, str] = {}

    def check(self, repository: str) -> None:
        """Whether a push into the repository may begin. Raises RegistryError.

        It starts an upload and takes it back: nothing is left there.
        """
        answer = self._ask("GET", "/v2/", repository)
        if answer.status in _CREDENTIAL_STATUSES:
            raise RegistryError(self._refusal(answer, repository))
        if answer.status != 200 or not _is_json(answer.body):
            raise RegistryError(
                f"{self.host}: it answers, but not as a registry (status {answer.status} for"
                " /v2/). Check host and port."
            )
        location = self._start_upload(repository)
        self._ask("DELETE", location, repository)

    def push(self, archive: Archive, repository: str, tag: str) -> str:
        """Push an archive as repository:tag: the digest that names it from now on.

        Raises RegistryError, and ArchiveError if the archive was changed.
        """
        for manifest in archive.manifests():
            for part in archive.parts(manifest):
                self._push_blob(archive, part, repository)
            if archive.root.media_type in INDEX_TYPES:
                self._put_manifest(archive, manifest, repository, manifest.digest)
        self._put_manifest(archive, archive.root, repository, tag)
        return archive.root.digest

    def tags(self, repository: str) -> list[str]:
        """All tags of a repository. Raises RegistryError."""
        path = f"/v2/{repository}/tags/list"
        query = "?n=1000"
        found: list[str] = []
        for _ in range(MOST_PAGES):
            answer = follow(lambda address: self._ask("GET", address, repository), path + query)
            if answer.status != 200:
                raise RegistryError(self._refusal(answer, repository))
            try:
                found += json.loads(answer.body)["tags"] or []
            except (ValueError, KeyError, TypeError) as error:
                raise RegistryError(
                    f"{self.host}/{repository}: found something else than a list of tags."
                ) from error
            following = re.search(r'<([^>]+)>;\s*rel="?next', answer.headers.get("link", ""))
            if following is None:
                break
            query = following[1].partition("/tags/list")[2]
        return found

    def _push_blob(self, archive: Archive, part: Descriptor, repository: str) -> None:
        path = f"/v2/{repository}/blobs/{part.digest}"
        # Some registries answer by where the blob is stored.
        if self._ask("HEAD", path, repository).status in (200, 302, 307):
            return
        location = self._start_upload(repository)
        joint = "&" if "?" in location else "?"
        with archive.open(part) as contents:
            answer = self._ask(
                "PUT",
                f"{location}{joint}{urllib.parse.urlencode({'digest': part.digest})}",
                repository,
                contents,
                {"Content-Type": "application/octet-stream", "Content-Length": str(part.size)},
            )
        if answer.status != 201:
            raise RegistryError(self._refusal(answer, repository))

    def _start_upload(self, repository: str) -> str:
        answer = self._ask("POST", f"/v2/{repository}/blobs/uploads/", repository, b"")
        location = answer.headers.get("location")
        if answer.status != 202 or not location:
            raise RegistryError(self._refusal(answer, repository))
        return location

    def _put_manifest(
        self, archive: Archive, manifest: Descriptor, repository: str, reference: str
    ) -> None:
        body = archive.read(manifest)
        path = f"/v2/{repository}/manifests/{reference}"
        headers = {"Content-Type": manifest.media_type}
        answer = self._ask("PUT", path, repository, body, headers)
        if answer.status != 201:
            raise RegistryError(self._refusal(answer, repository))
        stored = answer.headers.get("docker-content-digest", manifest.digest)
        if stored != manifest.digest:
            raise RegistryError(
                f"{self.host}/{repository}: it stored {stored}, expected {manifest.digest}. It"
                " changes what it is given: use another registry."
            )

    def _ask(
        self,
        method: str,
        address: str,
        repository: str,
        data: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        url, is_here = self._place(address)
        for is_first in (True, False):
            sent = dict(headers or {})
            if is_here and repository in self._authorization:
                sent["Authorization"] = self._authorization[repository]
            try:
                answer = self._send(method, url, sent, data)
            except (OSError, ValueError) as error:
                raise RegistryError(self._silence(error)) from error
            if answer.status != 401 or not is_here or not is_first:
                break
            authorization = self._authorize(answer, repository)
            if authorization is None:
                break
            self._authorization[repository] = authorization
            if data is not None and not isinstance(data, bytes):
                data.seek(0)
        return answer

    def _place(self, address: str) -> tuple[str, bool]:
        """The URL of what the registry named, and whether the registry itself gets it.

        A location may be whole, and may lie with another host, which gets no login. A registry
        behind a proxy that ends TLS may name itself with http. It is asked as before, or its login
        would go out in clear text.
        """
        base = urllib.parse.urlsplit(self._base)
        try:
            where = urllib.parse.urlsplit(urllib.parse.urljoin(self._base, address))
        except ValueError as error:
            raise RegistryError(
                f"{self.host}: it sends on to {address!r}, which is no address: {error}."
            ) from error
        if where.scheme in ("http", "https") and where.netloc.lower() == base.netloc.lower():
            where = where._replace(scheme=base.scheme)
        is_here = (where.scheme, where.netloc.lower()) == (base.scheme, base.netloc.lower())
        return where.geturl(), is_here

    def _login(self) -> Login | None:
        try:
            return find_login(self.host, self._environment)
        except LoginError as error:
            raise RegistryError(str(error)) from error

    def _authorize(self, refusal: Answer, repository: str) -> str | None:
        """The header for the next try; None if there is nothing to try."""
        challenge = refusal.headers.get("www-authenticate", "")
        login = self._login()
        if login is not None and self.is_plain and not _LOOPBACK.fullmatch(self.host):
            raise RegistryError(
                f"{self.host}: it asks for a login, which --plain-http would send in clear text."
                " Give the registry TLS, or let it take pushes without a login."
            )
        kind = challenge.partition(" ")[0].lower()
        if kind == "basic" and login is not None:
            header = _basic(login)
            return None if header == self._authorization.get(repository) else header
        if kind != "bearer":
            return None
        parts = dict(_CHALLENGE.findall(challenge))
        realm = parts.get("realm", "")
        where = urllib.parse.urlsplit(realm)
        # What answered may name any address; a login goes out over TLS or stays on this machine.
        if where.scheme != "https" and not (
            where.scheme == "http" and _LOOPBACK.fullmatch(where.netloc)
        ):
            raise RegistryError(f"{self.host}: it sends logins to {realm!r}, which isn't https.")
        asked = {
            "service": parts.get("service", ""),
            "scope": f"repository:{repository}:{self._actions}",
        }
        try:
            if login is not None and login.user == "<token>":
                asked |= {"grant_type": "refresh_token", "refresh_token": login.password}
                asked["client_id"] = "roost-publish"
                answer = self._send(
                    "POST",
                    realm,
                    {"Content-Type": "application/x-www-form-urlencoded"},
                    urllib.parse.urlencode(asked).encode(),
                )
            else:
                headers = {"Authorization": _basic(login)} if login is not None else {}
                answer = self._send(
                    "GET", f"{realm}?{urllib.parse.urlencode(asked)}", headers, None
                )
        except (OSError, ValueError) as error:
            raise RegistryError(self._silence(error)) from error
        if answer.status != 200:
            return None
        try:
            body = json.loads(answer.body)
            return f"Bearer {body.get('token') or body['access_token']}"
        except (ValueError, KeyError, AttributeError) as error:
            raise RegistryError(f"{self.host}: {realm} gave no token.") from error

    def _refusal(self, answer: Answer, repository: str) -> str:
        where = f"{self.host}/{repository}"
        reason = _reason(answer)
        if answer.status in _CREDENTIAL_STATUSES:
            login = self._login()
            if login is None:
                return (
                    f"{where}: the registry asks who you are, and nobody logged in here. Run:"
                    f" docker login {self.host}    (or podman login, helm registry login)"
                )
            return (
                f"{where}: the registry refuses {login.user} ({login.source}): {reason}. Log in as"
                " somebody who may push there."
            )
        if answer.status == 404:
            return (
                f"{where}: the registry has no such repository: {reason}. Check the folder. Some"
                " registries want each repository to be created first."
            )
        if answer.status == 413:
            return f"{where}: what stands before the registry refuses large uploads: {reason}."
        if 300 <= answer.status < 400:
            return (
                f"{where}: the registry sends on to {answer.headers.get('location', '?')}. Name"
                " that address."
            )
        return f"{where}: the registry refuses: {reason}."

    def _silence(self, error: Exception) -> str:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return (
                f"{self.host}: its certificate is signed by nobody whom this machine knows:"
                f" {reason.verify_message}. Name the authority's file in SSL_CERT_FILE."
            )
        if isinstance(reason, ssl.SSLError):
            return (
                f"{self.host}: no TLS there: {reason.reason or reason}. Check the port, or pass"
                " --plain-http."
            )
        return (
            f"{self.host}: no registry answers: {reason}. Check host and port, and whether this"
            " machine reaches it."
        )


def _basic(login: Login) -> str:
    return "Basic " + base64.b64encode(f"{login.user}:{login.password}".encode()).decode()


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body or b"{}")
    except ValueError:
        return False
    return True


def _reason(answer: Answer) -> str:
    """What the registry said, in a line."""
    try:
        errors = json.loads(answer.body)["errors"]
        reason = "; ".join(str(error.get("message") or error["code"]) for error in errors)
    except (ValueError, KeyError, TypeError, AttributeError):
        reason = ""
    return f"{reason} (status {answer.status})" if reason else f"status {answer.status}"
