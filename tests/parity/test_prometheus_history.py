"""A real Prometheus gives `roost headroom` the weeks before an install; its own errors are said as
they are.
"""

import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from roost.__main__ import main
from roost_core.placement.headroom_history import read_history
from tests.harness.fixtures import require_binary
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import RunFolder
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e
DAYS = 10
NOW = int(time.time()) // 86_400 * 86_400
BEGINS = [
    NOW - day * 86_400 + 9 * 3600 + person for day in range(DAYS, 0, -1) for person in range(40)
]
VALUES = "placeholders: [{name: default, replicas: 0, learn: {min: 0, max: 60, timeZone: UTC}}]"


def open_metrics() -> str:
    """Forty people at nine each day, for an hour, of hub `jhub`; of hub `thin` the number of
    servers alone.
    """
    lines = ["# TYPE kube_pod_created gauge"]
    for number, begin in enumerate(BEGINS):
        labels = f'namespace="jhub",pod="jupyter-{number}"'
        lines += [
            f"kube_pod_created{{{labels}}} {begin} {at}" for at in range(begin, begin + 3600, 60)
        ]
    always = range(NOW - DAYS * 86_400, NOW, 60)
    lines += [
        f'kube_pod_created{{namespace="jhub",pod="hub-1"}} {NOW - 9**9} {at}' for at in always
    ]
    lines.append("# TYPE jupyterhub_running_servers gauge")
    for at in always:
        lines.append(
            f'jupyterhub_running_servers{{namespace="thin"}} {40 * (9 <= at % 86_400 // 3600 < 10)}'
            f" {at}"
        )
    return "\n".join([*lines, "# EOF\n"])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program, promtool = require_binary("prometheus"), require_binary("promtool")
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "past").write_text(open_metrics())
    (folder / "prometheus.yaml").write_text("{}")
    made = ["tsdb", "create-blocks-from", "openmetrics", str(folder / "past"), str(folder / "data")]
    subprocess.run([str(promtool), *made], check=True, capture_output=True)
    run = RunFolder()
    try:
        address = f"{LOOPBACK}:{ReservedPort().release()}"
        flags = ["--storage.tsdb.retention.time=90d", f"--web.listen-address={address}"]
        files = [
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
        ]
        process = run.start("prometheus", program, [*files, *flags])
        wait_until(
            lambda: "ready to receive" in process.tail(),
            60,
            "Prometheus to be ready",
            explain=process.tail,
        )
        yield f"http://{address}"
    finally:
        run.close()


def headroom(folder: Path, source: str, namespace: str = "jhub") -> int:
    (folder / "values.yaml").write_text(VALUES)
    given = ["-f", str(folder / "values.yaml"), "-n", namespace, "--prometheus", source]
    return main(["headroom", *given, "--config-map"])


@pytest.mark.parametrize(
    ("hub", "said"),
    [("jhub", "400 servers in 10.0 days"), ("thin", "from jupyterhub_running_servers")],
)
def test_what_a_prometheus_knows_becomes_the_controllers_history(
    prometheus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], hub: str, said: str
) -> None:
    assert headroom(tmp_path, prometheus, hub) == 0
    printed = capsys.readouterr()
    assert said in printed.err
    history = read_history(yaml.safe_load(printed.out)["data"]["default"])
    # A last sample stands for five minutes more.
    assert 0 <= history.seen_minutes - DAYS * 1440 <= 5
    grew = [
        history.growth((NOW - day * 86_400) // 60 + 9 * 60 - 2, 5) for day in range(1, DAYS + 1)
    ]
    assert grew == [40] * DAYS


def test_what_is_no_prometheus_is_said(
    prometheus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Login(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((LOOPBACK, 0), Login) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cases = {
            f"http://{LOOPBACK}:{server.server_address[1]}": (
                "found 401 Unauthorized, expected an API without a login"
            ),
            f"{prometheus}/graph": "expected Prometheus' JSON of /api/v1/query_range",
            f"http://{LOOPBACK}:{ReservedPort().release()}": "Connection refused",
            "gopher://x": "expected Prometheus' JSON",
        }
        for source, said in cases.items():
            assert headroom(tmp_path, source) == 2
            assert said in capsys.readouterr().err
        server.shutdown()
    assert headroom(tmp_path, prometheus, "nowhere") == 2
    assert (
        "found those of thin alone, expected some of namespace nowhere" in capsys.readouterr().err
    )
