"""Names of Services, for pods of a `PodNetwork`: a resolver at its gateway, to which kubelets'
clusterDNS points.

A name stands for the addresses of the Service's ready pods, since no kube-proxy leads a Service's
own address to them; so by name a Service is reached whose port is its pods' as well.
"""

import contextlib
import re
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator

from tests.harness.api import Api
from tests.harness.pod_network import API_SERVICE, GATEWAY, PodNetwork

_A, _NO_SUCH_NAME, _ANSWER = 1, 3, 0x8580


@contextlib.contextmanager
def names(network: PodNetwork, api: Api) -> Iterator[None]:
    """`with names(network, cluster.api): RealNode(..., kubelet={"clusterDNS": [GATEWAY]})`."""

    class Handler(socketserver.DatagramRequestHandler):
        def handle(self) -> None:
            # A question that is none, or no API server: it's asked again.
            with contextlib.suppress(Exception):
                self.wfile.write(_answer(self.rfile.read(), api))

    with network.inside():
        server = socketserver.ThreadingUDPServer((GATEWAY, 53), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with server:
        yield
        server.shutdown()


def _addresses(name: str, api: Api) -> list[str] | None:
    """None: there is no such Service."""
    found = re.fullmatch(r"([^.]+)\.([^.]+)\.svc\.cluster\.local", name.lower())
    if found is None or api.find(f"/api/v1/namespaces/{found[2]}/services/{found[1]}") is None:
        return None
    if found.groups() == ("kubernetes", "default"):
        return [API_SERVICE]
    path = f"/apis/discovery.k8s.io/v1/namespaces/{found[2]}/endpointslices"
    slices = api.list(path, labelSelector=f"kubernetes.io/service-name={found[1]}")
    ready = [
        endpoint
        for each in slices
        for endpoint in each["endpoints"] or ()
        if endpoint["conditions"].get("ready")
    ]
    return [address for one in ready for address in one["addresses"] if ":" not in address]


def _answer(asked: bytes, api: Api) -> bytes:
    """The DNS message (RFC 1035) that answers one with one question."""
    at, labels = 12, []
    while length := asked[at]:
        labels.append(asked[at + 1 : at + 1 + length].decode())
        at += 1 + length
    found = _addresses(".".join(labels), api)
    (kind,) = struct.unpack_from(">H", asked, at + 1)
    records = found if found and kind == _A else []
    flags = _ANSWER | (_NO_SUCH_NAME if found is None else 0)
    head = asked[:2] + struct.pack(">5H", flags, 1, len(records), 0, 0) + asked[12 : at + 5]
    record = b"\xc0\x0c" + struct.pack(">HHIH", _A, 1, 1, 4)
    return head + b"".join(record + socket.inet_aton(address) for address in records)
