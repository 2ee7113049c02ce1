"""The server alone, over real TLS: kept connections, bodies nobody should send, the end of its
life.
"""

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost_core.kube.pki import Certificate, make_authority, sign_leaf
from tests.builders import policy_document
from tests.e2e.lone_webhook import DAY, LoneWebhook, review_of
from tests.harness.ports import LOOPBACK
from tests.harness.waiting import wait_until
from webhook.bounds import MAX_BODY_BYTES

# What kube-apiserver keeps idle connections for is 90 s.
IDLE_SECONDS = 95


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneWebhook]:
    with LoneWebhook(tmp_path_factory.mktemp("webhook")) as running:
        yield running


def raw(webhook: LoneWebhook, data: bytes) -> bytes:
    """What comes back for bytes that may be no HTTP at all."""
    with webhook.connect() as connection:
        connection.settimeout(2)
        connection.sendall(data)
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except (TimeoutError, OSError):
            pass
        return answer


def post_chunks(webhook: LoneWebhook, *chunks: bytes) -> tuple[int, bytes]:
    connection = webhook.client()
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/mutate", iter(chunks), headers, encode_chunked=True)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_an_idle_connection_is_reused_after_95_seconds(webhook: LoneWebhook) -> None:
    connection, silent = webhook.client(), webhook.client()
    webhook.post(review_of(), connection)
    before = connection.sock
    time.sleep(IDLE_SECONDS)
    assert webhook.post(review_of(), connection)[0] == 200
    assert connection.sock is before
    # One on which nothing was ever sent is a spare connection of the API server's, and as good.
    assert webhook.post(review_of(), silent)[0] == 200


def test_64_spare_idle_connections_and_64_half_open_ones_block_nobody(webhook: LoneWebhook) -> None:
    spare = [webhook.connect() for _ in range(64)]
    # Connected, but not a byte of a handshake; and handshakes that stop in the middle.
    half_open = [socket.create_connection((LOOPBACK, webhook.port)) for _ in range(64)]
    for connection in half_open[:32]:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    begun = webhook.connect()
    begun.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n")
    durations = []
    for _ in range(20):
        start = time.monotonic()
        assert webhook.post(review_of())[0] == 200
        durations.append(time.monotonic() - start)
    assert sorted(durations)[10] < 0.5
    for connection in (*spare, *half_open, begun):
        connection.close()


def test_a_body_over_the_bound_gets_413_and_the_next_request_is_served(
    webhook: LoneWebhook,
) -> None:
    assert webhook.post(b"x" * (MAX_BODY_BYTES + 1))[0] == 413
    assert post_chunks(webhook, *[b"x" * 1_000_000] * 4)[0] == 413
    status, answer = post_chunks(webhook, review_of()[:100], review_of()[100:])
    assert (status, json.loads(answer)["response"]["allowed"]) == (200, True)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        (
            b"POST /mutate HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding:"
            b" chunked\r\n\r\n0\r\n\r\n"
        ),
        b"POST /mutate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 200_000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_no_http_gets_no_5xx_and_hurts_nobody(webhook: LoneWebhook, data: bytes) -> None:
    answer = raw(webhook, data)
    assert not answer.startswith(b"HTTP/1.1 5")
    assert b"Traceback" not in answer
    assert webhook.post(review_of())[0] == 200


def test_a_client_that_leaves_in_the_middle_of_a_body_hurts_nobody(webhook: LoneWebhook) -> None:
    for _ in range(20):
        with webhook.connect() as connection:
            connection.sendall(
                b"POST /mutate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length:"
                b" 1000\r\n\r\n{"
            )
    assert webhook.post(review_of())[0] == 200
    assert "fault=" not in webhook.log()


# A life of one's own from here on: each of these ends or breaks its replica.


def test_a_broken_reload_keeps_the_last_good_policy_and_says_so(tmp_path: Path) -> None:
    with LoneWebhook(tmp_path) as webhook:
        good = webhook.page("/readyz")[1]
        webhook.release_file.write_text('{"version": 1, "podClasses": {"user": {"match": 5}}}')
        wait_until(
            lambda: "reload failed" in webhook.page("/readyz")[1], 10, "the refusal in /readyz"
        )
        status, text = webhook.page("/readyz")
        assert status == 200
        assert "podClasses.user.match" in text
        assert good.split("revision ")[1][:12] in text
        assert "roost_webhook_policy_reload_failures_total 1.0" in webhook.page("/metrics")[1]
        assert "policy rejected" in webhook.log()
        assert webhook.post(review_of())[1]["patchType"] == "JSONPatch"

        webhook.release_file.write_text(json.dumps(policy_document(replaceSchedulers=["other"])))
        wait_until(
            lambda: "reload failed" not in webhook.page("/readyz")[1], 10, "the good policy in use"
        )
        assert good.split("revision ")[1][:12] not in webhook.page("/readyz")[1]


