"""JupyterHub's REST API, as far as seating needs it: users, groups, starts and stops of servers.

The token is read from its file for each request, so a new token needs no restart. No message quotes
the token.
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from roost.seating.people import HubUser
from roost.seating.user_models import read_user

_REQUEST_SECONDS: Final = 30.0
# The hub writes to a start's stream every 8 s.
_STREAM_SECONDS: Final = 40.0
# A hub answers one request at a time: while it writes a page, other requests wait.
_USERS_A_PAGE: Final = 50
# The most pages of users: a hub with 100,000 users has as many.
_MOST_PAGES: Final = 2000
_MOST_ANSWER_BYTES: Final = 64 * 2**20
# Characters of the hub's own message that are kept.
_MOST_MESSAGE: Final = 300
# How long a hub counts as busy if it doesn't say it, and the longest that is believed.
_BUSY_SECONDS: Final = 30.0
_MOST_BUSY_SECONDS: Final = 60.0
_PAGES: Final = "application/jupyterhub-pagination+json"
# A header's value: http.client would quote any other text whole.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_USER_PATH: Final = re.compile(r"/users/[^/?]+")


class HubError(Exception):
    """The hub can't be asked now, or not with this token; the message says what helps.

    The message names no user, unless the hub's own message does.
    """


class RefusedConnectionError(HubError):
    """Nothing listens at the hub's address, for example while the hub restarts."""


class Result(StrEnum):
    """How asking for a server went."""

    READY = "ready"
    # The start failed, or is refused for this person.
    FAILED = "failed"
    # The hub starts or runs as many servers as it may.
    BUSY = "busy"
    # It isn't known, for example because the hub restarts. Its list of users shows it later.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of asking for a person's server."""

    result: Result
    # In the hub's words.
    words: str = ""
    # READY: when the hub said so. Unix time.
    at: float = 0.0
    # BUSY: after how long the hub may be asked again.
    retry_seconds: float = 0.0
    # FAILED: the hub refused before the start began, so the hub counts no failed start.
    is_refusal: bool = False
    # FAILED: the role of the token doesn't include this person. Starts of other people may work.
    is_outside: bool = False


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, so that the token goes only to the hub's API."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401 - urllib's
        """Refuse a redirect: None says so to urllib."""
        return


