"""The leader that keeps the webhook's certificates, in simulated time: every API server trusts
every leaf served.
"""

import contextlib
import datetime as dt
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.controllers.certificates import (
    CA_CERTIFICATE,
    CA_KEY,
    CertificateKeeper,
    Lifetimes,
    service_names,
)
from roost_core.kube.client import ApiError, ClusterError
from roost_core.kube.pki import (
    PkiError,
    leaf_names,
    make_authority,
    read_authority,
    read_leaf,
    sign_leaf,
    split_bundle,
)
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY
from webhook.certificates.tls import ServingCertificate, TlsError

START = 1_800_000_000.0
DAY = 86400.0
LIVES = Lifetimes(ca=90 * DAY, leaf=7 * DAY)
NAMES = service_names("hub-roost-webhook", "jhub")
# How late a kubelet may bring a changed Secret to a pod.
MOUNT_SECONDS = 90.0


class FakeSecret:
    """A Secret with versions, as the API server keeps it."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] | None = None
        self.version = 0
        self.writes = 0

    def read(self) -> tuple[JSONObject | None, dict[str, bytes]]:
        return (None, {}) if self.data is None else ({"version": self.version}, dict(self.data))

    def write(self, before: JSONObject | None, data: Mapping[str, bytes]) -> None:
        if (before is None) != (self.data is None) or (
            before is not None and before["version"] != self.version
        ):
            raise ApiError(409, "somebody else was faster")
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


class Hub:
    """Replicas of the controllers on two Secrets and one configuration; the first leads until told
    otherwise.
    """

    def __init__(
        self, replicas: int = 1, lives: Lifetimes = LIVES, names: tuple[str, ...] = NAMES
    ) -> None:
        self.now = START
        self.leader = 0
        self.ca, self.leaf, self.bundle = FakeSecret(), FakeSecret(), FakeBundle()
        self.shown: list[Mapping[str, float]] = [{} for _ in range(replicas)]
        self.lives = lives
        self.keepers = [self.keeper(number, names) for number in range(replicas)]

    def keeper(self, number: int, names: tuple[str, ...]) -> CertificateKeeper:
        def show(ends: Mapping[str, float]) -> None:
            self.shown[number] = ends

        fakes: Any = {"ca_secret": self.ca, "leaf_secret": self.leaf, "bundle": self.bundle}
        return CertificateKeeper(
            names=names,
            ca_name="roost-ca.hub.jhub",
            lifetimes=self.lives,
            is_leader=lambda: self.leader == number,
            show=show,
            now=lambda: self.now,
            **fakes,
        )

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        for number, keeper in enumerate(self.keepers):
            if number == self.leader:
                keeper.tick_safely()
            else:
                keeper.rest()

    def served(self) -> x509.Certificate:
        assert self.leaf.data is not None
        return x509.load_pem_x509_certificate(self.leaf.data[TLS_CERTIFICATE_KEY])

    def trusted(self) -> list[x509.Certificate]:
        """What all entries trust."""
        assert self.bundle.entries is not None
        bundles = [frozenset(split_bundle(pem)) for pem in self.bundle.entries.values()]
        return [x509.load_pem_x509_certificate(pem) for pem in frozenset.intersection(*bundles)]

    def is_trusted(
        self, certificate: x509.Certificate, authorities: list[x509.Certificate]
    ) -> bool:
        """As a TLS client would decide it, by signature and by time."""
        return any(
            _signed(certificate, authority) and _lives(authority, self.now)
            for authority in authorities
        ) and (_lives(certificate, self.now))


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # noqa: BLE001 (cryptography raises several)
        return False
    return True


def _lives(certificate: x509.Certificate, now: float) -> bool:
    return (
        certificate.not_valid_before_utc.timestamp()
        <= now
        < certificate.not_valid_after_utc.timestamp()
    )


def test_the_leader_makes_one_ca_one_leaf_and_a_bundle_that_fits_in_its_first_look() -> None:
    hub = Hub(replicas=3)
    hub.tick()
    assert hub.is_trusted(hub.served(), hub.trusted())
    for hub.leader in (0, 1):
        for _ in range(20):
            assert (hub.ca.writes, hub.leaf.writes, hub.bundle.applied) == (1, 1, 1)
            hub.tick(10)
    assert hub.leaf.data is not None
    assert hub.ca.data is not None
    assert hub.leaf.data.keys() == {TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY}
    assert hub.ca.data.keys() == {CA_CERTIFICATE, CA_KEY}
    assert hub.ca.data[CA_KEY] not in hub.leaf.data.values()
    hub.tick(LIVES.leaf * 2 / 3 - 460)
    assert hub.leaf.writes == 1
    hub.tick(120)
    assert hub.leaf.writes == 2, "renewed at two thirds of its life"


def test_who_does_not_lead_writes_and_shows_nothing_and_who_comes_late_makes_all_anew_at_once() -> (
    None
):
    hub = Hub(replicas=2)
    hub.tick()
    assert set(hub.shown[0]) == {"ca", "leaf"}
    assert hub.shown[1] == {}
    hub.leader = -1
    hub.tick(LIVES.ca + 1)
    assert (hub.ca.writes, hub.leaf.writes, hub.bundle.applied) == (1, 1, 1)
    assert hub.shown[0] == {}
    hub.leader = 0
    hub.tick(1)
    assert (hub.ca.writes, hub.leaf.writes) == (2, 2)
    assert hub.is_trusted(hub.served(), hub.trusted())


def test_of_two_that_make_a_ca_at_once_one_adopts_the_others() -> None:
    hub = Hub()
    read = hub.ca.read
    rival = make_authority("roost-ca.hub.jhub", START, LIVES.ca)

    def late_read() -> tuple[JSONObject | None, dict[str, bytes]]:
        answer = read()
        if hub.ca.data is None:
            hub.ca.write(None, {CA_CERTIFICATE: rival.certificate_pem, CA_KEY: rival.key_pem})
        return answer

    hub.ca.read = late_read  # type: ignore[method-assign] # another replica writes between read and write
    hub.tick()
    assert hub.leaf.data is None
    hub.tick(1)
    assert _signed(hub.served(), x509.load_pem_x509_certificate(rival.certificate_pem))


@pytest.mark.parametrize("foreign", [False, True])
def test_a_new_ca_signs_nothing_before_its_time_though_an_entry_appears_meanwhile(
    foreign: bool,
) -> None:
    hub = Hub()
    hub.tick()
    hub.tick(LIVES.settle + 1)
    hub.tick(LIVES.ca * 0.7)  # a new CA, and a leaf of the old one
    hub.tick(1)
    assert hub.ca.writes == 2
    assert hub.bundle.entries is not None
    slow_view = [authority for authority in hub.trusted() if _signed(hub.served(), authority)]
    writes = hub.leaf.writes
    hub.bundle.entries["fresh"] = (
        make_authority("other", hub.now, DAY).certificate_pem if foreign else b""
    )
    for _ in range(5):
        hub.tick(LIVES.settle / 10)
        assert hub.leaf.writes == writes
        assert hub.is_trusted(hub.served(), slow_view)
    hub.tick(LIVES.settle)
    assert hub.leaf.writes == writes + 1


def test_a_leaf_for_other_names_is_replaced() -> None:
    hub = Hub()
    hub.tick()
    hub.tick(LIVES.settle + 1)
    hub.keepers[0] = hub.keeper(0, (*NAMES, "hooks.example.org", "10.0.0.1"))
    hub.tick(1)
    hub.tick(LIVES.settle + 1)
    found = hub.served().extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "hooks.example.org" in found.get_values_for_type(x509.DNSName)
    assert hub.leaf.writes == 2


@settings(max_examples=15)
@given(
    steps=st.lists(st.one_of(st.floats(1, 90), st.floats(DAY / 2, DAY)), min_size=40, max_size=60),
    leaders=st.lists(st.integers(0, 2)),
    losses=st.sets(st.integers(0, 59), max_size=2),
)
@pytest.mark.slow
def test_every_api_server_always_trusts_each_replica(
    steps: list[float], leaders: list[int], losses: set[int]
) -> None:
    """API servers learn of a bundle late, kubelets bring a leaf late, leaders change, and the CA's
    Secret is lost.
    """
    lives = Lifetimes(ca=15 * DAY, leaf=5 * DAY)
    hub = Hub(replicas=3, lives=lives)
    hub.tick()
    hub.tick(1)
    bundles = [(hub.now - lives.settle, hub.trusted())]
    leaves = [(hub.now - MOUNT_SECONDS, hub.served())]
    # A leader looks every ten seconds: what is lost is seen soon.
    looks = [
        (number, look)
        for number, step in enumerate(steps)
        for look in (step, *((10.0,) * 8 if number in losses else ()))
    ]
    lost: set[int] = set()
    for number, seconds in looks:
        hub.leader = leaders[number % len(leaders)] if leaders else 0
        if number in losses - lost:
            lost.add(number)
            hub.ca.data = None
        hub.tick(seconds)
        leaves.append((hub.now, hub.served()))
        slow_view = [trusted for at, trusted in bundles if at <= hub.now - lives.settle + 0.5][-1]
        slow_leaf = [leaf for at, leaf in leaves if at <= hub.now - MOUNT_SECONDS][-1]
        for leaf in (slow_leaf, hub.served()):
            assert hub.is_trusted(leaf, slow_view)
            assert hub.is_trusted(leaf, hub.trusted())
        bundles.append((hub.now, hub.trusted()))
        assert len(hub.trusted()) <= 4
    assert hub.ca.writes <= 1 + len(losses) + sum(steps) / (lives.ca / 2)


def test_the_ca_is_renewed_at_two_thirds_and_the_old_one_stays_trusted_until_its_end() -> None:
    hub = Hub()
    hub.tick()
    hub.tick(LIVES.ca * 0.7)
    hub.tick(10)
    assert hub.ca.writes == 2
    assert len(hub.trusted()) == 2
    hub.tick(LIVES.ca * 0.35)  # the old CA has ended
    hub.tick(10)
    assert len(hub.trusted()) == 1
    assert hub.is_trusted(hub.served(), hub.trusted())


@pytest.mark.parametrize("lost", ["ca", "leaf", "bundle"])
def test_what_is_lost_or_wiped_costs_no_trust(lost: str) -> None:
    hub = Hub()
    hub.tick()
    hub.tick(LIVES.settle + 1)
    if lost == "bundle":
        hub.bundle.entries = {"user": b"", "build": b""}
    else:
        getattr(hub, lost).data = None
    for _ in range(12):
        hub.tick(10)
        assert hub.is_trusted(hub.served(), hub.trusted())
    assert {"ca": hub.ca.writes, "leaf": hub.leaf.writes, "bundle": 2}[lost] == 2
    assert lost != "bundle" or hub.leaf.writes == 1


@pytest.mark.parametrize(
    ("secret", "data"),
    [
        ("ca", {CA_CERTIFICATE: b"garbage", CA_KEY: b"garbage"}),
        ("ca", {CA_CERTIFICATE: b""}),
        ("ca", {}),
        ("leaf", {TLS_CERTIFICATE_KEY: b"garbage", TLS_PRIVATE_KEY: b"garbage"}),
        ("leaf", {CA_CERTIFICATE: b"the CA's certificate"}),
        (
            "leaf",
            {
                TLS_CERTIFICATE_KEY: (one := make_authority("other", START, DAY)).certificate_pem,
                TLS_PRIVATE_KEY: one.key_pem,
            },
        ),
    ],
    ids=["garbage", "half", "empty", "garbage for a leaf", "another use", "somebody else's"],
)
def test_a_secret_without_anything_usable_is_filled_with_nothing_else(
    secret: str, data: dict[str, bytes]
) -> None:
    hub = Hub()
    getattr(hub, secret).data = data
    hub.tick()
    assert hub.is_trusted(hub.served(), hub.trusted())
    assert hub.leaf.data is not None
    assert hub.leaf.data.keys() == {TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY}


def test_an_unreachable_api_server_or_a_missing_configuration_is_told_and_changes_nothing() -> None:
    hub = Hub()
    hub.bundle.entries, entries = None, hub.bundle.entries
    hub.tick()
    assert hub.leaf.data is None
    verdict = hub.keepers[0].readiness()
    assert verdict == (
        True,
        "the MutatingWebhookConfiguration does not exist yet, or has no entries",
    )
    hub.bundle.entries = entries
    hub.tick(1)

    def unreachable() -> tuple[JSONObject | None, dict[str, bytes]]:
        raise ClusterError("API server unreachable: ConnectTimeoutError")

    hub.ca.read = unreachable  # type: ignore[method-assign] # an outage
    hub.tick(1)
    assert hub.keepers[0].readiness() == (True, "API server unreachable: ConnectTimeoutError")
    assert hub.leaf.writes == 1


def test_a_leaf_is_read_back_as_it_was_signed_and_taken_for_no_ca() -> None:
    authority, other = (make_authority("ca", START, DAY) for _ in range(2))
    leaf = sign_leaf(authority, ("hub.jhub.svc", "127.0.0.1"), START, DAY / 2)
    read = read_leaf(
        leaf.certificate_pem, leaf.key_pem, (other.certificate_pem, authority.certificate_pem)
    )
    assert read == leaf
    assert leaf_names(read) == ("hub.jhub.svc", "127.0.0.1")
    assert (
        read_leaf(leaf.certificate_pem, leaf.key_pem, (other.certificate_pem,)).authority_pem == b""
    )
    assert sign_leaf(authority, ("a",), START, 30 * DAY).ends_at <= authority.ends_at
    with pytest.raises(PkiError, match="key is not the certificate's"):
        read_leaf(leaf.certificate_pem, authority.key_pem, ())
    with pytest.raises(PkiError, match="key is not the certificate's"):
        read_authority(authority.certificate_pem, other.key_pem)
    with pytest.raises(PkiError, match="not a CA's"):
        read_authority(leaf.certificate_pem, leaf.key_pem)
    assert "PRIVATE" not in f"{authority!r}{leaf!r}{authority}{leaf}"


class Shown(NamedTuple):
    """What a client without a server name gets in a handshake."""

    # As DER.
    certificate: bytes
    # By which it could begin its next connection.
    has_ticket: bool


def handshake(serving: ServingCertificate) -> Shown:
    """Shake hands in memory, and answer with a byte: tickets come before the first answer."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    client = trusting.wrap_bio(to_client, to_server)
    server = serving.context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    server.write(b"x")
    assert client.read() == b"x"
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    assert client.session is not None
    return Shown(shown, client.session.has_ticket)


def test_no_ticket_is_made_for_connections_that_the_api_server_never_resumes() -> None:
    serving, authority = ServingCertificate(), make_authority("ca", START, DAY)
    serving.use(authority.certificate_pem, authority.key_pem)
    assert not handshake(serving).has_ticket


def test_a_certificate_with_another_type_of_key_replaces_the_old_one_but_no_unfit_pair_does() -> (
    None
):
    serving = ServingCertificate()
    one, other = (make_authority("ca", START, DAY) for _ in range(2))
    serving.use(one.certificate_pem, one.key_pem)
    with pytest.raises(TlsError) as refused:
        serving.use(one.certificate_pem, other.key_pem)
    assert serving.is_loaded
    assert "BEGIN" not in str(refused.value)
    assert handshake(serving).certificate == ssl.PEM_cert_to_DER_cert(one.certificate_pem.decode())
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
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    serving.use(certificate.public_bytes(pem), private)
    assert handshake(serving).certificate == certificate.public_bytes(serialization.Encoding.DER)
