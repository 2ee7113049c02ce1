"""Stand between programs on loopback, and pass bytes on: as a Service does, or as a network that
fails.

TLS goes through untouched: certificates name loopback, whatever the port.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from tests.harness.open_sockets import OpenSockets
from tests.harness.ports import LOOPBACK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.controlplane import ControlPlane
    from tests.stack import Webhook

# How late endpoints are.
POLL_SECONDS = 0.2


def kubeconfig_by(direct: Path, server: str, other: str) -> Path:
    """A kubeconfig, with the other address in place of the API server's, in a file beside it."""
    path = direct.with_suffix(f".by-{urlsplit(other).port}.kubeconfig")
    path.touch(mode=0o600)
    path.write_text(direct.read_text().replace(server, other))
    return path


class Relay:
    """Takes connections, and joins each with one to the port that `target` names."""

    def __init__(self, port: int = 0) -> None:
        self.over = threading.Event()
        self._ends = OpenSockets()
        # Set: bytes pass.
        self.speaks = threading.Event()
        self.speaks.set()
        self._listener = socket.socket()
        # Beside the socket that may reserve the port.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._listener.bind((LOOPBACK, port))
        self._listener.listen(256)
        self.port: int = self._listener.getsockname()[1]

    def target(self) -> int | None:
        """The port for one more connection; None: nobody takes it."""
        raise NotImplementedError

    def cut(self) -> None:
        """Break all connections."""
        self._ends.cut()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.speaks.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client:
            if (port := self.target()) is None:
                return
            with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port)) as server:
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._ends.add(client, server)
                back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()
                self._ends.discard(client, server)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.speaks.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Balancer(Relay):
    """`with Balancer(port) as balancer: balancer.replicas.append(webhook)`: ready replicas take
    connections in turn.

    As with kube-proxy, a replica that stops being ready keeps the connections it has, and is asked
    for no more.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.replicas: list[Webhook] = []
        self._ready: list[Webhook] = []
        self._turns = itertools.count()

    def __enter__(self) -> Self:
        threading.Thread(target=self._look, daemon=True).start()
        return super().__enter__()

    def target(self) -> int | None:
        ready = self._ready
        return ready[next(self._turns) % len(ready)].port if ready else None

    def _look(self) -> None:
        while not self.over.wait(POLL_SECONDS):
            self._ready = [
                replica for replica in list(self.replicas) if replica.get("/readyz")[0] == 200
            ]


class CuttableProxy(Relay):
    """`with CuttableProxy(cluster) as proxy: proxy.kubeconfig(path)`; then `cut`, `refuse` or
    `hush`.
    """

    def __init__(self, cluster: ControlPlane) -> None:
        super().__init__()
        self._server = cluster.server
        self._refuses = False

    def target(self) -> int | None:
        return None if self._refuses else urlsplit(self._server).port

    def kubeconfig(self, direct: Path) -> Path:
        """The same kubeconfig, through us."""
        return kubeconfig_by(direct, self._server, f"https://{LOOPBACK}:{self.port}")

    def refuse(self, *, on: bool = True) -> None:
        """Cut, and hang up on whoever comes, until `refuse(on=False)`."""
        self._refuses = on
        if on:
            self.cut()

    def hush(self, *, on: bool = True) -> None:
        """Let connections stand without a byte, until `hush(on=False)`."""
        if on:
            self.speaks.clear()
        else:
            self.speaks.set()
