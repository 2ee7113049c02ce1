"""Who a registry's client is: what `docker login`, `podman login` and `helm registry login` kept.

Passwords stay in memory and are never printed.
Source: docker's config.json, containers-auth.json(5), and docker's protocol of credential helpers.
"""

from __future__ import annotations

import base64
import binascii
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HELPER_SECONDS: Final = 30


class LoginError(ValueError):
    """A file of logins, or the helper that it names, gave none; the message names it."""


class Login(NamedTuple):
    """user "<token>": the password is a token that buys others."""

    user: str
    password: str
    source: str


def login_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where logins are kept, in the order in which they count."""
    home = Path(environment.get("HOME") or "/")
    if named := environment.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
    yield Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers/auth.json"
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    yield settings / "containers/auth.json"
    named = environment.get("HELM_REGISTRY_CONFIG")
    yield Path(named) if named else settings / "helm/registry/config.json"


def find_login(host: str, environment: Mapping[str, str]) -> Login | None:
    """The login for `host` (HOST or HOST:PORT); None: nobody logged in.

    Raises LoginError, of the first file that gave none because of a fault, where no file has one:
    a credential helper that is missing matters to nobody whose login another program keeps.
    """
    fault: LoginError | None = None
    for path in login_files(environment):
        try:
            found = _of_path(path, host)
        except LoginError as error:
            fault = fault or error
            continue
        if found is not None:
            return found
    if fault is not None:
        raise fault
    return None


def _of_path(path: Path, host: str) -> Login | None:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LoginError(f"{path}: it can't be read: {error}. Mend or remove it.") from error
    return _of_file(settings, host, path) if isinstance(settings, dict) else None


def _of_file(settings: Mapping[str, object], host: str, path: Path) -> Login | None:
    helpers = settings.get("credHelpers")
    if isinstance(helpers, dict) and isinstance(helpers.get(host), str):
        return _ask_helper(helpers[host], host, path)
    auths = settings.get("auths")
    entries = auths if isinstance(auths, dict) else {}
    for key in (host, f"https://{host}", f"https://{host}/v1/", f"http://{host}"):
        entry = entries.get(key)
        if not isinstance(entry, dict):
            continue
        if isinstance(token := entry.get("identitytoken"), str) and token:
            return Login("<token>", token, str(path))
        if isinstance(auth := entry.get("auth"), str) and auth:
            try:
                user, _, password = base64.b64decode(auth, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError) as error:
                raise LoginError(
                    f'{path}: auths["{key}"].auth isn\'t base64. Log in again.'
                ) from error
            return Login(user, password, str(path))
        if entry.get("username") and entry.get("password"):
            return Login(str(entry["username"]), str(entry["password"]), str(path))
    store = settings.get("credsStore")
    return _ask_helper(store, host, path) if isinstance(store, str) and store else None


def _ask_helper(name: str, host: str, path: Path) -> Login | None:
    program = shutil.which(f"docker-credential-{name}")
    if program is None:
        raise LoginError(
            f"{path}: it names docker-credential-{name}, which isn't in PATH. Install it."
        )
    try:
        done = subprocess.run(
            [program, "get"],
            input=host,
            capture_output=True,
            text=True,
            check=False,
            timeout=_HELPER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoginError(f"docker-credential-{name}: {error}") from error
    if done.returncode != 0:
        # Docker's protocol: this sentence is its word for "none".
        if "credentials not found" in done.stdout + done.stderr:
            return None
        reason = (done.stderr or done.stdout).strip() or f"status {done.returncode}"
        raise LoginError(f"docker-credential-{name}: {reason}")
    try:
        body = json.loads(done.stdout)
        return Login(body["Username"], body["Secret"], f"docker-credential-{name}")
    except (ValueError, KeyError, TypeError) as error:
        raise LoginError(f"docker-credential-{name}: its answer isn't a login.") from error
