"""A running webhook under 100,000 requests of every kind of wrong: never a 5xx, never a traceback, memory flat."""

import contextlib
import copy
import json
import random
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests import builders
from tests.e2e.lone_webhook import LoneWebhook
from tests.harness.waiting import wait_until
from tests.recorded_data import PODS

REQUESTS = 100_000
WARM_UP = 20_000
CONNECTIONS = 4
VARIANTS = 3_000
# What a long-lived Python process may still move between two looks: pages of the allocator, metrics' first samples.
GROWTH_KIB = 4 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LoneWebhook]:
    with LoneWebhook(tmp_path, "--drain-seconds=0") as running:
        wait_until(lambda: running.page("/readyz")[0] == 200, 30, "the webhook to be ready", explain=running.log)
        yield running


def resident_kib(server: LoneWebhook) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def mutate(chance: random.Random, node: Any, depth: int = 0) -> Any:
    """A JSON document with one thing in it that doesn't belong."""
    odd: list[Any] = [None, "", 0, -1, 1e308, True, [], {}, [[]], {"": None}, "\u0000", "x" * 300, {"matchLabels": 7}]
    if isinstance(node, dict) and node and chance.random() < 0.9 - depth * 0.08:
        key = chance.choice(sorted(node))
        if chance.random() < 0.1:
            return {other: value for other, value in node.items() if other != key}
        return {**node, key: mutate(chance, node[key], depth + 1)}
    if isinstance(node, list) and node and chance.random() < 0.9 - depth * 0.08:
        index = chance.randrange(len(node))
        return [*node[:index], mutate(chance, node[index], depth + 1), *node[index + 1 :]]
    return chance.choice(odd)


def request(body: bytes, method: str = "POST", path: str = "/mutate", content_type: str = "application/json") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def variants(chance: random.Random) -> list[bytes]:
    """Requests with something wrong at each layer: bytes, JSON, review, pod, HTTP; and some right ones."""
    pods = [
        builders.user_pod(),
        builders.build_pod(),
        builders.placeholder_pod(),
        builders.user_pod(
            affinity=builders.requires_nodes({}, {"matchExpressions": [builders.expression("zone", "a")]})
        ),
        builders.build_pod(affinity=builders.prefers_nodes(builders.sticky_term("node-1"))),
    ]
    pods += [json.loads(path.read_text()) for path in sorted(PODS.glob("*.json"))]
    reviews = [json.loads(builders.review(pod)) for pod in pods]
    made: list[bytes] = []
    while len(made) < VARIANTS:
        whole = copy.deepcopy(chance.choice(reviews))
        kind = chance.random()
        if kind < 0.1:
            made.append(request(json.dumps(whole).encode()))
        elif kind < 0.6:
            whole["request"]["object"] = mutate(chance, whole["request"]["object"])
            made.append(request(json.dumps(whole).encode()))
        elif kind < 0.75:
            made.append(request(json.dumps(mutate(chance, whole)).encode()))
        elif kind < 0.85:
            text = json.dumps(whole).encode()
            made.append(request(text[: chance.randrange(len(text))]))
        elif kind < 0.92:
            damaged = bytearray(json.dumps(whole).encode())
            for _ in range(chance.randrange(1, 20)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            made.append(request(bytes(damaged)))
        elif kind < 0.94:
            made.append(request(b"[" * chance.choice([10, 1000, 200_000])))
        elif kind < 0.96:
            made.append(
                request(json.dumps(whole).encode(), content_type=chance.choice(["text/plain", "", "application/xml"]))
            )
        elif kind < 0.98:
            made.append(request(b"", method=chance.choice(["GET", "PUT", "DELETE", "PATCH"])))
        else:
            made.append(request(b"{}", path=chance.choice(["/", "/mutate/", "/../etc", "/%ff", "/metrics"])))
    return made


def read_answer(connection: ssl.SSLSocket) -> tuple[int, bytes]:
    """Status and body of one answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return 0, data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    wanted = int(lengths[0]) if lengths else 0
    while len(body) < wanted:
        more = connection.recv(65536)
        if not more:
            break
        body += more
    return int(head.split(b" ", 2)[1]), body


def send_all(server: LoneWebhook, requests: list[bytes], count: int) -> dict[int, int]:
    """Send `count` requests on one kept connection, a new one where the server closes; statuses by number."""
    statuses: dict[int, int] = {}
    connection = server.connect()
    for index in range(count):
        try:
            connection.sendall(requests[index % len(requests)])
            status, body = read_answer(connection)
        except (OSError, ssl.SSLError):
            status, body = 0, b""
        if status == 0:
            connection.close()
            connection = server.connect()
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, body[:500]
        assert b"Traceback" not in body
        assert b"made-up" not in body
    connection.close()
    return statuses


def test_100000_wrong_requests_bring_no_5xx_no_traceback_and_no_growth(server: LoneWebhook) -> None:
    chance = random.Random(20261121)
    requests = variants(chance)

    def run(count: int) -> dict[int, int]:
        total: dict[int, int] = {}
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for statuses in pool.map(lambda _: send_all(server, requests, count // CONNECTIONS), range(CONNECTIONS)):
                for status, number in statuses.items():
                    total[status] = total.get(status, 0) + number
        return total

    run(WARM_UP)
    before_kib = resident_kib(server)
    statuses = run(REQUESTS - WARM_UP)
    grown_kib = resident_kib(server) - before_kib
    assert statuses.get(200, 0) > REQUESTS / 3
    assert statuses.get(400, 0) > 0
    assert statuses.get(0, 0) == 0, f"connections cut: {statuses}"
    assert grown_kib < GROWTH_KIB, f"{grown_kib} KiB more after {REQUESTS - WARM_UP} requests"
    assert server.process.poll() is None
    assert "0123456789abcdef0123456789abcdef" not in server.log_path.read_text(errors="replace")


@pytest.mark.parametrize(("size", "status"), [(1_000_000, 400), (2_500_000, 413), (20_000_000, 413)])
def test_a_large_body_is_read_or_refused_by_its_size(server: LoneWebhook, size: int, status: int) -> None:
    with server.connect() as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused while we still send
            connection.sendall(request(b" " * size))
        assert read_answer(connection)[0] == status
