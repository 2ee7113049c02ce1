"""Replicas that share a CA, in simulated time: at every moment every API server trusts every replica."""

from __future__ import annotations

import contextlib
import datetime as dt
import ssl
from typing import TYPE_CHECKING, Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.client import ClusterError
from cluster.trust import Conflict
from webhook.metrics import Metrics
from webhook.own_certificates import CA_CERTIFICATE, CA_KEY, Lives, OwnCertificates, service_names
from webhook.pki import PkiError, make_authority, read_authority, sign_leaf, split_bundle
from webhook.tls import ServingCertificate, TlsError

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]
START = 1_800_000_000.0
DAY = 86400.0
LIVES = Lives(ca=90 * DAY, leaf=7 * DAY)
NAMES = service_names("hub-roost-webhook", "jhub")


class FakeSecret:
    """A Secret with versions, as the API server keeps it."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] | None = None
        self.version = 0
        self.writes = 0

    def read(self) -> tuple[Object | None, dict[str, bytes]]:
        return (None, {}) if self.data is None else ({"version": self.version}, dict(self.data))

    def write(self, before: Object | None, data: Mapping[str, bytes]) -> None:
        if (before is None) != (self.data is None) or (before is not None and before["version"] != self.version):
            raise Conflict("somebody else was faster")
        self.data, self.version, self.writes = dict(data), self.version + 1, self.writes + 1


class FakeBundle:
    """The caBundle of two entries."""

    def __init__(self, entries: Mapping[str, bytes] | None = None) -> None:
        self.entries: dict[str, bytes] | None = dict(entries or {"user": b"", "build": b""})
        self.applied = 0

    def read(self) -> dict[str, bytes] | None:
        return None if self.entries is None else dict(self.entries)

    def apply(self, entries: Mapping[str, bytes]) -> None:
        assert self.entries is not None
        self.entries |= entries
        self.applied += 1


class FakeServing:
    """Takes the certificate that would be served."""

    def __init__(self) -> None:
        self.certificate: x509.Certificate | None = None
        self.changes = 0

    def use(self, chain_pem: bytes, _key_pem: bytes) -> None:
        self.certificate = x509.load_pem_x509_certificate(chain_pem)
        self.changes += 1


class Hub:
    """Replicas on one Secret and one configuration; the first is the leader until told otherwise."""

    def __init__(self, replicas: int = 2, lives: Lives = LIVES, *, with_bundle: bool = True) -> None:
        self.now = START
        self.leader = 0
        self.secret, self.bundle = FakeSecret(), FakeBundle()
        self.serving = [FakeServing() for _ in range(replicas)]
        self.replicas = [
            OwnCertificates(
                names=NAMES,
                ca_name="roost-ca.hub.jhub",
                lives=lives,
                secret=self.secret,
                bundle=self.bundle if with_bundle else None,
                is_leader=lambda number=number: self.leader == number,  # type: ignore[misc] # mypy: lambda defaults
                serving=cast("ServingCertificate", self.serving[number]),
                metrics=Metrics("test"),
                now=lambda: self.now,
            )
            for number in range(replicas)
        ]

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        for replica in self.replicas:
            replica.tick_safely()

    def trusted(self) -> list[x509.Certificate]:
        """What all entries trust."""
        assert self.bundle.entries is not None
        bundles = [frozenset(split_bundle(pem)) for pem in self.bundle.entries.values()]
        return [x509.load_pem_x509_certificate(pem) for pem in frozenset.intersection(*bundles)]

    def is_trusted(self, certificate: x509.Certificate, authorities: list[x509.Certificate]) -> bool:
        """As a TLS client would decide it, by signature and by time."""
        return any(_signed(certificate, authority) and _lives(authority, self.now) for authority in authorities) and (
            _lives(certificate, self.now)
        )


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # noqa: BLE001 (cryptography raises several)
        return False
    return True


def _lives(certificate: x509.Certificate, now: float) -> bool:
    return certificate.not_valid_before_utc.timestamp() <= now < certificate.not_valid_after_utc.timestamp()


def test_replicas_agree_on_one_ca_and_each_signs_its_own_leaf() -> None:
    hub = Hub(replicas=3)
    hub.tick()
    hub.tick(1)
    assert hub.secret.writes == 1
    assert all(replica.verdict().passed for replica in hub.replicas)
    serials = {serving.certificate.serial_number for serving in hub.serving if serving.certificate}
    assert len(serials) == 3
    assert len(hub.trusted()) == 1


def test_of_two_that_make_a_ca_at_once_one_adopts_the_others() -> None:
    hub = Hub(replicas=1)
    read = hub.secret.read
    rival = make_authority("roost-ca.hub.jhub", START, LIVES.ca)

    def late_read() -> tuple[Object | None, dict[str, bytes]]:
        answer = read()
        if hub.secret.data is None:
            hub.secret.write(None, {CA_CERTIFICATE: rival.certificate_pem, CA_KEY: rival.key_pem})
        return answer

    hub.secret.read = late_read  # type: ignore[method-assign] # another replica writes between read and write
    hub.tick()
    assert hub.serving[0].certificate is None
    hub.tick(1)
    assert hub.serving[0].certificate is not None
    assert _signed(hub.serving[0].certificate, x509.load_pem_x509_certificate(rival.certificate_pem))


def test_a_replica_is_not_ready_before_the_bundle_holds_its_ca() -> None:
    hub = Hub(replicas=1)
    hub.leader = -1  # nobody
    hub.tick()
    verdict = hub.replicas[0].verdict()
    assert not verdict.passed
    assert "caBundle does not hold our CA yet" in verdict.detail
    hub.leader = 0
    hub.tick(1)
    hub.tick(1)
    assert hub.replicas[0].verdict().passed


def test_one_entry_without_our_ca_is_named_and_takes_no_replica_from_the_others() -> None:
    hub = Hub(replicas=1)
    hub.tick()
    hub.tick(1)
    assert hub.bundle.entries is not None
    hub.leader = -1
    hub.bundle.entries["build"] = b""
    hub.tick(1)
    assert hub.replicas[0].verdict() == (True, "caBundle of build does not hold our CA yet")
    hub.bundle.entries["user"] = b""
    hub.tick(1)
    assert not hub.replicas[0].verdict().passed


@pytest.mark.parametrize("foreign", [False, True])
def test_a_new_ca_signs_nothing_before_its_time_though_an_entry_appears_meanwhile(foreign: bool) -> None:
    hub = Hub()
    hub.tick()
    hub.tick(LIVES.settle + 1)
    hub.tick(LIVES.ca * 0.7)  # a new CA, and leaves of the old one
    hub.tick(1)
    assert hub.secret.writes == 2
    assert hub.bundle.entries is not None
    slow_view = hub.trusted()[:1] if _signed_by_first(hub) else hub.trusted()[1:]
    changes = [serving.changes for serving in hub.serving]
    hub.bundle.entries["fresh"] = make_authority("other", hub.now, DAY).certificate_pem if foreign else b""
    for _ in range(5):
        hub.tick(LIVES.settle / 10)
        assert [serving.changes for serving in hub.serving] == changes
        assert all(replica.verdict().passed for replica in hub.replicas)
        for serving in hub.serving:
            assert serving.certificate is not None
            assert hub.is_trusted(serving.certificate, slow_view)
    hub.tick(LIVES.settle)
    assert [serving.changes for serving in hub.serving] == [count + 1 for count in changes]


def _signed_by_first(hub: Hub) -> bool:
    certificate = hub.serving[0].certificate
    return certificate is not None and _signed(certificate, hub.trusted()[0])


def test_only_the_leader_writes_the_bundle_and_only_when_it_differs() -> None:
    hub = Hub()
    for _ in range(20):
        hub.tick(10)
    assert hub.bundle.applied == 1


def test_what_somebody_wiped_from_the_bundle_comes_back() -> None:
    hub = Hub()
    hub.tick()
    hub.bundle.entries = {"user": b"", "build": b""}
    hub.tick(10)
    hub.tick(10)
    assert all(replica.verdict().passed for replica in hub.replicas)


def test_a_leaf_is_renewed_at_two_thirds_of_its_life() -> None:
    hub = Hub(replicas=1)
    hub.tick()
    hub.tick(LIVES.leaf * 2 / 3 - 60)
    assert hub.serving[0].changes == 1
    hub.tick(120)
    assert hub.serving[0].changes == 2


@settings(max_examples=15)
@given(
    steps=st.lists(st.one_of(st.floats(1, 90), st.floats(DAY / 2, DAY)), min_size=40, max_size=60),
    leaders=st.lists(st.integers(0, 2)),
)
def test_every_api_server_trusts_every_replica_at_every_moment(steps: list[float], leaders: list[int]) -> None:
    lives = Lives(ca=15 * DAY, leaf=5 * DAY)
    hub = Hub(replicas=3, lives=lives)
    hub.tick()
    hub.tick(1)
    # A slow API server learns of a change just before replicas count on it.
    history = [(hub.now - lives.settle, hub.trusted())]
    for number, seconds in enumerate(steps):
        hub.leader = leaders[number % len(leaders)] if leaders else 0
        hub.tick(seconds)
        slow_view = [trusted for at, trusted in history if at <= hub.now - lives.settle + 0.5][-1]
        for serving in hub.serving:
            assert serving.certificate is not None
            assert hub.is_trusted(serving.certificate, slow_view)
            assert hub.is_trusted(serving.certificate, hub.trusted())
        history.append((hub.now, hub.trusted()))
        assert len(hub.trusted()) <= 3
    assert hub.secret.writes <= 1 + sum(steps) / (lives.ca / 2)


def test_the_ca_is_renewed_at_two_thirds_by_the_leader_alone_and_the_old_one_stays_trusted() -> None:
    hub = Hub()
    hub.tick()
    hub.leader = -1
    hub.tick(LIVES.ca * 0.7)
    assert hub.secret.writes == 1
    hub.leader = 1
    hub.tick(10)
    hub.tick(10)
    assert hub.secret.writes == 2
    assert len(hub.trusted()) == 2
    hub.tick(LIVES.ca * 0.35)  # the old CA has ended
    hub.tick(10)
    assert len(hub.trusted()) == 1
    assert all(replica.verdict().passed for replica in hub.replicas)


def test_an_expired_ca_is_replaced_even_without_a_leader() -> None:
    hub = Hub(replicas=1)
    hub.tick()
    hub.leader = -1
    hub.tick(LIVES.ca + 1)
    assert hub.secret.writes == 2


def test_a_lost_secret_costs_no_trust() -> None:
    hub = Hub()
    hub.tick()
    hub.tick(LIVES.settle + 1)
    hub.secret.data = None
    for _ in range(12):
        hub.tick(10)
        for serving in hub.serving:
            assert serving.certificate is not None
            assert hub.is_trusted(serving.certificate, hub.trusted())
    assert hub.secret.writes == 2
    assert all(replica.verdict().passed for replica in hub.replicas)


@pytest.mark.parametrize("data", [{CA_CERTIFICATE: b"garbage", CA_KEY: b"garbage"}, {CA_CERTIFICATE: b""}, {}])
def test_a_secret_that_holds_no_usable_ca_is_filled(data: dict[str, bytes]) -> None:
    hub = Hub(replicas=1)
    hub.secret.data = data
    hub.tick()
    hub.tick(1)
    assert hub.replicas[0].verdict().passed


def test_an_unreachable_api_server_leaves_the_leaf_serving_and_says_why() -> None:
    hub = Hub(replicas=1)
    hub.tick()
    hub.tick(1)

    def unreachable() -> tuple[Object | None, dict[str, bytes]]:
        raise ClusterError("API server unreachable: ConnectTimeoutError")

    hub.secret.read = unreachable  # type: ignore[method-assign] # an outage
    hub.tick(1)
    assert hub.replicas[0].verdict() == (True, "API server unreachable: ConnectTimeoutError")


def test_without_a_configuration_to_write_the_old_ca_signs_until_it_nears_its_end() -> None:
    hub = Hub(replicas=1, with_bundle=False)
    hub.tick()
    first = hub.serving[0].certificate
    hub.tick(LIVES.ca * 0.7)
    hub.tick(10)
    assert hub.secret.writes == 2
    assert hub.serving[0].certificate is not None
    assert first is not None
    assert hub.serving[0].certificate.extensions.get_extension_for_class(
        x509.AuthorityKeyIdentifier
    ) == first.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    hub.tick(LIVES.ca * 0.25)
    assert hub.serving[0].certificate.extensions.get_extension_for_class(
        x509.AuthorityKeyIdentifier
    ) != first.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)


def test_a_leaf_carries_the_name_the_api_server_asks_for_and_addresses() -> None:
    leaf = sign_leaf(make_authority("ca", START, DAY), ("hub.jhub.svc", "127.0.0.1", "::1"), START, DAY)
    found = x509.load_pem_x509_certificate(leaf.certificate_pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert found.value.get_values_for_type(x509.DNSName) == ["hub.jhub.svc"]
    assert [str(address) for address in found.value.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert "hub-roost-webhook.jhub.svc" in NAMES


def test_a_leaf_ends_no_later_than_its_ca() -> None:
    authority = make_authority("ca", START, DAY)
    assert sign_leaf(authority, ("a",), START, 30 * DAY).ends_at <= authority.ends_at


def test_a_ca_with_another_ones_key_is_refused() -> None:
    one, other = make_authority("ca", START, DAY), make_authority("ca", START, DAY)
    with pytest.raises(PkiError, match="key is not the certificate's"):
        read_authority(one.certificate_pem, other.key_pem)


def test_a_leaf_is_no_ca() -> None:
    leaf = sign_leaf(make_authority("ca", START, DAY), ("a",), START, DAY)
    with pytest.raises(PkiError, match="no CA's"):
        read_authority(leaf.certificate_pem, leaf.key_pem)


def test_keys_show_in_no_text() -> None:
    authority = make_authority("ca", START, DAY)
    leaf = sign_leaf(authority, ("a",), START, DAY)
    assert "PRIVATE" not in f"{authority!r}{leaf!r}{authority}{leaf}"


def test_a_pair_that_does_not_fit_leaves_the_old_one_serving_and_shows_no_key() -> None:
    serving = ServingCertificate()
    one, other = (make_authority("ca", START, DAY) for _ in range(2))
    serving.use(one.certificate_pem, one.key_pem)
    with pytest.raises(TlsError) as refused:
        serving.use(one.certificate_pem, other.key_pem)
    assert serving.is_loaded
    assert "BEGIN" not in str(refused.value)
    assert isinstance(serving.context, ssl.SSLContext)


def handshake(serving: ServingCertificate) -> bytes:
    """The certificate (DER) that a client without a server name is shown, in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    client = trusting.wrap_bio(to_client, to_server)
    server = serving.context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return shown


def test_a_certificate_with_a_key_of_another_type_replaces_the_old_one() -> None:
    serving = ServingCertificate()
    one = make_authority("ca", START, DAY)
    serving.use(one.certificate_pem, one.key_pem)
    assert handshake(serving) == ssl.PEM_cert_to_DER_cert(one.certificate_pem.decode())
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rsa")])
    moment = dt.datetime.fromtimestamp(START, tz=dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(moment)
        .not_valid_after(moment + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    serving.use(certificate.public_bytes(pem), private)
    assert handshake(serving) == certificate.public_bytes(serialization.Encoding.DER)


def test_before_the_first_certificate_a_handshake_fails_at_once() -> None:
    with pytest.raises(ssl.SSLError):
        handshake(ServingCertificate())
