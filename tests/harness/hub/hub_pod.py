"""Give a hub that runs outside of the cluster a pod whose log is the hub's, as the API server
serves it.

Owns the pod, its node, and the one answer of a kubelet that the API server asks for.
"""

import contextlib
import datetime as dt
import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.ports import LOOPBACK

POD = "hub-7d9f"


@contextlib.contextmanager
def hub_pod(
    cluster: ControlPlane, nodes: FakeNodes, namespace: str, log: Callable[[], Path]
) -> Iterator[None]:
    """log: the file that the hub writes now.

    Whoever keeps the cluster's pods marks the pod as running.
    """
    over = threading.Event()
    # When each line was written, by its file and number: all are told, whatever time is asked for.
    stamps: dict[tuple[Path, int], str] = {}

    def lines(*, follow: bool) -> Iterator[bytes]:
        path, number = log(), 0
        with path.open("rb") as file:
            while not over.is_set():
                begin = file.tell()
                if (line := file.readline()).endswith(b"\n"):
                    now = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%S.%f}000Z "
                    yield stamps.setdefault((path, number), now).encode() + line
                    number += 1
                elif not follow or path != log():
                    # A hub that was started again writes another file.
                    return
                else:
                    # What is half written is read again, whole.
                    file.seek(begin)
                    time.sleep(0.01)

    def stamp() -> None:
        while not over.is_set():
            for _ in lines(follow=True):
                pass

    class Kubelet(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            with contextlib.suppress(OSError):
                for line in lines(follow="follow=true" in self.path):
                    self.wfile.write(line)
                    self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Kubelet)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cluster.ca_path, cluster.ca_path.with_suffix(".key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stamping = threading.Thread(target=stamp, daemon=True)
    stamping.start()
    node = f"{namespace}-hub"
    nodes.create(node)
    nodes.cordon(node)
    kubelet = {"daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}}}
    status = {"status": {"addresses": [{"type": "InternalIP", "address": LOOPBACK}], **kubelet}}
    cluster.api.patch(f"/api/v1/nodes/{node}/status", status)
    body = {
        "metadata": {"name": POD, "labels": {"app": "jupyterhub", "component": "hub"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "hub", "image": "quay.io/jupyterhub/k8s-hub:4.3.1"}],
        },
    }
    cluster.create_pod(body, namespace)
    try:
        yield
    finally:
        over.set()
        stamping.join()
        server.shutdown()
        server.server_close()
        nodes.delete(node)
