"""Ask registries for tags, by the distribution API, without an account.

Source: the OCI distribution specification, and the token flow that registries of Docker's kind
announce in WWW-Authenticate.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Final, NamedTuple

from roost_core.objects.image_references import image_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SECONDS: Final = 20.0
MOST_PAGES: Final = 200
_DOCKER_HUB: Final = "registry-1.docker.io"
_LOOPBACK: Final = re.compile(r"(?:127\.0\.0\.1|localhost)(?::\d+)?")


class RegistryError(Exception):
    """A registry gave no answer; the message names the image and what was said."""


class Answer(NamedTuple):
    """Status, headers with lower-case names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def fetch(method: str, url: str, headers: Mapping[str, str]) -> Answer:
    """One request over HTTP. Raises OSError where nothing answers."""
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return Answer(
                response.status,
                {k.lower(): v for k, v in response.headers.items()},
                response.read(),
            )
    except urllib.error.HTTPError as error:
        with error:
            return Answer(
                error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()
            )


class Registries:
    """All registries, with the tokens that they gave out."""

    def __init__(self, fetch: Callable[[str, str, Mapping[str, str]], Answer] = fetch) -> None:
        self._fetch = fetch
        self._tokens: dict[tuple[str, str], str] = {}

    def tags(self, image: str) -> list[str]:
        """All tags of an image named without one. Raises RegistryError."""
        path = "tags/list?n=1000"
        found: list[str] = []
        for _ in range(MOST_PAGES):
            answer = self._ask(image, path)
            try:
                found += json.loads(answer.body)["tags"] or []
            except (ValueError, KeyError, TypeError) as error:
                raise RegistryError(
                    f"{image}: found something else than a list of tags."
                ) from error
            following = re.search(r'<([^>]+)>;\s*rel="?next', answer.headers.get("link", ""))
            if following is None:
                break
            path = "tags/list" + following[1].partition("/tags/list")[2]
        return found

    def _ask(self, image: str, path: str) -> Answer:
        host, _, name = image_repository(image).partition("/")
        host = _DOCKER_HUB if host == "docker.io" else host
        scheme = "http" if _LOOPBACK.fullmatch(host) else "https"
        token = self._tokens.get((host, name))
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            answer = self._fetch("GET", f"{scheme}://{host}/v2/{name}/{path}", headers)
            if answer.status == 401 and token is None and (token := self._token(answer)):
                self._tokens[(host, name)] = token
                return self._ask(image, path)
        except (OSError, ValueError) as error:
            raise RegistryError(
                f"{image}: {host} doesn't answer: {getattr(error, 'reason', error)}"
            ) from error
        if answer.status != 200:
            meaning = {
                401: "it asks who you are",
                403: "it refuses",
                404: "it has no such image",
                429: "too many requests",
            }
            raise RegistryError(
                f"{image}: {host}: {meaning.get(answer.status, 'no image')} (status"
                f" {answer.status})."
            )
        return answer

    def _token(self, refusal: Answer) -> str:
        """A token for everybody, as the refusal says where to get one; "" if it doesn't."""
        challenge = refusal.headers.get("www-authenticate", "")
        if not challenge.lower().startswith("bearer "):
            return ""
        parts = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        realm = parts.pop("realm", "")
        # What answered may name any address, a file of this machine included.
        address = urllib.parse.urlsplit(realm)
        if address.scheme != "https" and not (
            address.scheme == "http" and _LOOPBACK.fullmatch(address.netloc)
        ):
            return ""
        answer = self._fetch("GET", f"{realm}?{urllib.parse.urlencode(parts)}", {})
        if answer.status != 200:
            return ""
        said = json.loads(answer.body)
        return str(said.get("token") or said.get("access_token") or "")
