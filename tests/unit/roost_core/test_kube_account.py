"""How a program in a pod reaches its API server: by the token and the CA that the kubelet keeps, over IPv4 and IPv6."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from roost_core.kube import account as kube
from roost_core.kube.account import account_header, connect_in_pod
from roost_core.kube.client import Client, ClusterError
from roost_core.kube.pki import make_authority, sign_leaf

NOW = 1_790_000_000.0


class Server:
    """An API server with a certificate of its own CA; remembers the tokens that it was given."""

    def __init__(self, folder: Path) -> None:
        authority = make_authority("test", NOW, 3e8)
        leaf = sign_leaf(authority, ("127.0.0.1",), NOW, 3e8)
        (folder / "ca.crt").write_bytes(authority.certificate_pem)
        (folder / "leaf.pem").write_bytes(leaf.certificate_pem + leaf.key_pem)
        (folder / "token").write_text("first\n")
        self.tokens: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.tokens.append(self.headers["Authorization"])
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "leaf.pem")
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def environment(self, host: str = "127.0.0.1") -> dict[str, str]:
        return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(self.http.server_port)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    yield running
    running.http.shutdown()
    running.http.server_close()


def connect(folder: Path, environment: dict[str, str]) -> Client:
    return connect_in_pod(folder, environment, lambda _verb: None)


def test_a_pod_shows_its_token_to_a_server_that_its_ca_signed(server: Server, tmp_path: Path) -> None:
    assert connect(tmp_path, server.environment()).get("/version") == {}
    assert server.tokens == ["Bearer first"]


def test_no_token_goes_to_a_server_of_another_ca_or_name(server: Server, tmp_path: Path) -> None:
    elsewhere = connect(tmp_path, server.environment("localhost"))
    (tmp_path / "ca.crt").write_bytes(make_authority("other", NOW, 3e8).certificate_pem)
    for client in (connect(tmp_path, server.environment()), elsewhere):
        with pytest.raises(ClusterError, match="its certificate isn't trusted"):
            client.get("/version")
    assert not server.tokens


def test_a_token_that_the_kubelet_replaced_is_used_within_a_minute(tmp_path: Path) -> None:
    seconds = 0.0
    (tmp_path / "token").write_text("first")
    header = account_header(tmp_path / "token", lambda: seconds)
    (tmp_path / "token").write_text("second\n")
    seconds = kube.TOKEN_SECONDS - 1
    assert header() == "Bearer first"
    seconds = kube.TOKEN_SECONDS
    assert header() == "Bearer second"
    (tmp_path / "token").write_text("")
    seconds += kube.TOKEN_SECONDS
    with pytest.raises(ClusterError, match=r"service account can't be used: .*token is empty"):
        header()


@pytest.mark.parametrize(("host", "url"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")])
def test_an_address_may_be_of_either_family(host: str, url: str, tmp_path: Path) -> None:
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    assert connect(tmp_path, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}).host == url


@pytest.mark.parametrize("without", ["KUBERNETES_SERVICE_PORT", "token", "ca.crt"])
def test_what_is_missing_in_a_pod_is_named(
    without: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube, "ACCOUNT_FOLDER", tmp_path)
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    if without.startswith("KUBE"):
        monkeypatch.delenv(without)
    else:
        (tmp_path / without).write_text(" \n")
    with pytest.raises(ClusterError, match=f"the pod's service account can't be used: .*{without}.* Give --kubeconfig"):
        kube.connect(None)
