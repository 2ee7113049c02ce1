"""What anybody who reaches the ports can do to a replica: not to its memory, its probes or the
others' reviews.
"""

import contextlib
import http.client
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from tests.builders import (
    IMAGE,
    build_pod,
    expression,
    held,
    placeholder_pod,
    requires_nodes,
    user_pod,
)
from tests.e2e.lone_webhook import LoneWebhook, review_of
from tests.harness.ports import LOOPBACK
from tests.harness.waiting import wait_until
from tools.stand_in_api import StandInApi

NODES = 300
HUNDRED_MS = 0.1
# A megabyte and a half: what etcd takes of an object, and what an API server would send at most.
BYTES = 1_500_000


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneWebhook]:
    folder = tmp_path_factory.mktemp("webhook")
    with StandInApi(folder) as api, LoneWebhook(folder, kubeconfig=api.kubeconfig) as running:
        for index in range(NODES):
            name = f"node-{index}"
            labels = {"kubernetes.io/hostname": name, **held(IMAGE), "pool": "user"}
            status = {"conditions": [{"type": "Ready", "status": "True"}]}
            api.put(
                "/api/v1/nodes",
                {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status},
            )
        wait_until(
            lambda: running.page("/readyz")[0] == 200,
            30,
            "the webhook to know its nodes",
            explain=running.log,
        )
        yield running


def user(*images: str, **spec: Any) -> bytes:
    return review_of(user_pod(*images, **spec))


def terms(count: int) -> JSONObject:
    return requires_nodes(
        *[
            {"matchExpressions": [expression(f"k{index}", operator="Exists")]}
            for index in range(count)
        ]
    )


def hostile_bodies(number: int) -> dict[str, bytes]:
    """One of each kind; `number` makes each different from those before."""
    one, padding = f"n{number}", "x" * 900_000
    dear = requires_nodes(
        {"matchExpressions": [*[expression("pool", "user")] * 100, expression(one)]}
    )
    never = requires_nodes({"matchExpressions": [expression(one, "x")]})
    resources = {"requests": {f"a/{index}": "1" for index in range(50_000)}}
    return {
        "25,000 required terms": user(affinity=terms(25_000))[:-1] + b" " * 9 + b"}",
        "4,000 required terms": user(affinity=terms(4000)),
        "128 required terms": user(affinity=terms(128), nodeSelector={one: "x"}),
        "dear terms": user(affinity=dear),
        "dear builds": review_of(build_pod(one + padding[:4000], affinity=never)),
        "lists": user()[:-2] + b',"more":[' + b"[]," * 300_000 + b"0]}}",
        "objects": user()[:-2] + b',"more":[' + b'{"":0},' * 140_000 + b"0]}}",
        "containers": user(*[IMAGE] * 9000),
        "tolerations": user(tolerations=[{"key": str(index)} for index in range(40_000)]),
        "resources": user(containers=[{"image": IMAGE, "resources": resources}]),
        "a long image": user(one + padding),
        "a long label": review_of(
            placeholder_pod({"hub.jupyter.org/placeholder-set": one + padding})
        ),
        "a long repository": review_of(build_pod(one + padding)),
        "a long name": review_of(build_pod(name=one + padding)),
        "a body beyond the bound": user(padding=padding + "x" * (BYTES - len(padding))),
        "a body that nobody can name": b"[" * BYTES,
    }


# In a process of its own: the bodies made here hold this one's interpreter for longer than what is
# measured.
PROBER = """
import sys, time, urllib.request
while True:
    started = time.monotonic()
    with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
        assert answer.status == 200
    print(time.monotonic() - started, flush=True)
    time.sleep(0.005)
"""


@contextlib.contextmanager
def livez_watch(webhook: LoneWebhook) -> Iterator[list[float]]:
    """Ask /livez all the time; afterwards the list has how long each answer took."""
    seconds: list[float] = []
    with tempfile.TemporaryFile("w+") as output:
        url = f"http://{LOOPBACK}:{webhook.metrics_port}/livez"
        process = subprocess.Popen([sys.executable, "-c", PROBER, url], stdout=output)
        try:
            yield seconds
            assert process.poll() is None, "the prober failed"
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        seconds += [float(line) for line in output if line.endswith("\n")]


