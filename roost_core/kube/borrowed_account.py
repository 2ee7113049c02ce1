"""Act as another ServiceAccount, by tokens that its namespace lets us request.

So one process can work for several hubs, and the API server still holds each hub's requests to that hub's own rights
and admission policies.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, cast

from kubernetes.client import ApiClient, Configuration

from roost_core.kube.client import USER_AGENT, Client

if TYPE_CHECKING:
    from collections.abc import Callable

# The shortest life that API servers grant by default; a token is replaced after half of it.
TOKEN_SECONDS: Final = 3600
_RENEW_SECONDS: Final = TOKEN_SECONDS / 2
_SHARED: Final = (
    "host",
    "ssl_ca_cert",
    "ca_cert_data",
    "verify_ssl",
    "assert_hostname",
    "tls_server_name",
    "proxy",
    "no_proxy",
    "retries",
)


def connect_as(
    lender: Client,
    namespace: str,
    account: str,
    on_request: Callable[[str], None] = lambda _verb: None,
    clock: Callable[[], float] = time.monotonic,
) -> Client:
    """Return a client that acts as `account` of `namespace`; its first request asks for a token.

    lender: a client that may create serviceaccounts/token for the account; else requests raise ApiError.
    """
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    lock = threading.Lock()
    requested_at: float | None = None

    def renew(configuration: Configuration) -> None:
        nonlocal requested_at
        with lock:
            now = clock()
            if requested_at is not None and now - requested_at < _RENEW_SECONDS:
                return
            body = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": TOKEN_SECONDS},
            }
            token = lender.create(path, body)["status"]["token"]
            configuration.api_key["authorization"] = f"Bearer {token}"
            requested_at = now

    known = lender.api_client.configuration
    configuration = Configuration()
    for name in _SHARED:
        if hasattr(known, name):
            setattr(configuration, name, getattr(known, name))
    # Its own type is that of its default, None.
    cast("Any", configuration).refresh_api_key_hook = renew
    # The hook is asked only for keys that exist.
    configuration.api_key["authorization"] = ""
    api_client = ApiClient(configuration)
    api_client.user_agent = USER_AGENT
    return Client(api_client, on_request)
