"""Reviews only from who shows a certificate of a given CA, over real TLS."""

import contextlib
import socket
import ssl
from pathlib import Path

import pytest

from roost_core.kube.pki import Certificate, make_authority, sign_leaf
from tests.e2e.lone_webhook import DAY, LoneWebhook, review_of
from tests.harness.ports import LOOPBACK
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

NAME = "kube-apiserver-to-webhooks"
START = 1_700_000_000.0
LIFE = 36_500 * DAY


class VerifyingWebhook(LoneWebhook):
    """Waits for its ports only: without a certificate nobody gets through the handshake."""

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=5):
            return self.page("/readyz")[0] == 200 or "facts" in self.page("/readyz")[1]
        return False


def status_of(webhook: LoneWebhook, folder: Path, authority: Certificate | None, name: str = NAME) -> int:
    """The status of one review, sent with a certificate of a CA or with none; 0: the connection ends before it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if authority is not None:
        leaf = sign_leaf(authority, (name,), START, LIFE, for_client=True)
        path = folder / "client.pem"
        path.write_bytes(leaf.certificate_pem + leaf.key_pem)
        context.load_cert_chain(path)
    body = review_of()
    head = f"POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        with (
            socket.create_connection((LOOPBACK, webhook.port), timeout=20) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.sendall(head.encode() + body)
            answer = connection.recv(64)
    except OSError:
        return 0
    return int(answer.split()[1]) if answer else 0


def test_reviews_come_only_from_who_shows_a_certificate_of_the_ca_and_the_ca_is_followed(tmp_path: Path) -> None:
    ours, theirs = (make_authority(f"clients-{number}", START, LIFE) for number in range(2))
    ca_path = tmp_path / "ca.crt"
    ca_path.write_bytes(ours.certificate_pem)
    with VerifyingWebhook(tmp_path, f"--client-ca={ca_path}") as webhook:
        assert status_of(webhook, tmp_path, ours) == 200
        assert status_of(webhook, tmp_path, ours, "somebody-else") == 200
        assert status_of(webhook, tmp_path, theirs) == 0
        assert status_of(webhook, tmp_path, None) == 0
        assert webhook.page("/livez")[0] == 200
        ca_path.write_bytes(theirs.certificate_pem)
        wait_until(lambda: status_of(webhook, tmp_path, theirs) == 200, 20, "the other CA to count")
        assert status_of(webhook, tmp_path, ours) == 0
        ca_path.write_text("no certificate")
        wait_until(lambda: "the clients' CA can't be loaded" in webhook.log(), 20, "the refusal in the log")
        assert status_of(webhook, tmp_path, theirs) == 200


def test_with_a_common_name_no_other_certificate_of_the_ca_counts(tmp_path: Path) -> None:
    ours = make_authority("clients", START, LIFE)
    (tmp_path / "ca.crt").write_bytes(ours.certificate_pem)
    flags = (f"--client-ca={tmp_path / 'ca.crt'}", f"--client-name={NAME}")
    with VerifyingWebhook(tmp_path, *flags) as webhook:
        assert status_of(webhook, tmp_path, ours) == 200
        assert status_of(webhook, tmp_path, ours, "node-1") == 0
        assert status_of(webhook, tmp_path, None) == 0


def test_without_a_ca_anybody_may_ask(tmp_path: Path) -> None:
    with LoneWebhook(tmp_path) as webhook:
        assert status_of(webhook, tmp_path, None) == 200
