"""A stand-in for a single-user server, which answers every request. Usage: light_server.py ADDRESS
PORT VERSION.

On sockets alone: with the library's HTTP server it takes twice as long to start, on the cores that
tests measure.
"""

import os
import socket
import sys
import time
from _thread import start_new_thread

_BODY = os.environ["JUPYTERHUB_SERVER_NAME"] + " answers\n"
_ANSWER = (
    f"HTTP/1.1 200 OK\r\nX-JupyterHub-Version: {sys.argv[3]}\r\nContent-Length:"
    f" {len(_BODY)}\r\n\r\n{_BODY}"
)


def _serve(connection: socket.socket) -> None:
    # Requests have no body; their lines may come in parts.
    with connection, connection.makefile("rb") as lines:
        for line in lines:
            if line == b"\r\n":
                connection.sendall(_ANSWER.encode())


time.sleep(float(os.environ.get("ANSWERS_AFTER", "0")))
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    start_new_thread(_serve, (server.accept()[0],))
