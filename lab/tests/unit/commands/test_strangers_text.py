"""Whatever a hub's admin or a Prometheus writes neither reaches a terminal nor fills the memory."""

from __future__ import annotations

import bz2
import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from roost import __main__ as entry
from roost import cli
from roost.commands import doctor
from roost.doctor.try_pod import Trial
from roost_lab.commands import rehearse
from tools.stand_in_api import StandInApi

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
def answering(body: bytes, status: int = 200, encoding: str = "") -> Iterator[str]:
    """A server on loopback that gives this body for whatever is asked; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_missing = self.path.endswith("/roost-release")
            self.send_response(404 if is_missing else status)
            if encoding:
                self.send_header("Content-Encoding", encoding)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

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


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "[]", "[" * 120_000, '{"events": [1]}', '{"events": {}, "seating": [1]}'),
        *(f'{{"events": {{"maxPeople": {most}}}}}' for most in ('"x"', "1e999", "9" * 4000)),
    ],
)
def test_what_a_hubs_admin_calls_a_release_is_refused_in_a_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a hub's own namespace, its admin may write a ConfigMap with the name of a release's."""
    about = {"name": "roost-release", "namespace": "chem"}
    with StandInApi(tmp_path) as api:
        api.put("/api/v1/configmaps", {"metadata": about, "data": {"release.json": text}})
        options = ["--kubeconfig", str(api.kubeconfig), "-n", "chem"]
        code = entry.main(["book", "--config-map", "roost-events", *options])
    said = capsys.readouterr().err
    assert code == 2
    assert said.startswith("ConfigMap chem/roost-release, ")
    assert said.count("\n") == 1
    assert len(said) < 200


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
    with answering(packed, encoding="gzip") as address:
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


