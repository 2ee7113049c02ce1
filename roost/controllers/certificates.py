"""Keep the webhook's certificates in mode `self`.

There are three things to keep: a certificate authority (CA), the *leaf* (the certificate that all
replicas of the webhook serve), and the caBundle in each entry of the MutatingWebhookConfiguration.

The controllers' leader does this. So the webhook, which others can reach by network, needs no right
to write.

API servers must always trust the leaf that a replica serves, although kubelets bring a new leaf up
to 90 s late. So a new CA signs nothing before all entries have trusted it for a while, and the old
CA stays trusted until it expires.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from roost_core.kube import pki
from roost_core.kube.client import ApiError, ClusterError
from roost_core.kube.logs import utc_time
from roost_core.kube.readiness import Readiness
from roost_core.kube.webhook_secrets import CONFLICTS, BundleField, SharedSecret
from roost_core.placement.labels import TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY

log = logging.getLogger(__name__)

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
PREVIOUS_CERTIFICATE: Final = "previous-ca.crt"
PREVIOUS_KEY: Final = "previous-ca.key"
# The most CAs in a caBundle.
MAX_BUNDLE: Final = 4
# Between two ticks while something is missing.
HURRIED_TICK_SECONDS: Final = 0.5
# Between two checks whether this replica leads, while it doesn't.
IDLE_TICK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """How long certificates are valid, and what follows from that; all in seconds."""

    ca: float
    leaf: float

    @property
    def settle(self) -> float:
        """After this time, every API server uses a caBundle that was written."""
        return min(60.0, self.ca / 12)

    @property
    def ending(self) -> float:
        """With no more than this left, a CA counts as about to expire."""
        return self.ca / 12

    @property
    def late(self) -> float:
        """From this age on, a CA no longer counts as new."""
        return self.ca / 24

    @property
    def spare(self) -> float:
        """With no more than this left, a leaf must be replaced.

        The CA of the new leaf has to settle first, and a kubelet takes up to 90 s.
        """
        return min(240.0, self.leaf / 6)

    @property
    def tick(self) -> float:
        """Between two ticks. Tests have short lifetimes, which need more frequent ticks."""
        return min(10.0, self.leaf / 10, self.ca / 24)


class CertificateKeeper:
    """Keeps the certificates of mode `self`.

    `tick` and `run` belong to one thread. All that must outlive this replica is in the two Secrets.
    """

    def __init__(
        self,
        *,
        names: tuple[str, ...],
        ca_name: str,
        lifetimes: Lifetimes,
        ca_secret: SharedSecret,
        leaf_secret: SharedSecret,
        bundle: BundleField,
        is_leader: Callable[[], bool],
        show: Callable[[Mapping[str, float]], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        """show: takes when `ca` and `leaf` expire, in Unix time; {} while another replica leads."""
        self._names = names
        self._ca_name = ca_name
        self._lifetimes = lifetimes
        self._ca_secret = ca_secret
        self._leaf_secret = leaf_secret
        self._bundle = bundle
        self._is_leader = is_leader
        self._show = show
        self._now = now
        # CAs, in PEM, that all entries of the configuration trust.
        self._trusted: frozenset[bytes] = frozenset()
        # For each of these CAs, since when all entries were seen to trust it.
        self._trusted_since: dict[bytes, float] = {}
        # CAs, in PEM, that at least one entry trusts.
        self._trusted_by_any: frozenset[bytes] = frozenset()
        # What failed in the last tick; "": nothing.
        self._fault = ""

    def readiness(self) -> Readiness:
        """Report a fault. The replica stays ready: any other replica would have the fault, too."""
        return Readiness(passed=True, detail=self._fault)

    def run(self, stop: threading.Event) -> None:
        """Tick until `stop`, more often while something is missing."""
        while True:
            if not self._is_leader():
                self.rest()
                wait_seconds = IDLE_TICK_SECONDS
            elif self.tick_safely():
                wait_seconds = self._lifetimes.tick
            else:
                wait_seconds = min(self._lifetimes.tick, HURRIED_TICK_SECONDS)
            if stop.wait(wait_seconds):
                return

    def rest(self) -> None:
        """Forget what the entries trust: another replica leads, and may change that."""
        self._trusted = frozenset()
        self._trusted_since = {}
        self._trusted_by_any = frozenset()
        self._fault = ""
        self._show({})

    def tick_safely(self) -> bool:
        """Tick, and log what fails: the next tick tries again. Return whether all is in order."""
        fault = ""
        try:
            in_order = self.tick()
        except (ClusterError, pki.PkiError) as error:
            if isinstance(error, ApiError) and error.status in CONFLICTS:
                # Another writer was first: the next tick reads what it wrote.
                return False
            in_order = False
            fault = str(error)
        except Exception:
            # The thread must survive any fault: without it no leaf would be renewed.
            log.exception("certificates failed")
            in_order = False
            fault = "internal error, see the log"
        if fault and fault != self._fault:
            log.warning("certificates: %s", fault)
        self._fault = fault
        return in_order

    def tick(self) -> bool:
        """Check the CA, the caBundle and the leaf, and take the next step of each.

        Return whether there was nothing to do. Raises ClusterError, PkiError.
        """
        now = self._now()
        current, previous, made_ca = self._authorities(now)
        # Before the leaf is made, so that the first leaf is trusted from the start.
        wrote_bundle = self._tend_bundle(current, previous, now)
        leaf, made_leaf = self._tend_leaf(current, previous, now)
        self._show({"ca": current.ends_at, "leaf": leaf.ends_at})
        return not (made_ca or wrote_bundle or made_leaf)

    def _authorities(self, now: float) -> tuple[pki.Certificate, pki.Certificate | None, bool]:
        """Return the present CA, the previous CA, and whether the present CA was made just now."""
        secret, data = self._ca_secret.read()
        current = _read_pair(data, CA_CERTIFICATE, CA_KEY, now, pki.read_authority)
        previous = _read_pair(data, PREVIOUS_CERTIFICATE, PREVIOUS_KEY, now, pki.read_authority)
        if current is not None and now < current.renew_at:
            return current, previous, False
        fresh = pki.make_authority(self._ca_name, now, self._lifetimes.ca)
        written = {CA_CERTIFICATE: fresh.certificate_pem, CA_KEY: fresh.key_pem}
        if current is not None:
            written |= {
                PREVIOUS_CERTIFICATE: current.certificate_pem,
                PREVIOUS_KEY: current.key_pem,
            }
        self._ca_secret.write(secret, written)
        log.info("certificate authority made ends=%s", utc_time(fresh.ends_at))
        return fresh, current, True

    def _tend_bundle(
        self, current: pki.Certificate, previous: pki.Certificate | None, now: float
    ) -> bool:
        """Read which CAs the entries trust, and add ours where they are missing.

        Return whether anything was written.
        """
        entries = self._bundle.read()
        if not entries:
            self._note_trusted({}, now)
            raise ClusterError(
                "the MutatingWebhookConfiguration does not exist yet, or has no entries"
            )
        trusted = {name: pki.split_bundle(pem) for name, pem in entries.items()}
        self._note_trusted(
            {name: frozenset(authorities) for name, authorities in trusted.items()}, now
        )
        own = _pems(current, previous)
        wanted: dict[str, bytes] = {}
        for name, authorities in trusted.items():
            # Other CAs stay, too. If a CA's Secret was lost, it may have signed the leaf that is
            # being served.
            valid = pki.still_valid(authorities, current.certificate_pem, now)
            others = [pem for pem in valid if pem not in own]
            wanted[name] = b"".join((own + others)[:MAX_BUNDLE])
        if wanted == entries:
            return False
        self._bundle.apply(wanted)
        log.info("caBundle applied entries=%d", len(wanted))
        return True

    def _note_trusted(self, entries: dict[str, frozenset[bytes]], now: float) -> None:
        """Remember which CAs the entries trust. entries: CAs in PEM, by name of the entry."""
        # An entry without a caBundle (new, or emptied) trusts no CA. It doesn't count here.
        filled = [trusted for trusted in entries.values() if trusted]
        self._trusted = frozenset.intersection(*filled) if filled else frozenset()
        self._trusted_since = {pem: self._trusted_since.get(pem, now) for pem in self._trusted}
        self._trusted_by_any = frozenset().union(*filled)

    def _tend_leaf(
        self, current: pki.Certificate, previous: pki.Certificate | None, now: float
    ) -> tuple[pki.Certificate, bool]:
        """Return the leaf, and whether it was signed just now.

        It is signed anew when it must be renewed, and when another CA must have signed it.
        """
        secret, data = self._leaf_secret.read()
        own = _pems(current, previous)
        read = partial(pki.read_leaf, authorities=(*own, *self._trusted_by_any))
        leaf = _read_pair(data, TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY, now, read)
        if leaf is not None and not leaf.authority_pem:
            leaf = None
        must_sign = self._must_sign(current, previous, leaf, now)
        if leaf is not None and (must_sign is None or self._is_in_order(leaf, must_sign, now)):
            return leaf, False
        fresh = pki.sign_leaf(must_sign or current, self._names, now, self._lifetimes.leaf)
        self._leaf_secret.write(
            secret, {TLS_CERTIFICATE_KEY: fresh.certificate_pem, TLS_PRIVATE_KEY: fresh.key_pem}
        )
        log.info("certificate signed ends=%s", utc_time(fresh.ends_at))
        return fresh, True

    def _is_in_order(self, leaf: pki.Certificate, signer: pki.Certificate, now: float) -> bool:
        """Whether a leaf need not be renewed yet, and has the right signer and names."""
        return (
            now < leaf.renew_at
            and leaf.authority_pem == signer.certificate_pem
            and pki.leaf_names(leaf) == self._names
        )

    def _must_sign(
        self,
        current: pki.Certificate,
        previous: pki.Certificate | None,
        leaf: pki.Certificate | None,
        now: float,
    ) -> pki.Certificate | None:
        """Return the CA that must have signed the leaf; None: the leaf stays, whoever signed it."""
        trusted_since = self._trusted_since.get(current.certificate_pem)
        if trusted_since is not None:
            has_settled = now >= trusted_since + self._lifetimes.settle
            # A new leader doesn't know for how long the entries have trusted the present CA. If
            # leaders change often, it never settles. So it is used without that when it isn't new
            # and the previous CA is about to expire.
            is_previous_ending = (
                previous is not None and now >= previous.ends_at - self._lifetimes.ending
            )
            is_current_old = now >= current.made_at + self._lifetimes.late
            if has_settled or (is_previous_ending and is_current_old):
                return current
        if previous is not None and previous.certificate_pem in self._trusted:
            return previous
        if leaf is None or leaf.authority_pem == current.certificate_pem:
            return current
        if previous is not None and leaf.authority_pem == previous.certificate_pem:
            return previous
        # The leaf was signed by a CA whose Secret was lost. It stays for as long as possible.
        must_be_replaced = now >= leaf.ends_at - self._lifetimes.spare
        return current if must_be_replaced else None


def _pems(current: pki.Certificate, previous: pki.Certificate | None) -> list[bytes]:
    """The CAs in PEM, the present CA first."""
    if previous is None:
        return [current.certificate_pem]
    return [current.certificate_pem, previous.certificate_pem]


def _read_pair(
    data: Mapping[str, bytes],
    certificate: str,
    key: str,
    now: float,
    read: Callable[[bytes, bytes], pki.Certificate],
) -> pki.Certificate | None:
    """Read a Secret's certificate and key; None: they are missing, unusable or have expired.

    certificate, key: keys of the Secret's data.
    """
    if not data.get(certificate) or not data.get(key):
        return None
    try:
        pair = read(data[certificate], data[key])
    except pki.PkiError as error:
        log.warning("certificate in the Secret ignored: %s: %s", certificate, error)
        return None
    return pair if now < pair.ends_at else None


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names of a Service. API servers use the first."""
    return (
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}",
        service,
        f"{service}.{namespace}.svc.cluster.local",
    )
