"""Act as another ServiceAccount, by tokens that its namespace lets us request.

So one process can work for several hubs, and the API server still holds each hub's requests to that hub's own rights
and admission policies.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, cast

from kubernetes.client import ApiClient, Configuration

from roost_core.kube.client import USER_AGENT, ApiError, Client

if TYPE_CHECKING:
    from collections.abc import Callable

    import urllib3

# An hour; API servers grant no less than 600 s. A token is replaced after half of it, or when it is refused.
TOKEN_SECONDS: Final = 3600
_RENEW_SECONDS: Final = TOKEN_SECONDS / 2
_UNAUTHORIZED: Final = 401
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


class _Borrower(Client):
    """A client that hears of it when its token is refused."""

    def __init__(
        self, api_client: ApiClient, on_request: Callable[[str], None], on_refused: Callable[[], None]
    ) -> None:
        super().__init__(api_client, on_request)
        self._on_refused = on_refused

    def _request(self, *args: Any, **options: Any) -> urllib3.BaseHTTPResponse:  # noqa: ANN401 - handed through
        try:
            return super()._request(*args, **options)
        except ApiError as error:
            if error.status == _UNAUTHORIZED:
                self._on_refused()
            raise


def connect_as(
    lender: Client,
    namespace: str,
    account: str,
    on_request: Callable[[str], None] = lambda _verb: None,
    clock: Callable[[], float] = time.monotonic,
    *,
    on_refused: Callable[[], None] = lambda: None,
) -> Client:
    """Return a client that acts as `account` of `namespace`; its first request asks for a token.

    lender: a client that may create serviceaccounts/token for the account; else requests raise ApiError.
    on_refused: called when the API server refuses the token, as when the account was made anew with another uid; the
    next request asks for another token.
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

    def forget() -> None:
        nonlocal requested_at
        with lock:
            requested_at = None
        on_refused()

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
    return _Borrower(api_client, on_request, forget)
