"""A running webhook under 100,000 requests of every kind of wrong: never a 5xx, never a traceback,
memory flat.
"""

import json
import random
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests import builders
from tests.e2e.lone_webhook import LoneWebhook
from tests.harness.waiting import wait_until
from tests.recorded_data import PODS

REQUESTS = 100_000
WARM_UP = 20_000
CONNECTIONS = 4
VARIANTS = 3_000
# What a long-lived Python process may still move between two looks: pages of the allocator,
# metrics' first samples.
GROWTH_KIB = 4 * 1024


def resident_kib(server: LoneWebhook) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def mutate(chance: random.Random, node: Any, depth: int = 0) -> Any:
    """A JSON document with one thing in it that doesn't belong."""
    odd: list[Any] = [
        None,
        "",
        0,
        -1,
        1e308,
        True,
        [],
        {},
        [[]],
        {"": None},
        "\u0000",
        "x" * 300,
        {"matchLabels": 7},
    ]
    if isinstance(node, dict) and node and chance.random() < 0.9 - depth * 0.08:
        key = chance.choice(sorted(node))
        if chance.random() < 0.1:
            return {other: value for other, value in node.items() if other != key}
        return {**node, key: mutate(chance, node[key], depth + 1)}
    if isinstance(node, list) and node and chance.random() < 0.9 - depth * 0.08:
        index = chance.randrange(len(node))
        return [*node[:index], mutate(chance, node[index], depth + 1), *node[index + 1 :]]
    return chance.choice(odd)


def request(
    body: bytes, method: str = "POST", path: str = "/mutate", content_type: str = "application/json"
) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length:"
        f" {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def variants(chance: random.Random) -> list[bytes]:
    """Requests with something wrong at each layer: bytes, JSON, review, pod, HTTP; and some right
    ones.
    """
    pods = [builders.user_pod(), builders.build_pod(), builders.placeholder_pod()]
    pods += [json.loads(path.read_text()) for path in sorted(PODS.glob("*.json"))]
    reviews = [json.loads(builders.review(pod)) for pod in pods]

    def variant() -> bytes:
        whole, kind = chance.choice(reviews), chance.random()
        text = json.dumps(whole).encode()
        if kind < 0.1:
            return request(text)
        if kind < 0.6:
            odd = mutate(chance, whole["request"]["object"])
            return request(
                json.dumps({**whole, "request": {**whole["request"], "object": odd}}).encode()
            )
        if kind < 0.75:
            return request(json.dumps(mutate(chance, whole)).encode())
        if kind < 0.85:
            return request(text[: chance.randrange(len(text))])
        if kind < 0.92:
            damaged = bytearray(text)
            for _ in range(chance.randrange(1, 20)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            return request(bytes(damaged))
        if kind < 0.94:
            return request(b"[" * chance.choice([10, 1000, 200_000]))
        if kind < 0.96:
            return request(text, content_type=chance.choice(["text/plain", "", "application/xml"]))
        if kind < 0.98:
            return request(b"", method=chance.choice(["GET", "PUT", "DELETE", "PATCH"]))
        return request(b"{}", path=chance.choice(["/", "/mutate/", "/../etc", "/%ff", "/metrics"]))

    return [variant() for _ in range(VARIANTS)]


def read_answer(connection: ssl.SSLSocket) -> tuple[int, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return 0, data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1]
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    wanted = int(lengths[0]) if lengths else 0
    while len(body) < wanted:
        more = connection.recv(65536)
        if not more:
            break
        body += more
    return int(head.split(b" ", 2)[1]), body


def send_all(server: LoneWebhook, requests: list[bytes], count: int) -> Counter[int]:
    """Send `count` requests on one kept connection, a new one where the server closes; statuses by
    number.
    """
    statuses: Counter[int] = Counter()
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
        statuses[status] += 1
        assert status < 500, body[:500]
        assert b"Traceback" not in body
        assert b"made-up" not in body
    connection.close()
    return statuses


def test_100000_wrong_requests_bring_no_5xx_no_traceback_and_no_growth(tmp_path: Path) -> None:
    with LoneWebhook(tmp_path, "--drain-seconds=0") as server:
        wait_until(
            lambda: server.page("/readyz")[0] == 200,
            30,
            "the webhook to be ready",
            explain=server.log,
        )
        check(server)


def check(server: LoneWebhook) -> None:
    requests = variants(random.Random(20261121))

    def run(count: int) -> Counter[int]:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            parts = pool.map(
                lambda _: send_all(server, requests, count // CONNECTIONS), range(CONNECTIONS)
            )
            return sum(parts, Counter())

    run(WARM_UP)
    before_kib = resident_kib(server)
    statuses = run(REQUESTS - WARM_UP)
    grown_kib = resident_kib(server) - before_kib
    assert statuses[200] > REQUESTS / 3
    assert statuses[400] > 0
    assert statuses[0] == 0, f"connections cut: {statuses}"
    assert grown_kib < GROWTH_KIB, f"{grown_kib} KiB more after {REQUESTS - WARM_UP} requests"
    assert server.process.poll() is None
    assert "0123456789abcdef0123456789abcdef" not in server.log_path.read_text(errors="replace")
