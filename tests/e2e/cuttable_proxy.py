"""Stand between a program and the API server, and fail as networks do: connections cut, refused, or silent.

Passes TLS through untouched: the API server's certificate names loopback, whatever the port.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from tests.harness.ports import LOOPBACK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.controlplane import ControlPlane


class CuttableProxy:
    """`with CuttableProxy(cluster) as proxy: proxy.kubeconfig(path)`; then `cut`, `refuse` or `hush`."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._target = urlsplit(cluster.server).port or 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._refuses = False
        # Set: bytes pass.
        self._speaks = threading.Event()
        self._speaks.set()
        self._listener = socket.socket()
        self._listener.bind((LOOPBACK, 0))
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]

    def kubeconfig(self, direct: Path) -> Path:
        """The same kubeconfig, through us."""
        path = direct.with_suffix(".proxied.kubeconfig")
        path.touch(mode=0o600)
        path.write_text(direct.read_text().replace(self._cluster.server, f"https://{LOOPBACK}:{self.port}"))
        return path

    # Faults

    def cut(self) -> None:
        """Reset all connections; new ones are taken."""
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def refuse(self, *, on: bool = True) -> None:
        """Cut, and hang up on whoever comes, until `refuse(on=False)`."""
        self._refuses = on
        if on:
            self.cut()

    def hush(self, *, on: bool = True) -> None:
        """Let connections stand without a byte, until `hush(on=False)`."""
        if on:
            self._speaks.clear()
        else:
            self._speaks.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._speaks.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client:
            if self._refuses:
                return
            with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, self._target)) as server:
                with self._lock:
                    self._ends |= {client, server}
                back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()
                with self._lock:
                    self._ends -= {client, server}

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._speaks.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