def crowd() -> float:
    """How many times longer everything takes because others use the machine, too: 1 on one that is
    free.
    """
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def resident_mib(webhook: LoneWebhook, field: str = "VmRSS") -> float:
    status = Path(f"/proc/{webhook.process.pid}/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) / 1024


def post_all(webhook: LoneWebhook, number: int) -> dict[str, tuple[int, float, int]]:
    found = {}
    for name, body in hostile_bodies(number).items():
        connection = webhook.client()
        started = time.monotonic()
        connection.request("POST", "/mutate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        found[name] = (answer.status, time.monotonic() - started, len(text))
        connection.close()
    return found


def test_hostile_reviews_cost_no_memory_no_time_and_no_probe(webhook: LoneWebhook) -> None:
    webhook.post(review_of())
    before = resident_mib(webhook)
    first = post_all(webhook, 0)
    # Whatever can be named is admitted, and the answer is short.
    assert {name: status for name, (status, _, _) in first.items() if status != 200} == {
        "a body that nobody can name": 413
    }
    assert max(size for _, _, size in first.values()) < 256 * 1024
    with livez_watch(webhook) as answers:
        rounds = [post_all(webhook, number) for number in range(1, 8)]
    assert sum(map(len, rounds)) >= 100
    slowest = {name: max(found[name][1] for found in rounds) for name in first}
    assert max(slowest.values()) < 0.5 * crowd(), slowest
    assert len(answers) > 100
    assert max(answers) < HUNDRED_MS * crowd(), (sorted(answers)[-5:], slowest)
    assert resident_mib(webhook) < before * 1.1, before
    assert resident_mib(webhook, "VmHWM") < 128
    assert webhook.post(review_of())[1]["patchType"] == "JSONPatch"
    assert 'roost_webhook_reviews_beyond_bounds_total{bound="terms"}' in webhook.page("/metrics")[1]


def test_senders_of_any_kind_that_dawdle_are_cut_after_30_seconds_and_scrapers_after_two(
    webhook: LoneWebhook,
) -> None:
    head = b"POST /mutate HTTP/1.1\r\nContent-Type: application/json\r\n"
    begun = {
        "headers": b"POST /mutate HTTP/1.1\r\nX: y",
        "a plain review": head + b"Content-Length: 100000\r\n\r\n{",
        "a chunked review": head + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        "another page": b"POST /nothing HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{",
    }
    started = time.monotonic()
    senders: dict[str, socket.socket] = {name: webhook.connect() for name in begun}
    scraper = senders["a scrape"] = socket.create_connection((LOOPBACK, webhook.metrics_port))
    for name, connection in senders.items():
        connection.sendall(begun.get(name, b"GET /metrics HTTP/1.1\r\nX: y"))
    ended: dict[str, float] = {}
    while senders and time.monotonic() - started < 45:
        for name, connection in list(senders.items()):
            # A byte every half second: each alone is quick enough.
            with contextlib.suppress(TimeoutError, ssl.SSLWantReadError):
                try:
                    connection.sendall(b"1" if "chunked" not in name else b"1\r\n1\r\n")
                    connection.settimeout(0.05)
                    if connection.recv(1000) == b"":
                        raise ConnectionResetError
                except TimeoutError:
                    raise
                except OSError:
                    ended[name] = time.monotonic() - started
                    del senders[name]
        time.sleep(0.2)
    scraper.close()
    assert not senders, "still open"
    # On the port of metrics and probes a request has two seconds.
    assert 2 <= ended.pop("a scrape") < 7, ended
    assert all(28 < seconds < 35 for seconds in ended.values()), ended
    assert webhook.post(review_of())[0] == 200


def test_connections_without_end_shut_out_their_own_address_only(webhook: LoneWebhook) -> None:
    kept = webhook.client()
    webhook.post(review_of(), kept)
    flood = []
    for _ in range(600):
        with contextlib.suppress(OSError):
            plain = socket.socket()
            plain.bind(("127.0.0.2", 0))
            plain.settimeout(5)
            plain.connect((LOOPBACK, webhook.port))
            flood.append(plain)
    # The flood holds every place by now; others still come in, and those that were in stay.
    for _ in range(5):
        assert webhook.post(review_of())[0] == 200
    before = kept.sock
    assert webhook.post(review_of(), kept)[0] == 200
    assert kept.sock is before
    for connection in flood:
        connection.close()


def scrape(webhook: LoneWebhook, ended: threading.Event) -> None:
    while not ended.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException):
            webhook.page("/metrics")


def test_a_hundred_scrapes_at_once_leave_reviews_alone(webhook: LoneWebhook) -> None:
    connection, found = webhook.client(), []
    ended = threading.Event()
    threads = [threading.Thread(target=scrape, args=(webhook, ended)) for _ in range(100)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            started = time.monotonic()
            assert webhook.post(review_of(), connection)[0] == 200
            found.append(time.monotonic() - started)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    # The threads of this test share one interpreter with the reviews that it sends, which is most
    # of the time here.
    assert sorted(found)[100] < HUNDRED_MS * crowd()
