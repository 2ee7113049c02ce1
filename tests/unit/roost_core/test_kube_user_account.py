"""Whom a command asks, and as whom; what an unreachable server's message says."""

import json
import socket
import ssl
from pathlib import Path

import pytest
import urllib3

from roost.cli import run
from roost_core.kube import account, client
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user
from tools.stand_in_api import StandInApi


def kubeconfig(path: Path, server: str, *contexts: str, current: str = "") -> Path:
    """A kubeconfig whose contexts lead to `server`/NAME."""
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current or contexts[0],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in contexts],
        "clusters": [{"name": name, "cluster": {"server": f"{server}/{name}"}} for name in contexts],
        "users": [{"name": name, "user": {"token": "t"}} for name in contexts],
    }
    path.write_text(json.dumps(config))
    return path


def host(named: str | None, context: str | None = None, **environment: str) -> str:
    return connect_as_user(named, context, environment).host


def test_a_file_that_is_named_comes_before_the_environment_and_that_before_home(tmp_path: Path) -> None:
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
    with pytest.raises(ClusterError, match=r"can't be used: .*\bc\b"):
        connect_as_user(None, "c", {"KUBECONFIG": both})


def test_in_a_pod_its_own_account_is_used_where_there_is_no_kubeconfig(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)}
    with pytest.raises(ClusterError, match=r"^the pod's service account can't be used: [^.]*\. Give --kubeconfig"):
        host(None, **pod)
    with pytest.raises(ClusterError, match="there is no"):
        host(None, "a", **pod)
    with pytest.raises(ClusterError, match=r"there is no .*/\.kube/config\. Give --kubeconfig FILE\.$"):
        host(None, HOME=str(tmp_path))
    kubeconfig(tmp_path / ".kube" / "config", "http://home", "a")
    assert host(None, **pod) == "http://home/a"


def test_programs_ask_as_the_pod_whatever_a_shell_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "exported", "http://exported", "a")))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ClusterError, match="the pod's service account"):
        account.connect(None)


ODD = {
    "token: secret: [": r"odd.* can't be used: it isn't valid YAML\. Give",
    "just words": r"odd.* can't be used: .*\. Give --kubeconfig",
    "[]": r"odd.* can't be used: .*\. Give --kubeconfig",
    '{"current-context": "a", "contexts": [{"name": "a", "context": "hello"}]}': r"odd.* can't be used: .*\. Give",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("beside", ["", "missing", "good"])
def test_a_file_that_is_no_kubeconfig_is_named(beside: str, odd: str, tmp_path: Path) -> None:
    (tmp_path / "odd").write_text(odd)
    kubeconfig(tmp_path / "good", "http://good", "b")
    with pytest.raises(ClusterError, match=ODD[odd]) as raised:
        host(f"{tmp_path}/odd" + (f":{tmp_path}/{beside}" if beside else ""), "a")
    assert "secret" not in str(raised.value)


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
        client = connect_as_user(str(kubeconfig(tmp_path / "k", f"http://user:secret@127.0.0.1:{port}", "a")))
        with pytest.raises(ClusterError) as raised:
            client.get("/version")
    assert str(raised.value) == f"API server 127.0.0.1:{port} unreachable: Connection refused"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (urllib3.exceptions.ConnectTimeoutError("slow"), "no answer in time"),
        (TimeoutError(), "no answer in time"),
        (urllib3.exceptions.ProtocolError("reset", ConnectionResetError(104, "Connection reset by peer")), "reset by"),
        (urllib3.exceptions.HTTPError("odd"), "HTTPError"),
    ],
)
def test_the_cause_is_in_words(error: Exception, cause: str) -> None:
    assert cause in client._describe(error)


def test_an_untrusted_certificate_is_named() -> None:
    within = ssl.SSLCertVerificationError(1, "odd")
    within.verify_message = "self-signed certificate"
    said = client._describe(urllib3.exceptions.SSLError(within))
    assert said == "API server unreachable: its certificate isn't trusted: self-signed certificate"


def test_a_command_goes_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with StandInApi(tmp_path) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
        run(["doctor", "--before-install", "--context", "demo"])
    said = capsys.readouterr()
    assert "Kubernetes 1.37" in said.out, said.err
