"""Connect to a cluster: as the pod's own service account, or by a given kubeconfig.

In a pod, the credentials are two files that the kubelet keeps. kubeconfig.py reads kubeconfigs with
the official client. Importing that takes half of a webhook's memory, so programs in a cluster don't
import it.
"""

import os
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import urllib3

from roost_core.kube.client import POOL_CONNECTIONS, RETRIES, Client, unusable
from roost_core.objects.fields import JSONObject

# Where the kubelet puts a pod's credentials, and where it says how to reach the API server.
ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
_PORT_VARIABLE: Final = "KUBERNETES_SERVICE_PORT"
# How often the token is read again. A kubelet replaces a token long before it expires.
TOKEN_SECONDS: Final = 60.0
_FIX: Final = "Give --kubeconfig, or run inside a cluster."


def account_header(file: Path, clock: Callable[[], float] = time.monotonic) -> Callable[[], str]:
    """Make a function that returns the header Authorization of the pod's service account.

    file: where the kubelet keeps the token. It is read now, and again after TOKEN_SECONDS. Raises
    OSError or ValueError; the function raises ClusterError. clock: monotonic seconds.
    """
    token = _content(file)
    until = clock() + TOKEN_SECONDS

    def header() -> str:
        nonlocal token, until
        if clock() >= until:
            try:
                token = _content(file)
                until = clock() + TOKEN_SECONDS
            except (OSError, ValueError) as error:
                raise unusable("the pod's service account", error, _FIX) from None
        return f"Bearer {token}"

    return header


def connect(
    kubeconfig: Path | None, on_request: Callable[[str], None] = lambda _verb: None
) -> Client:
    """Connect by a kubeconfig; None: as the pod's own service account.

    on_request: called with the verb of each request. Raises ClusterError.
    """
    if kubeconfig is not None:
        from roost_core.kube.kubeconfig import connect_by_files  # noqa: PLC0415 - see above

        return connect_by_files(str(kubeconfig), None, on_request)
    try:
        return connect_in_pod(ACCOUNT_FOLDER, os.environ, on_request)
    except (OSError, ValueError) as error:
        raise unusable("the pod's service account", error, _FIX) from None


def connect_in_pod(
    folder: Path, environment: Mapping[str, str], on_request: Callable[[str], None]
) -> Client:
    """Connect as the service account whose token and CA are in the folder.

    environment: names the API server's host and port. A proxy in it isn't used: the API server is
    in the cluster. Raises OSError, ValueError.
    """
    host = environment.get(HOST_VARIABLE)
    port = environment.get(_PORT_VARIABLE)
    if not host or not port:
        raise ValueError(f"{HOST_VARIABLE} and {_PORT_VARIABLE} aren't set")
    authority = folder / "ca.crt"
    # Raises if the file is missing or empty.
    _content(authority)
    pool = urllib3.PoolManager(
        cert_reqs=ssl.CERT_REQUIRED,
        ca_certs=str(authority),
        retries=RETRIES,
        maxsize=POOL_CONNECTIONS,
    )
    # A URL has an IPv6 address in brackets.
    name = f"[{host}]" if ":" in host else host
    return Client(f"https://{name}:{port}", pool, account_header(folder / "token"), on_request)


def _content(file: Path) -> str:
    text = file.read_text(encoding="utf-8").strip()
    if not text:
        raise ValueError(f"{file} is empty")
    return text


def own_service_account(client: Client, namespace: str) -> JSONObject | None:
    """Return an ownerReference to the service account of `client`.

    None: the client's account isn't a service account of `namespace`. Objects with this owner are
    garbage-collected after an uninstall. So objects that were made at run time go, too. Raises
    ClusterError.
    """
    review = client.create(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    user = (review.get("status") or {}).get("userInfo") or {}
    prefix = f"system:serviceaccount:{namespace}:"
    name = str(user.get("username") or "")
    uid = user.get("uid")
    if not name.startswith(prefix) or not uid:
        return None
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "name": name.removeprefix(prefix),
        "uid": uid,
    }