@pytest.mark.parametrize(
    "said", ["rehearse -n jhub --past FILE", "records import FILE --database DATABASE"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_no_text_is_packed_to_is_read_no_further(
    said: str, encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "packed.gz"
    file.write_bytes(gzip.compress((" " * 2**25).encode(encoding)))
    names = {"FILE": str(file), "DATABASE": str(tmp_path / "records.db")}
    code = entry.main([names.get(word, word) for word in said.split()])
    said = capsys.readouterr().err
    assert code == 2
    assert "compressed data of which more than 100 times as much comes" in said
    assert "unpack it yourself" in said


def test_a_past_that_another_program_packed_is_told_with_the_command_that_unpacks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "past.bz2"
    file.write_bytes(bz2.compress(b"{}\n"))
    code = entry.main(["rehearse", "--past", str(file), "-n", "jhub"])
    said = capsys.readouterr().err
    assert code == 2
    assert f"{file}: found bzip2, expected text or gzip. Unpack it: bzip2 -dc FILE > past" in said


# Each command that reads what others write, with FILE in place of what is read, and a file of the
# kind that it reads besides.
READERS: Final = {
    "import": ["import FILE", "import VALUES --quotas FILE"],
    "validate": [
        "validate -f FILE",
        "validate -f VALUES --quotas FILE",
        "validate -f VALUES --pod FILE",
    ],
    "render": ["render -f FILE --summary"],
    "diff": ["diff VALUES FILE"],
    "doctor": ["doctor --now --kubeconfig FILE", "doctor --pod FILE --kubeconfig FILE"],
    "images": ["images -f FILE"],
    "headroom": [
        "headroom -f VALUES --days 1 --history FILE",
        "headroom -f VALUES --days 1 --launches FILE",
        "headroom -f VALUES --days 1 --prometheus FILE",
        "headroom -f VALUES --days 1 --quotas FILE",
    ],
    "top": ["top --once --settings FILE --kubeconfig FILE"],
    "view": ["view --live --kubeconfig FILE"],
    "records": ["records import FILE --database DATABASE"],
    "simulate": ["simulate --policy roost --seeds 1 --trace FILE"],
    "rehearse": ["rehearse -n jhub --past FILE"],
    "book": ["book --zone UTC --timetable FILE", "book --calendar FILE"],
}
# These read what Roost or the operator wrote. Of why and report: test_recorder_why.py,
# test_report.py.
OTHERS: Final = {
    *("webhook", "controllers", "seating", "cleanup", "record"),
    *("help", "version", "completion", "why", "report"),
}
ESCAPED_OBJECTS: Final = f"""\
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: {NAMES}, metadata: {{name: {NAMES}, namespace: {NAMES}}}}}
- apiVersion: v1
  kind: ResourceQuota
  metadata: {{name: {NAMES}, namespace: default}}
  spec: {{hard: {{pods: "0", {NAMES}: "1"}}}}
"""
ESCAPED_VALUES: Final = f"""\
{NAMES}: {NAMES}
singleuser: {{image: {{name: {NAMES}, tag: {NAMES}}}, nodeSelector: {{{NAMES}: {NAMES}}}}}
"""
UTF16_PACKED: Final = gzip.compress(("{}\n" * 1000).encode("utf-16"))
HOSTILE: Final[dict[str, bytes]] = {
    "escapes in objects": ESCAPED_OBJECTS.encode(),
    "escapes in values": ESCAPED_VALUES.encode(),
    "escapes in a pod": json.dumps(
        {
            "kind": "Pod",
            "metadata": {"name": ESCAPES, "labels": {ESCAPES: ESCAPES}},
            "spec": {"containers": [{"name": ESCAPES, "image": ESCAPES}]},
        }
    ).encode(),
    "aliases": BOMB.encode(),
    "aliases in objects": f"items:\n{BOMB}".encode(),
    "brackets": b"[" * 120_000,
    "dashes": b"- " * 120_000,
    "brackets in objects": b"items: " + b"[" * 120_000,
    "dashes in objects": b"items:\n" + b"- " * 120_000,
    "deep JSON": b'{"a":' * 120_000 + b"1" + b"}" * 120_000,
    "no UTF-8": b'kind: "\xff\xfe\xc3\x28\x1b[2J"\n',
    "gzip": gzip.compress(b" " * 2**26),
    "gzip cut in its header": gzip.compress(b"x")[:5],
    "UTF-16 in gzip, cut": UTF16_PACKED[: len(UTF16_PACKED) // 2],
    "gzip in gzip, cut": gzip.compress(gzip.compress(b"x")[:5]),
}


@pytest.mark.parametrize("said", [line for lines in READERS.values() for line in lines])
def test_no_command_is_harmed_by_what_it_reads(
    said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    values = tmp_path / "values.yaml"
    learns = "{min: 0, max: 5, timeZone: UTC}"
    values.write_text(f"placeholders: [{{name: default, replicas: 1, learn: {learns}}}]\n")
    read = tmp_path / "read"
    names = {"VALUES": values, "FILE": read, "DATABASE": tmp_path / "records.db"}
    for kind, content in HOSTILE.items():
        read.write_bytes(content)
        began = time.process_time()
        code = entry.main([str(names.get(word, word)) for word in said.split()])
        printed = capfd.readouterr()
        assert code in (0, 1, 2), kind
        for stream in (printed.out, printed.err):
            assert stream.replace("\n", "").isprintable(), kind
            assert "Traceback" not in stream
        assert time.process_time() - began < 10, kind


def test_each_command_is_known_to_read_what_others_write_or_not() -> None:
    named = {name for group in cli.groups() for name in group.commands}
    assert named == READERS.keys() | OTHERS


def test_what_a_registry_or_a_stranger_says_of_a_pod_reaches_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kubernetes takes any text as an Event's message, or as a reason in a pod's status."""
    about = {"namespace": "jhub", "creationTimestamp": "2026-11-30T01:00:00Z"}
    waiting = {"reason": "ErrImagePull", "message": f"the registry says {ESCAPES}"}
    with StandInApi(tmp_path) as api:
        for name, state in (("pulls", {"waiting": waiting}), ("mounts", {})):
            body = {
                "metadata": {**about, "name": name, "uid": name},
                "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]},
                "status": {
                    "phase": "Pending",
                    "containerStatuses": [{"name": "c", "image": "i", "state": state}],
                },
            }
            api.put("/api/v1/pods", body)
        event = {
            "metadata": {**about, "name": "mounts.1", "uid": "1"},
            "involvedObject": {"kind": "Pod", "name": "mounts", "uid": "mounts"},
            "type": "Warning",
            "reason": "FailedMount",
            "message": f"nothing is there: {ESCAPES}",
            "lastTimestamp": "2026-11-30T01:01:00Z",
        }
        api.put("/api/v1/events", event)
        options = ["--namespace", "jhub", "--kubeconfig", str(api.kubeconfig)]
        code = entry.main(["doctor", "--now", *options])
    printed = capsys.readouterr().out
    assert code == 0
    assert "the registry says" in printed
    assert "nothing is there" in printed
    assert printed.replace("\n", "").isprintable()


@pytest.mark.parametrize("revision", ["", ESCAPES])
def test_what_a_tried_pod_says_reaches_no_terminal(
    revision: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Labels come from the pod's file, the rest from what the cluster made of it."""
    spec = {"schedulerName": ESCAPES}
    stored = {"metadata": {"labels": {ESCAPES: ESCAPES}}, "spec": spec}
    trial = Trial(revision, ESCAPES, stored)
    monkeypatch.setattr(doctor, "try_until_placed", lambda *_: trial)
    file = tmp_path / "pod.json"
    file.write_text(json.dumps({"metadata": {"labels": {"a": ESCAPES}}, "spec": spec}))
    untouched = {"metadata": {}, "spec": spec}
    with answering(json.dumps(untouched).encode()) as address:
        config = _kubeconfig(tmp_path, address)
        code = entry.main(["doctor", "--pod", str(file), "--kubeconfig", str(config)])
    printed = capsys.readouterr()
    told = printed.out if revision else printed.err
    assert code == (0 if revision else 1)
    assert told.startswith("A pod with a=")
    assert told.count("pwned") == (5 if revision else 2)
    assert told.replace("\n", "").isprintable()


@pytest.mark.parametrize("said", ["doctor --pod {}", "doctor --now", "doctor -f VALUES"])
def test_why_an_api_server_refuses_a_command_reaches_no_terminal(
    said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Webhooks of others choose the words of a refusal."""
    values = tmp_path / "values.yaml"
    values.write_text("placeholders: []\n")
    words = [str(values) if word == "VALUES" else word for word in said.split()]
    answer = {"kind": "Status", "message": f"the server says {ESCAPES}"}
    with answering(json.dumps(answer).encode(), 403) as address:
        config = _kubeconfig(tmp_path, address)
        code = entry.main([*words, "--kubeconfig", str(config)])
    told = capsys.readouterr().err
    assert code == 2
    assert "the server says" in told
    assert "pwned" in told
    assert told.replace("\n", "").isprintable()


def test_a_taint_of_a_strangers_node_reaches_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("placeholders: [{name: default, replicas: 1}]\n")
    with StandInApi(tmp_path) as api:
        node = {
            "metadata": {"name": "a", "creationTimestamp": "2026-11-30T01:00:00Z"},
            "spec": {"taints": [{"key": ESCAPES, "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        api.put("/api/v1/nodes", node)
        options = ["-f", str(values), "--kubeconfig", str(api.kubeconfig)]
        entry.main(["doctor", "--before-install", *options])
    printed = capsys.readouterr().out
    assert "nothing tolerates the taint" in printed
    assert printed.replace("\n", "").isprintable()


def test_what_an_imported_history_says_reaches_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"namespace": "jhub", "creationTimestamp": "2026-11-30T02:00:00Z"}
    pod = {
        "kind": "Pod",
        "metadata": {
            **about,
            "name": "jupyter-ada",
            "uid": "1",
            "labels": {"component": "singleuser-server", "release": ESCAPES},
        },
        "spec": {"containers": [{"name": "c", "image": f"x{ESCAPES}"}]},
        "status": {"phase": "Pending"},
    }
    event = {
        "kind": "Event",
        "metadata": {**about, "name": "e", "uid": "2"},
        "involvedObject": {"kind": "Pod", "namespace": "jhub", "name": "jupyter-ada", "uid": "1"},
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": f"0/3 nodes are available: 3 Insufficient cpu {ESCAPES}.",
        "firstTimestamp": "2026-11-30T02:00:05Z",
        "lastTimestamp": "2026-11-30T02:00:05Z",
        "source": {"component": "default-scheduler"},
    }
    file, database = tmp_path / "history.json", str(tmp_path / "history.db")
    file.write_text(json.dumps({"kind": "List", "items": [pod, event]}))
    assert entry.main(["records", "import", str(file), "--database", database]) == 0
    for said in ("why jhub/jupyter-ada", "report", "report --format text", "report --format json"):
        assert entry.main([*said.split(), "--database", database]) == 0, said
        printed = capsys.readouterr()
        assert "Insufficient" in printed.out or "text" in said, said
        for stream in (printed.out, printed.err):
            assert not {*"\x07\x1b\x9b"} & {*stream}, said
