"""Whatever a hub's admin or a Prometheus writes neither reaches a terminal nor fills the memory."""

from __future__ import annotations

import bz2
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from roost import __main__ as entry
from roost_lab.commands import rehearse

ESCAPES = "\x1b]0;pwned\x07\x1b[2J\x1b[H\x9b31m"
NAMES = json.dumps(ESCAPES)
ESCAPED = f"- {{name: {NAMES}, people: 5, start: '2027-01-01T10:00', timeZone: UTC}}\n"
BOMB = (
    "- {name: a, note: &a0 [z, z, z, z, z, z, z, z, z]}\n"
    + "".join(
        f"- {{name: n{level}, note: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]}}\n"
        for level in range(1, 12)
    )
    + "- {name: *a11}\n"
)


@contextmanager
def answering(body: bytes, **headers: str) -> Iterator[str]:
    """A server on loopback that gives this body for whatever is asked; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_missing = self.path.endswith("/roost-release")
            self.send_response(404 if is_missing else 200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _kubeconfig(folder: Path, address: str) -> Path:
    config: Any = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "chem"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


@pytest.mark.parametrize("text", [ESCAPED, BOMB, "[" * 120_000, "- " * 120_000])
def test_a_hub_admins_bookings_are_listed_or_refused_in_plain_text(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        "kind": "ConfigMap",
        "metadata": {"name": "roost-events", "namespace": "chem", "resourceVersion": "1"},
        "data": {"events.yaml": text},
    }
    with answering(json.dumps(found).encode()) as address:
        config = _kubeconfig(tmp_path, address)
        code = entry.main(
            ["book", "--kubeconfig", str(config), "--config-map", "roost-events", "-n", "chem"]
        )
    printed = capsys.readouterr()
    assert code == (0 if text is ESCAPED else 2), printed.err
    for stream in (printed.out, printed.err):
        assert stream.replace("\n", "").isprintable()
    assert printed.out or printed.err


def test_a_prometheus_label_reaches_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    metric = {"__name__": "kube_pod_created", "pod": "jupyter-a", "namespace": ESCAPES}
    series = {"metric": metric, "values": [[1790000000, "1790000000"]]}
    answer = {"data": {"resultType": "matrix", "result": [series]}}
    with answering(json.dumps(answer).encode()) as address:
        code = entry.main(["rehearse", "--past", address, "-n", "jhub"])
    said = capsys.readouterr().err
    assert code == 2
    assert said.replace("\n", "").isprintable()


def test_an_answer_that_unpacks_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("roost.commands.prometheus._MOST_BYTES", 2**22)
    packed = gzip.compress(b" " * 2**26)
    with answering(packed, **{"Content-Encoding": "gzip"}) as address:
        code = entry.main(["rehearse", "--past", address, "-n", "jhub"])
    assert (code, "found an answer of more than 4 MiB" in capsys.readouterr().err) == (2, True)


def test_a_past_that_unpacks_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rehearse, "MOST_UNPACKED_BYTES", 2**22)
    file = tmp_path / "past.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n" * 2**26))
    code = entry.main(["rehearse", "--past", str(file), "-n", "jhub"])
    assert (code, "found more than 4 MiB once unpacked" in capsys.readouterr().err) == (2, True)


def test_a_past_that_another_program_packed_is_told_with_the_command_that_unpacks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "past.bz2"
    file.write_bytes(bz2.compress(b"{}\n"))
    code = entry.main(["rehearse", "--past", str(file), "-n", "jhub"])
    said = capsys.readouterr().err
    assert code == 2
    assert f"{file}: found bzip2, expected text or gzip. Unpack it: bzip2 -dc FILE > past" in said
