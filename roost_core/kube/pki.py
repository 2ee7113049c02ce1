"""Make the webhook's certificates: an authority (CA) and the leaves that it signs.

The keys are ECDSA P-256. The API server often opens new connections, and a handshake with RSA costs
several times as much. The present time is an argument.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from roost_core.placement.labels import shorten

# So long before now certificates begin, for API servers whose clocks are behind.
BACKDATE_SECONDS: Final = 3600.0
MAX_COMMON_NAME: Final = 64


class PkiError(Exception):
    """A certificate or key can't be used; the message says why, without key material."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A CA's certificate or a leaf, with its key. Times are Unix time."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    # When it was made: BACKDATE_SECONDS after the beginning that it names.
    made_at: float
    ends_at: float
    # The certificate of the CA that signed a leaf; b"": it isn't known.
    authority_pem: bytes = b""

    @property
    def renew_at(self) -> float:
        """When to renew it: after two thirds of its lifetime."""
        return self.made_at + (self.ends_at - self.made_at) * 2 / 3


def make_authority(name: str, now: float, life_seconds: float) -> Certificate:
    """Make a CA that may sign only leaves. now: Unix time."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key.public_key(), now, now + life_seconds)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        _pem(certificate), _key_pem(key), now, certificate.not_valid_after_utc.timestamp()
    )


def read_authority(certificate_pem: bytes, key_pem: bytes) -> Certificate:
    """Read a CA. Raises PkiError if it isn't a CA, or if the key is of another certificate."""
    certificate = _read_pair(certificate_pem, key_pem)
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        is_authority = constraints.value.ca
    except (ValueError, x509.ExtensionNotFound):
        is_authority = False
    if not is_authority:
        raise PkiError("the certificate is not a CA's")
    return _with_key(certificate, _pem(certificate), key_pem, b"")


def sign_leaf(
    authority: Certificate,
    names: Sequence[str],
    now: float,
    life_seconds: float,
    *,
    for_client: bool = False,
) -> Certificate:
    """Make a leaf with a new key, signed by a CA.

    names: DNS names and IP addresses that the leaf is for; at least one. for_client: the leaf is of
    a client, else of a server. now: Unix time. The leaf doesn't outlive its CA. Raises PkiError.
    """
    signer = serialization.load_pem_private_key(authority.key_pem, None)
    issuer = x509.load_pem_x509_certificate(authority.certificate_pem)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise PkiError("the authority's key is not an ECDSA key")
    key = ec.generate_private_key(ec.SECP256R1())
    ends_at = min(now + life_seconds, authority.ends_at)
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if for_client else ExtendedKeyUsageOID.SERVER_AUTH
    certificate = (
        _builder(_name(names[0]), issuer.subject, key.public_key(), now, ends_at)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            ),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    ends_at = certificate.not_valid_after_utc.timestamp()
    return Certificate(_pem(certificate), _key_pem(key), now, ends_at, authority.certificate_pem)


def read_leaf(certificate_pem: bytes, key_pem: bytes, authorities: Iterable[bytes]) -> Certificate:
    """Read a leaf. Its `authority_pem` is the one of `authorities` that signed it, else b"".

    Raises PkiError if it isn't a certificate, or if the key is of another certificate.
    """
    certificate = _read_pair(certificate_pem, key_pem)
    signer = next((pem for pem in authorities if _has_signed(pem, certificate)), b"")
    return _with_key(certificate, certificate_pem, key_pem, signer)


def _read_pair(certificate_pem: bytes, key_pem: bytes) -> x509.Certificate:
    """Read a certificate. Raises PkiError if it isn't one, or if the key isn't its key."""
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        key = serialization.load_pem_private_key(key_pem, None)
    except (ValueError, TypeError) as error:
        raise PkiError(
            f"not a certificate with an unencrypted key ({type(error).__name__})"
        ) from None
    is_ecdsa = isinstance(key, ec.EllipticCurvePrivateKey)
    if not is_ecdsa or key.public_key() != certificate.public_key():
        raise PkiError("the key is not the certificate's, or not an ECDSA key")
    return certificate


def _with_key(
    certificate: x509.Certificate, pem: bytes, key_pem: bytes, authority_pem: bytes
) -> Certificate:
    made_at = certificate.not_valid_before_utc.timestamp() + BACKDATE_SECONDS
    return Certificate(
        pem, key_pem, made_at, certificate.not_valid_after_utc.timestamp(), authority_pem
    )


class CertificateFacts(NamedTuple):
    """What a certificate says."""

    # Distinguished names, for example `CN=roost-webhook`.
    subject: str
    issuer: str
    # DNS names and IP addresses.
    names: tuple[str, ...]
    # Unix time.
    ends_at: float


def certificate_facts(pem: bytes) -> CertificateFacts | None:
    """What the first certificate of a PEM file says; None if it holds none."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        return CertificateFacts(
            certificate.subject.rfc4514_string(),
            certificate.issuer.rfc4514_string(),
            _alternative_names(certificate),
            certificate.not_valid_after_utc.timestamp(),
        )
    except ValueError:
        return None


def is_trusted(chain: bytes, bundle: bytes) -> bool:
    """Whether a chain ends at a certificate of a bundle, by signatures.

    Times and names aren't checked. chain: PEM, leaf first.
    """
    try:
        certificates = x509.load_pem_x509_certificates(chain)
    except ValueError:
        return False
    roots = split_bundle(bundle)
    certificate = certificates[0]
    for issuer in [*certificates[1:], None]:
        if _pem(certificate) in roots or any(_has_signed(root, certificate) for root in roots):
            return True
        if issuer is None or not _has_signed(_pem(issuer), certificate):
            return False
        certificate = issuer
    return False


def leaf_names(leaf: Certificate) -> tuple[str, ...]:
    """Return the DNS names and IP addresses that a leaf is for, in the leaf's order."""
    try:
        return _alternative_names(x509.load_pem_x509_certificate(leaf.certificate_pem))
    except ValueError:
        return ()


def _alternative_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Raises ValueError where the extensions can't be parsed."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in names)


def _has_signed(authority_pem: bytes, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority_pem))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def split_bundle(bundle: bytes) -> list[bytes]:
    """Return a bundle's certificates, each as normalised PEM; [] if it can't be parsed."""
    try:
        return [_pem(certificate) for certificate in x509.load_pem_x509_certificates(bundle)]
    except ValueError:
        return []


def bundle_end_seconds(bundle: bytes) -> float | None:
    """When the last of a bundle's certificates ends, in Unix time.

    None: the bundle holds no certificate, or can't be parsed.
    """
    try:
        certificates = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return None
    ends = [certificate.not_valid_after_utc.timestamp() for certificate in certificates]
    return max(ends, default=None)


def still_valid(certificates: Iterable[bytes], subject_like: bytes, now: float) -> list[bytes]:
    """Return the certificates that haven't expired and have the same subject as `subject_like`.

    Certificates are PEM. now: Unix time.
    """
    subject = x509.load_pem_x509_certificate(subject_like).subject
    valid = []
    for pem in certificates:
        certificate = x509.load_pem_x509_certificate(pem)
        if certificate.subject == subject and certificate.not_valid_after_utc.timestamp() > now:
            valid.append(pem)
    return valid


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: float,
    ends_at: float,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(dt.datetime.fromtimestamp(now - BACKDATE_SECONDS, tz=dt.UTC))
        .not_valid_after(dt.datetime.fromtimestamp(ends_at, tz=dt.UTC))
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, shorten(common_name, MAX_COMMON_NAME))]
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
