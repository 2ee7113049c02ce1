"""A stand-in for a single-user server, which answers every request. Usage: light_server.py ADDRESS PORT VERSION."""

import http.server
import os
import sys
import time


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = os.environ["JUPYTERHUB_SERVER_NAME"].encode() + b" answers\n"
        self.send_response(200)
        self.send_header("X-JupyterHub-Version", sys.argv[3])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


time.sleep(float(os.environ.get("ANSWERS_AFTER", "0")))
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), _Handler).serve_forever()
