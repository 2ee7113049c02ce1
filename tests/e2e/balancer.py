"""Stand in for a Service: new connections go to ready replicas in turn, open ones stay where they are.

As with kube-proxy, a replica that stops being ready keeps the connections it has, and is asked for no more.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from typing import TYPE_CHECKING, Self

from tests.harness.ports import LOOPBACK

if TYPE_CHECKING:
    from tests.stack import Webhook

# How late endpoints are.
POLL_SECONDS = 0.2


class Balancer:
    """`with Balancer(port) as balancer: balancer.replicas.append(webhook)`."""

    def __init__(self, port: int) -> None:
        self.replicas: list[Webhook] = []
        self._ready: list[Webhook] = []
        self._turns = itertools.count()
        self._over = threading.Event()
        self._listener = socket.socket()
        # Beside the socket that reserves the port.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._listener.bind((LOOPBACK, port))
        self._listener.listen(256)

    def __enter__(self) -> Self:
        for work in (self._accept, self._look):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _look(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            self._ready = [replica for replica in list(self.replicas) if replica.get("/readyz")[0] == 200]

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        ready = self._ready
        with client:
            if not ready:
                return
            replica = ready[next(self._turns) % len(ready)]
            with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, replica.port)) as server:
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
