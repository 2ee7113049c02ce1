"""Who may see the page: whoever has the printed address."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final

import orjson
from flask import Response, redirect, request

if TYPE_CHECKING:
    from werkzeug.wrappers import Response as AnyResponse

JSON: Final = "application/json"
COOKIE: Final = "roost-view"


class TokenAccess:
    """The token that the printed address holds, then a cookie."""

    def __init__(self, token: str) -> None:
        self._token = token

    def admit(self) -> AnyResponse | None:
        """Swap a token in the address for a cookie; refuse whoever has neither. None: they may see everything."""
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

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def refusal(status: int, message: str) -> Response:
    """An answer that says in one sentence what is wrong."""
    content: dict[str, Any] = {"error": message}
    return Response(orjson.dumps(content), status=status, mimetype=JSON)
