"""Sign in by a JupyterHub, of which this server is a service: admins see everything, users the `why` of their own pods.

JupyterHub's own HubOAuth talks to the hub. Which pods are a user's own says the hub too, in the state that KubeSpawner
keeps of each running server; nothing is guessed from names.
"""

from __future__ import annotations

import logging
import os
import secrets
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import orjson
import urllib3
from flask import Flask, redirect, request, session
from jupyterhub.services.auth import HubOAuth
from tornado.web import HTTPError

from roost_lab.view.access import AccessError, OwnPod, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from werkzeug.wrappers import Response as AnyResponse

log = logging.getLogger(__name__)

# Set by the hub for a service that it starts, and by hand for others.
PREFIX, TOKEN, SERVICE_URL, API_URL = (
    f"JUPYTERHUB_{name}" for name in ("SERVICE_PREFIX", "API_TOKEN", "SERVICE_URL", "API_URL")
)
NEEDED: Final = (PREFIX, TOKEN, SERVICE_URL, API_URL, "JUPYTERHUB_CLIENT_ID")
CALLBACK: Final = "/oauth_callback"
# After this time, whoever lost a right at the hub loses it here.
CACHE_SECONDS: Final = 60
HUB_SECONDS: Final = 10.0


class HubAccess:
    """Signs viewers in."""

    def __init__(self) -> None:
        """From the environment that the hub gives its services. Raises AccessError."""
        missing = [name for name in NEEDED if not os.environ.get(name)]
        if missing:
            raise AccessError(
                f"--jupyterhub: {', '.join(missing)} not set: let the hub start this command, "
                "as an entry of c.JupyterHub.services with a url (lab/docs/view.md)"
            )
        self._auth = HubOAuth(cache_max_age=CACHE_SECONDS)
        self._http = urllib3.PoolManager(timeout=HUB_SECONDS, retries=1)

    @property
    def url(self) -> str:
        """Where the hub expects the service: http://address:port/…"""
        return os.environ[SERVICE_URL]

    def set_up(self, app: Flask) -> None:
        """Serve below the hub's prefix, with a session that ends when this process does."""
        prefix = "/" + os.environ[PREFIX].strip("/")
        app.secret_key = secrets.token_bytes(32)
        app.config.update(
            APPLICATION_ROOT=prefix,
            SESSION_COOKIE_NAME="roost-view",
            SESSION_COOKIE_HTTPONLY=True,
            SESSION_COOKIE_SAMESITE="Lax",
            SESSION_COOKIE_SECURE=os.environ.get("JUPYTERHUB_PUBLIC_URL", "").startswith("https:"),
        )
        app.wsgi_app = _Below(prefix, app.wsgi_app)  # type: ignore[method-assign]  # Flask's own way to add middleware

    def admit(self) -> AnyResponse | None:
        """Send to the hub whoever isn't signed in, and take those who come back."""
        if request.path == CALLBACK:
            return self._come_back()
        user = self._user()
        if user is not None:
            if self._auth.check_scopes(self._auth.access_scopes, user):
                return None
            return refusal(403, "the hub doesn't let you use this service: ask its admin for the scope access:services")
        if request.path != "/":
            return refusal(403, "you are no longer signed in: load this page again")
        verifier, challenge, method = self._auth.generate_pkce_code_challenge()
        session["state"] = state = self._auth.generate_state(request.script_root + "/", code_verifier=verifier)
        more = urlencode({"state": state, "code_challenge": challenge, "code_challenge_method": method})
        return redirect(f"{self._auth.login_url}&{more}")

    def _come_back(self) -> AnyResponse:
        state = request.args.get("state", "")
        code = request.args.get("code", "")
        expected = session.pop("state", None)
        if not code or not state or state != expected:
            return refusal(403, "this sign-in wasn't begun here, or took too long: open the page again")
        try:
            token = self._auth.token_for_code(code, code_verifier=self._auth.get_code_verifier(state))
        except Exception:
            log.warning("the hub refused a sign-in", exc_info=True)
            return refusal(403, "the hub refused the sign-in: open the page again")
        finally:
            self._auth.clear_oauth_state(state)
        session.clear()
        session["token"] = token
        return redirect(request.script_root + "/")

    def _user(self) -> dict[str, Any] | None:
        """The hub's model of whoever is signed in. Raises AccessError."""
        token = session.get("token")
        try:
            user: dict[str, Any] | None = self._auth.user_for_token(token) if token else None
        except HTTPError as error:
            raise AccessError(f"the hub doesn't answer: {error.log_message or error}") from None
        return user

    def own_pods(self) -> list[OwnPod] | None:
        """An admin sees everything, and a user the pods of their running servers."""
        user = self._user() or {}
        if user.get("admin") is True:
            return None
        name = quote(str(user["name"]), safe="") if user.get("name") else ""
        if not name:
            return []
        address = f"{os.environ[API_URL].rstrip('/')}/users/{name}"
        headers = {"Authorization": f"token {os.environ[TOKEN]}"}
        try:
            answer = self._http.request("GET", address, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise AccessError(f"the hub doesn't answer: {type(error).__name__}") from None
        if answer.status != 200:
            raise AccessError(f"the hub refuses to say which pods are yours ({answer.status}): see lab/docs/view.md")
        servers = orjson.loads(answer.data).get("servers") or {}
        states = [server.get("state") or {} for server in servers.values()]
        return [OwnPod(state.get("namespace") or "", state["pod_name"]) for state in states if state.get("pod_name")]


class _Below:
    """Serves an application below a path."""

    def __init__(self, prefix: str, app: WSGIApplication) -> None:
        self._prefix = prefix
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path != self._prefix and not path.startswith(f"{self._prefix}/"):
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"not here\n"]
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + self._prefix
        environ["PATH_INFO"] = path[len(self._prefix) :] or "/"
        return self._app(environ, start_response)