class Hub:
    """One hub, by its API's address. May be used by several threads."""

    def __init__(self, url: str, token_path: Path) -> None:
        self._url = url.rstrip("/")
        self._token_path = token_path
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())

    def users(self, state: str = "") -> Iterator[HubUser]:
        """Yield users. state: `active` for those with servers that run, start or stop; "": all.

        Raises HubError.
        """
        offset = 0
        for _ in range(_MOST_PAGES):
            query = f"limit={_USERS_A_PAGE}&offset={offset}"
            if state:
                query += f"&state={state}"
            path = f"/users?{query}"
            page = self._json(path, accept=_PAGES)
            items = page.get("items") if isinstance(page, Mapping) else page
            for model in self._checked_list(path, items):
                yield self._user_of(path, model)
            pagination = page.get("_pagination") if isinstance(page, Mapping) else None
            next_page = pagination.get("next") if isinstance(pagination, Mapping) else None
            if not next_page:
                return
            next_offset = next_page.get("offset") if isinstance(next_page, Mapping) else None
            if not isinstance(next_offset, int) or next_offset <= offset:
                raise self._shape_error(path, "no offset of the next page")
            offset = next_offset

    def user(self, name: str) -> HubUser | None:
        """A user; None: there is none, or the token may not see them. Raises HubError."""
        path = f"/users/{_quoted(name)}"
        try:
            return self._user_of(path, self._json(path))
        except AnswerError as error:
            if error.status == 404:
                return None
            raise

    def group(self, name: str) -> list[str] | None:
        """Names of the users of a group; None: there is no group, or the token may not see it.

        Raises HubError.
        """
        path = f"/groups/{_quoted(name)}"
        try:
            model = self._json(path)
        except AnswerError as error:
            # 403: the token's role has no right to any group.
            if error.status in (403, 404):
                return None
            raise
        if not isinstance(model, Mapping):
            raise self._shape_error(path, "no group")
        return [str(user) for user in self._checked_list(path, model.get("users"))]

    def start(self, name: str, options: Mapping[str, object]) -> Outcome:
        """Start a person's server, and wait until it answers or failed. Raises nothing.

        options: `user_options` of the start.
        """
        path = f"/users/{_quoted(name)}"
        try:
            with self._open("POST", f"{path}/server", body=options) as answer:
                if answer.status == 201:
                    return Outcome(Result.READY, at=time.time())
            return self._follow(f"{path}/server/progress")
        except AnswerError as error:
            if error.status == 429:
                return Outcome(Result.BUSY, error.words, retry_seconds=error.retry_seconds)
            # The person, or somebody else, started the server a moment before.
            is_there = error.status == 400 and re.search("already running|is pending", error.words)
            if is_there or error.status in (401, 502, 503, 504):
                return Outcome(Result.UNKNOWN, error.words)
            words = f"{error.status} {error.words}".strip()
            return Outcome(
                Result.FAILED,
                words,
                is_refusal=error.status < 500,
                # For a user outside the groups of the token's scope, the hub answers 404.
                is_outside=error.status == 404,
            )
        except HubError as error:
            return Outcome(Result.UNKNOWN, str(error))

    def stop(self, name: str) -> None:
        """Stop a person's server. Raises HubError."""
        with self._open("DELETE", f"/users/{_quoted(name)}/server"):
            pass

    def _follow(self, path: str) -> Outcome:
        """Read the stream of a start to its end. Raises HubError."""
        accept = "text/event-stream"
        with self._open("GET", path, accept=accept, seconds=_STREAM_SECONDS) as stream:
            try:
                for line in stream:
                    if not line.startswith(b"data:"):
                        continue
                    event = json.loads(line[5:])
                    if not isinstance(event, Mapping):
                        continue
                    if event.get("ready"):
                        return Outcome(Result.READY, at=time.time())
                    if event.get("failed"):
                        return Outcome(Result.FAILED, _cut(str(event.get("message") or "failed")))
            except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
                return Outcome(Result.UNKNOWN, f"its progress broke off ({type(error).__name__})")
        return Outcome(Result.UNKNOWN, "its progress ended without a word")

    def _json(self, path: str, accept: str = "application/json") -> Any:  # noqa: ANN401 - JSON
        """Get and parse an answer. Raises HubError."""
        try:
            with self._open("GET", path, accept=accept) as answer:
                return json.loads(answer.read(_MOST_ANSWER_BYTES))
        except (ValueError, OSError, RecursionError, http.client.HTTPException) as error:
            raise self._shape_error(path, f"no JSON ({type(error).__name__})") from None

    def _user_of(self, path: str, model: object) -> HubUser:
        """Read a user of an answer. Raises HubError."""
        if not isinstance(model, Mapping) or not isinstance(model.get("name"), str):
            raise self._shape_error(path, "no user")
        return read_user(model)

    def _checked_list(self, path: str, found: object) -> Sequence[object]:
        """A list of an answer; () where it is null. Raises HubError."""
        if found is None:
            return ()
        if not isinstance(found, list):
            raise self._shape_error(path, "no list")
        return found

    def _shape_error(self, path: str, found: str) -> HubError:
        return HubError(
            f"{self._url}{_without_name(path)}: found {found}, expected JupyterHub's API:"
            " seating.hubUrl ends in /hub/api"
        )

    def _open(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        accept: str = "application/json",
        seconds: float = _REQUEST_SECONDS,
    ) -> http.client.HTTPResponse:
        """Send a request; the caller reads the answer's body. Raises HubError.

        seconds: how long to wait for the next piece of the answer.
        """
        request_text = f"{method} {self._url}{_without_name(path)}"
        token = self._token()
        request = urllib.request.Request(
            f"{self._url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {token}", "Accept": accept},
        )
        try:
            answer: http.client.HTTPResponse = self._opener.open(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            with error:
                raise AnswerError.of(request_text, error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            is_refused = isinstance(reason, ConnectionRefusedError)
            kind = RefusedConnectionError if is_refused else HubError
            # InvalidURL and others quote what they were given: perhaps a user's name.
            is_quotable = isinstance(reason, OSError | str)
            words = _cut(str(reason)) if is_quotable else type(reason).__name__
            raise kind(f"{request_text}: no answer ({words})") from None
        return answer

    def _token(self) -> str:
        """Read the token. Raises HubError, which doesn't quote it."""
        found = ""
        try:
            token = self._token_path.read_text().strip()
        except (OSError, ValueError) as error:
            found = type(error).__name__
        else:
            if _TOKEN.fullmatch(token):
                return token
            found = "other characters than a token's" if token else "it is empty"
        raise HubError(
            f"{self._token_path}: found no token ({found}), expected the Secret that"
            " seating.tokenSecret names"
        )


class AnswerError(HubError):
    """The hub refused a request, or failed at it.

    words: the hub's message. retry_seconds: after how long it may be asked again.
    """

    def __init__(self, request_text: str, status: int, words: str, retry_seconds: float) -> None:
        fix = ""
        if 300 <= status < 400:
            fix = "; seating.hubUrl is the address of JupyterHub's API, http://hub:8081/hub/api"
        elif status in (401, 403):
            fix = (
                "; the hub doesn't know this token, or its role lacks this right: hub.services and"
                " hub.loadRoles in docs/seated.md"
            )
        super().__init__(f"{request_text}: {status} {words}{fix}")
        self.status = status
        self.words = words
        self.retry_seconds = retry_seconds

    @classmethod
    def of(cls, request_text: str, error: urllib.error.HTTPError) -> AnswerError:
        """Make it from an answer. request_text: method and URL, without a user's name."""
        try:
            words = str(json.loads(error.read(100_000)).get("message") or error.reason)
        except (OSError, ValueError, AttributeError, RecursionError, http.client.HTTPException):
            words = str(error.reason)
        retry_after = error.headers.get("Retry-After") or ""
        seconds = _BUSY_SECONDS
        if retry_after.isascii() and retry_after.isdigit():
            seconds = float(retry_after)
        return cls(request_text, error.code, _cut(words), min(seconds, _MOST_BUSY_SECONDS))


def _quoted(name: str) -> str:
    """A name as part of a URL's path. A name from JSON may hold characters that no URL can."""
    return quote(name, safe="", errors="replace")


def _without_name(path: str) -> str:
    """A path for a message, without a user's name: anybody may read messages at /readyz."""
    return _USER_PATH.sub("/users/<name>", path)


def _cut(words: str) -> str:
    """A message of the hub or the system, as one short line of valid text."""
    line = " ".join(words.split())[:_MOST_MESSAGE]
    return line.encode(errors="replace").decode()
