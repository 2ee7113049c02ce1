"""Start one replica without a cluster, with files for policy and certificate, and speak TLS to it
by hand.
"""

import contextlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from roost_core.kube.pki import Certificate, make_authority, sign_leaf
from tests.builders import policy_document, review, user_pod
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.waiting import wait_until
from tests.stack import ROOST, read_page

DAY = 86400.0


def review_of(body: object = None) -> bytes:
    """The review of a pod's creation, a user's by default, in the order and with the spaces of
    kube-apiserver's.
    """
    whole = json.loads(review(user_pod() if body is None else body))
    return json.dumps(
        {key: whole[key] for key in ("kind", "apiVersion", "request")}, separators=(",", ":")
    ).encode()


class LoneWebhook:
    """`with LoneWebhook(folder) as webhook: webhook.post(review_of())`."""

    def __init__(
        self, folder: Path, *flags: str, policy: bytes | None = None, kubeconfig: Path | None = None
    ) -> None:
        """flags: further ones. kubeconfig: of the cluster to watch, None for none."""
        self.folder = folder
        self.release_file = folder / "release.json"
        self.release_file.write_bytes(
            json.dumps(policy_document()).encode() if policy is None else policy
        )
        self.use_leaf(
            sign_leaf(
                make_authority("test", time.time(), DAY), (LOOPBACK, "localhost"), time.time(), DAY
            )
        )
        self._flags = (
            "--no-cluster" if kubeconfig is None else f"--kubeconfig={kubeconfig}",
            *flags,
        )
        self._connections: list[ssl.SSLSocket] = []

    def use_leaf(self, leaf: Certificate) -> None:
        (self.folder / "tls.crt").write_bytes(leaf.certificate_pem)
        (self.folder / "tls.key").write_bytes(leaf.key_pem)

    def __enter__(self) -> Self:
        self._ports = (ReservedPort(), ReservedPort())
        self.port, self.metrics_port = (port.number for port in self._ports)
        self.log_path = self.folder / "webhook.log"
        command = [
            str(ROOST),
            "webhook",
            f"--settings={self.release_file}",
            "--release=hub",
            "--namespace=jhub",
            f"--bind-address={LOOPBACK}",
            f"--port={self.port}",
            f"--metrics-port={self.metrics_port}",
            f"--certificate-folder={self.folder}",
            *self._flags,
        ]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until(self._answers, 60, "the webhook to answer", explain=self.log)
            wait_until(self._listens, 10, "the webhook to listen for reviews", explain=self.log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        self.process.kill()
        self.process.wait()
        for port in self._ports:
            port.release()

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(
                f"the webhook ended with status {self.process.returncode}: {self.log()}"
            )
        return self.page("/livez")[0] == 200

    def _listens(self) -> bool:
        with contextlib.suppress(OSError):
            self.connect().close()
            return True
        return False

    def log(self) -> str:
        return self.log_path.read_text()

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of a page on the metrics port; status 0 while nothing answers."""
        return read_page(self.metrics_port, path)

    def connect(self, certificate: Path | None = None) -> ssl.SSLSocket:
        """A TLS connection on which nothing has been sent yet; closed at the end, if not before.
        certificate: ours.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate)
        plain = socket.create_connection((LOOPBACK, self.port), timeout=30)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = context.wrap_socket(plain)
        self._connections.append(connection)
        return connection

    def client(self, certificate: Path | None = None) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
        connection.sock = self.connect(certificate)
        return connection

    def post(
        self, body: bytes, connection: http.client.HTTPConnection | None = None
    ) -> tuple[int, dict[str, Any], http.client.HTTPMessage]:
        """POST to /mutate: status, the review's response ({} for refusals), headers."""
        given = connection or self.client()
        given.request("POST", "/mutate", body, {"Content-Type": "application/json"})
        answer = given.getresponse()
        text = answer.read()
        if connection is None:
            given.close()
        return (
            answer.status,
            json.loads(text)["response"] if answer.status == 200 else {},
            answer.headers,
        )

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)
