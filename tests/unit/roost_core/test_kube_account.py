"""Whom a program asks, and as whom: by its pod's account or a kubeconfig; what an unreachable
server's message says.
"""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import urllib3

from roost.cli import run
from roost_core.kube import account, client
from roost_core.kube import account as kube
from roost_core.kube.account import account_header, connect_in_pod
from roost_core.kube.client import Client, ClusterError
from roost_core.kube.pki import make_authority, sign_leaf
from roost_core.kube.user_account import connect_as_user
from tests.recorded_data import rows
from tools.stand_in_api import StandInApi

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
        return {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": str(self.http.server_port),
        }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    yield running
    running.http.shutdown()
    running.http.server_close()


def connect(folder: Path, environment: dict[str, str]) -> Client:
    return connect_in_pod(folder, environment, lambda _verb: None)


def test_a_pod_shows_its_token_to_a_server_that_its_ca_signed(
    server: Server, tmp_path: Path
) -> None:
    assert connect(tmp_path, server.environment()).get("/version") == {}
    assert server.tokens == ["Bearer first"]


def test_no_token_goes_to_a_server_of_another_ca_or_name(server: Server, tmp_path: Path) -> None:
    elsewhere = connect(tmp_path, server.environment("localhost"))
    (tmp_path / "ca.crt").write_bytes(make_authority("other", NOW, 3e8).certificate_pem)
    for asking in (connect(tmp_path, server.environment()), elsewhere):
        with pytest.raises(ClusterError, match="its certificate isn't trusted"):
            asking.get("/version")
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


@pytest.mark.parametrize(
    ("host", "url"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_an_address_may_be_of_either_family(host: str, url: str, tmp_path: Path) -> None:
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    assert (
        connect(tmp_path, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}).host
        == url
    )


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
    with pytest.raises(
        ClusterError,
        match=f"the pod's service account can't be used: .*{without}.* Give --kubeconfig",
    ):
        kube.connect(None)


def kubeconfig(path: Path, server: str, *contexts: str, current: str = "") -> Path:
    """A kubeconfig whose contexts lead to `server`/NAME."""
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current or contexts[0],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name}} for name in contexts
        ],
        "clusters": [
            {"name": name, "cluster": {"server": f"{server}/{name}"}} for name in contexts
        ],
        "users": [{"name": name, "user": {"token": "t"}} for name in contexts],
    }
    path.write_text(json.dumps(config))
    return path


def host(named: str | None, context: str | None = None, **environment: str) -> str:
    return connect_as_user(named, context, environment).host


def test_a_file_that_is_named_comes_before_the_environment_and_that_before_home(
    tmp_path: Path,
) -> None:
    named = str(kubeconfig(tmp_path / "named", "http://named", "a"))
    exported = str(kubeconfig(tmp_path / "exported", "http://exported", "a"))
    kubeconfig(tmp_path / ".kube" / "config", "http://home", "a")
    home = str(tmp_path)
    assert host(named, KUBECONFIG=exported, HOME=home) == "http://named/a"
    assert host(None, KUBECONFIG=exported, HOME=home) == "http://exported/a"
    assert host(None, HOME=home) == "http://home/a"


def test_kubeconfig_may_hold_several_files_and_a_context_of_any(tmp_path: Path) -> None:
    one = kubeconfig(tmp_path / "one", "http://one", "a")
    two = kubeconfig(tmp_path / "two", "http://two", "b")
    both = f"{one}:{two}:{tmp_path}/missing"
    assert host(None, KUBECONFIG=both) == "http://one/a"
    assert host(None, "b", KUBECONFIG=both) == "http://two/b"
    two.write_text(two.read_text().replace('"user": "b"', '"user": "b", "namespace": "hub"'))
    assert connect_as_user(None, "b", {"KUBECONFIG": both}).namespace == "hub"
    assert connect_as_user(None, "a", {"KUBECONFIG": both}).namespace == "default"
    with pytest.raises(ClusterError, match=r"can't be used: .*\bc\b"):
        connect_as_user(None, "c", {"KUBECONFIG": both})


def test_in_a_pod_its_own_account_is_used_where_there_is_no_kubeconfig(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)}
    with pytest.raises(
        ClusterError, match=r"^the pod's service account can't be used: [^.]*\. Give --kubeconfig"
    ):
        host(None, **pod)
    with pytest.raises(ClusterError, match="there is no"):
        host(None, "a", **pod)
    with pytest.raises(
        ClusterError, match=r"there is no .*/\.kube/config\. Give --kubeconfig FILE\.$"
    ):
        host(None, HOME=str(tmp_path))
    kubeconfig(tmp_path / ".kube" / "config", "http://home", "a")
    assert host(None, **pod) == "http://home/a"


def test_programs_ask_as_the_pod_whatever_a_shell_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "exported", "http://exported", "a")))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ClusterError, match="the pod's service account"):
        account.connect(None)


@pytest.mark.parametrize(("odd", "said"), rows("roost_core/no-kubeconfigs"))
@pytest.mark.parametrize("beside", ["", "missing", "good"])
def test_a_file_that_is_no_kubeconfig_is_named(
    beside: str, odd: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "odd").write_text(odd)
    kubeconfig(tmp_path / "good", "http://good", "b")
    with pytest.raises(ClusterError, match=said) as raised:
        host(f"{tmp_path}/odd" + (f":{tmp_path}/{beside}" if beside else ""), "a")
    assert "secret" not in str(raised.value)


def test_a_context_that_is_named_needs_no_current_one(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "http://named", "a", current="gone")
    assert host(str(file), "a") == "http://named/a"


def test_a_server_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "odd", "http://good", "a")
    path.write_text(path.read_text().replace('"http://good/a"', "3"))
    with pytest.raises(ClusterError, match="it isn't a kubeconfig"):
        host(str(path))


def test_an_unreachable_servers_message_has_its_address_and_the_cause(tmp_path: Path) -> None:
    with socket.socket() as taken:
        # Bound, not listening: nobody else gets the port, and connections are refused.
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        client = connect_as_user(
            str(kubeconfig(tmp_path / "k", f"http://user:secret@127.0.0.1:{port}", "a"))
        )
        with pytest.raises(ClusterError) as raised:
            client.get("/version")
    assert str(raised.value) == f"API server 127.0.0.1:{port} unreachable: Connection refused"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (urllib3.exceptions.ConnectTimeoutError("slow"), "no answer in time"),
        (TimeoutError(), "no answer in time"),
        (
            urllib3.exceptions.ProtocolError(
                "reset", ConnectionResetError(104, "Connection reset by peer")
            ),
            "reset by",
        ),
        (urllib3.exceptions.HTTPError("odd"), "HTTPError"),
    ],
)
def test_the_cause_is_in_words(error: Exception, cause: str) -> None:
    assert cause in client._describe(error)


def test_a_command_goes_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with StandInApi(tmp_path) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
        run(["doctor", "--before-install", "--context", "demo"])
    said = capsys.readouterr()
    assert "Kubernetes 1.37" in said.out, said.err


def test_a_pods_requests_rest_as_briefly_as_any(tmp_path: Path) -> None:
    Server(tmp_path)
    environment = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    connected = connect_in_pod(tmp_path, environment, lambda _verb: None)
    assert connected.pool.connection_pool_kw["retries"] is client.RETRIES
