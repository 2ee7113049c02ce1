"""Who may see what of the page: whoever has the printed address sees everything."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import orjson
from flask import Flask, Response, redirect, request

if TYPE_CHECKING:
    from werkzeug.wrappers import Response as AnyResponse

JSON: Final = "application/json"
COOKIE: Final = "roost-view"


class AccessError(Exception):
    """It can't be decided who may see what; the message says why and what to do."""


class OwnPod(NamedTuple):
    """A pod of somebody who is signed in."""

    namespace: str
    name: str


class Access(Protocol):
    """Decides on each request."""

    def set_up(self, app: Flask) -> None:
        """Configure the application, once."""

    def admit(self) -> AnyResponse | None:
        """The answer to the request, such as a way to sign in; None: they may see something. Raises AccessError."""

    def own_pods(self) -> list[OwnPod] | None:
        """The pods whose `why` the viewer may see; None: everything. Raises AccessError."""


class TokenAccess:
    """The token that the printed address holds, then a cookie."""

    def __init__(self, token: str) -> None:
        self._token = token

    def set_up(self, app: Flask) -> None:
        """Nothing."""

    def admit(self) -> AnyResponse | None:
        """Swap a token in the address for a cookie; refuse whoever has neither."""
        cookie = f"{COOKIE}-{request.environ.get('SERVER_PORT', '')}"
        given = request.args.get("token")
        if given is not None and self._is_token(given):
            # Without the token in the address, which browsers remember.
            answer = redirect(request.path)
            answer.set_cookie(cookie, self._token, httponly=True, samesite="Lax")
            return answer
        if self._is_token(request.cookies.get(cookie, "")):
            return None
        return refusal(403, "open the address that `roost view` printed: it holds this page's token")

    def own_pods(self) -> list[OwnPod] | None:
        """Everything."""
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def refusal(status: int, message: str) -> Response:
    """An answer that says in one sentence what is wrong."""
    content: dict[str, Any] = {"error": message}
    return Response(orjson.dumps(content), status=status, mimetype=JSON)
