"""Hand out loopback ports that stay ours until a program listens on them.

Owns the choice of ports. Guarantee: two test runs on one machine never get the same port at the
same time.
"""

import socket
from typing import Self

LOOPBACK = "127.0.0.1"


class ReservedPort:
    """A loopback port, held by a bound socket that never listens.

    Programs that set SO_REUSEPORT too (etcd, kube-apiserver and kube-scheduler by flag) bind the
    same port beside it, so there is no moment in which somebody else may take it. For others call
    `release` just before they start.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind((LOOPBACK, 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> int:
        """Give the port back to the machine; returns its number."""
        self._socket.close()
        return self.number

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