def test_a_policy_broken_from_the_start_admits_pods_untouched_and_is_not_ready(
    tmp_path: Path,
) -> None:
    with LoneWebhook(tmp_path, policy=b"{broken") as webhook:
        status, response, _ = webhook.post(review_of())
        assert (status, response["allowed"], response.get("patch")) == (200, True, None)
        ready, text = webhook.page("/readyz")
        assert ready == 503
        assert "no policy yet, pods are admitted unchanged" in text
        webhook.release_file.write_text(json.dumps(policy_document()))
        wait_until(lambda: webhook.page("/readyz")[0] == 200, 10, "readiness after the fix")
        assert "patch" in webhook.post(review_of())[1]


def test_sigterm_drains(tmp_path: Path) -> None:
    with LoneWebhook(tmp_path, "--drain-seconds=3") as webhook:
        kept, idle = webhook.client(), webhook.client()
        webhook.post(review_of(), kept)
        half_open = socket.create_connection((LOOPBACK, webhook.port))
        webhook.terminate()
        wait_until(lambda: webhook.page("/readyz")[0] == 503, 1, "readiness to end at once")
        assert "draining" in webhook.page("/readyz")[1]
        assert webhook.page("/livez")[0] == 200
        # Open connections are served, and asked to end; new ones are still welcome.
        status, response, headers = webhook.post(review_of(), kept)
        assert (status, response["allowed"], headers["connection"]) == (200, True, "close")
        assert kept.sock is None
        assert webhook.post(review_of())[2]["connection"] == "close"
        time.sleep(1.5)
        assert webhook.post(review_of(), idle)[0] == 200
        assert webhook.process.wait(10) == 0
        half_open.close()
        assert "stopped" in webhook.log()


def test_a_second_signal_ends_the_drain(tmp_path: Path) -> None:
    with LoneWebhook(tmp_path, "--drain-seconds=60") as webhook:
        webhook.terminate()
        wait_until(lambda: webhook.page("/readyz")[0] == 503, 5, "the drain to begin")
        webhook.terminate()
        assert webhook.process.wait(10) == 0


def test_a_port_in_use_is_an_error_of_one_line(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match="ended with status 1"):
            LoneWebhook(tmp_path, f"--port={port}").__enter__()
    (line,) = (tmp_path / "webhook.log").read_text().splitlines()
    assert line.startswith(f"roost webhook: {LOOPBACK}:{port} can't be listened on")


START, LIFE = 1_700_000_000.0, 36_500 * DAY
NAME = "kube-apiserver-to-webhooks"


def status_of(webhook: LoneWebhook, authority: Certificate | None, name: str = NAME) -> int:
    """The status of one review, sent with a certificate of a CA or with none; 0: the connection
    ends before it.
    """
    path = webhook.folder / "client.pem" if authority is not None else None
    if authority is not None and path is not None:
        leaf = sign_leaf(authority, (name,), START, LIFE, for_client=True)
        path.write_bytes(leaf.certificate_pem + leaf.key_pem)
    with contextlib.suppress(OSError, http.client.HTTPException):
        return webhook.post(review_of(), webhook.client(path))[0]
    return 0


def test_reviews_come_only_from_who_shows_a_certificate_of_the_ca_and_the_ca_is_followed(
    tmp_path: Path,
) -> None:
    ours, theirs = (make_authority(f"clients-{number}", START, LIFE) for number in range(2))
    ca_path = tmp_path / "ca.crt"
    ca_path.write_bytes(ours.certificate_pem)
    with LoneWebhook(tmp_path, f"--client-ca={ca_path}") as webhook:
        assert status_of(webhook, ours) == 200
        assert status_of(webhook, ours, "somebody-else") == 200
        assert status_of(webhook, theirs) == 0
        assert status_of(webhook, None) == 0
        assert webhook.page("/livez")[0] == 200
        ca_path.write_bytes(theirs.certificate_pem)
        wait_until(lambda: status_of(webhook, theirs) == 200, 20, "the other CA to count")
        assert status_of(webhook, ours) == 0
        ca_path.write_text("no certificate")
        wait_until(
            lambda: "the clients' CA can't be loaded" in webhook.log(), 20, "the refusal in the log"
        )
        assert status_of(webhook, theirs) == 200


def test_with_a_common_name_no_other_certificate_of_the_ca_counts(tmp_path: Path) -> None:
    ours = make_authority("clients", START, LIFE)
    (tmp_path / "ca.crt").write_bytes(ours.certificate_pem)
    with LoneWebhook(
        tmp_path, f"--client-ca={tmp_path / 'ca.crt'}", f"--client-name={NAME}"
    ) as webhook:
        assert status_of(webhook, ours) == 200
        assert status_of(webhook, ours, "node-1") == 0
        assert status_of(webhook, None) == 0
