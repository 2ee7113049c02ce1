"""Keep the webhook's certificates in mode `self`: a CA, the one leaf that all replicas serve, and
the caBundle.

The controllers' leader does this, so that the webhook, which is reachable by network, needs no
right to write. A new CA signs nothing before every entry of the configuration has trusted it for a
while, and the old one stays trusted until it expires. So API servers always trust the leaf that a
replica serves, although kubelets update it up to 90 s late.
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
# The most CAs in a bundle.
MAX_BUNDLE: Final = 4
# Between ticks while something is missing.
HURRIED_TICK_SECONDS: Final = 0.5
# Between two checks whether this replica leads.
IDLE_TICK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """Lifetimes of certificates and what follows from them, in seconds."""

    ca: float
    leaf: float

    @property
    def settle(self) -> float:
        """After this long, every API server uses a new bundle."""
        return min(60.0, self.ca / 12)

    @property
    def ending(self) -> float:
        """This long before it expires, a CA is about to."""
        return self.ca / 12

    @property
    def late(self) -> float:
        """After this long, a CA isn't new any more."""
        return self.ca / 24

    @property
    def spare(self) -> float:
        """The least remaining lifetime of a leaf: its successor's CA has to settle, and a kubelet
        takes up to 90 s.
        """
        return min(240.0, self.leaf / 6)

    @property
    def tick(self) -> float:
        """Between two ticks; short lifetimes, as in tests, are checked more often."""
        return min(10.0, self.leaf / 10, self.ca / 24)


class CertificateKeeper:
    """Certificate mode `self`.

    `tick` and `run` belong to one thread; all that lasts is in the two Secrets.
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
        """show: called with the expiry of `ca` and `leaf` in Unix time; with {} while another
        replica leads.
        """
        self._names = names
        self._ca_name = ca_name
        self._lifetimes = lifetimes
        self._ca_secret = ca_secret
        self._leaf_secret = leaf_secret
        self._bundle = bundle
        self._is_leader = is_leader
        self._show = show
        self._now = now
        # CAs (PEM) that every entry of the configuration trusts.
        self._trusted: frozenset[bytes] = frozenset()
        # By CA: since when this was observed.
        self._trusted_since: dict[bytes, float] = {}
        # CAs that any entry trusts.
        self._trusted_by_any: frozenset[bytes] = frozenset()
        self._fault = ""

    def readiness(self) -> Readiness:
        """Report a fault; it makes no replica unready, because another one would have it, too."""
        return Readiness(passed=True, detail=self._fault)

    def run(self, stop: threading.Event) -> None:
        """Tick until `stop`; faster while something is missing."""
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
        """Drop what was observed: another replica leads, and trust may change unobserved."""
        self._trusted = frozenset()
        self._trusted_since = {}
        self._trusted_by_any = frozenset()
        self._fault = ""
        self._show({})

    def tick_safely(self) -> bool:
        """Tick; faults are logged and retried. Return whether everything was in order."""
        fault = ""
        try:
            in_order = self.tick()
        except (ClusterError, pki.PkiError) as error:
            if isinstance(error, ApiError) and error.status in CONFLICTS:
                # Another writer was first: the next tick reads what it wrote.
                return False
            in_order = False
            fault = str(error)
        except Exception:  # the thread must outlive any fault: without it no leaf would be renewed
            log.exception("certificates failed")
            in_order = False
            fault = "internal error, see the log"
        if fault and fault != self._fault:
            log.warning("certificates: %s", fault)
        self._fault = fault
        return in_order

    def tick(self) -> bool:
        """Check CA, bundle and leaf, and fix one step of each. Raises ClusterError, PkiError.

        Return whether there was nothing to fix.
        """
        now = self._now()
        current, previous, made_ca = self._authorities(now)
        # Before the first leaf, so that it is trusted from the start.
        wrote_bundle = self._tend_bundle(current, previous, now)
        leaf, made_leaf = self._tend_leaf(current, previous, now)
        self._show({"ca": current.ends_at, "leaf": leaf.ends_at})
        return not (made_ca or wrote_bundle or made_leaf)

    def _authorities(self, now: float) -> tuple[pki.Certificate, pki.Certificate | None, bool]:
        """Return the CA, the previous one, and whether a new CA had to be made now."""
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
        """Read which CAs every entry trusts, and add ours if missing; return whether anything was
        written.
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
            # A CA whose Secret was lost may have signed the leaf that is being served.
            older = [
                pem
                for pem in pki.still_valid(authorities, current.certificate_pem, now)
                if pem not in own
            ]
            wanted[name] = b"".join((own + older)[:MAX_BUNDLE])
        if wanted == entries:
            return False
        self._bundle.apply(wanted)
        log.info("caBundle applied entries=%d", len(wanted))
        return True

    def _note_trusted(self, entries: dict[str, frozenset[bytes]], now: float) -> None:
        # An entry without a bundle (new, or emptied) trusts no CA, and doesn't affect the others.
        filled = [trusted for trusted in entries.values() if trusted]
        self._trusted = frozenset.intersection(*filled) if filled else frozenset()
        self._trusted_since = {pem: self._trusted_since.get(pem, now) for pem in self._trusted}
        self._trusted_by_any = frozenset().union(*filled)

    def _tend_leaf(
        self, current: pki.Certificate, previous: pki.Certificate | None, now: float
    ) -> tuple[pki.Certificate, bool]:
        """Return the leaf, and whether a new one was signed: at its renewal, or because another CA
        should sign it.
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
        since = self._trusted_since.get(current.certificate_pem)
        # The old CA is about to expire and the new one isn't new, as when leaders change often.
        is_ending = previous is not None and now >= previous.ends_at - self._lifetimes.ending
        is_late = is_ending and now >= current.made_at + self._lifetimes.late
        if since is not None and (now >= since + self._lifetimes.settle or is_late):
            return current
        if previous is not None and previous.certificate_pem in self._trusted:
            return previous
        if leaf is None or leaf.authority_pem == current.certificate_pem:
            return current
        if previous is not None and leaf.authority_pem == previous.certificate_pem:
            return previous
        # Signed by a CA whose Secret was lost: it is kept for as long as possible.
        return None if now < leaf.ends_at - self._lifetimes.spare else current


def _pems(current: pki.Certificate, previous: pki.Certificate | None) -> list[bytes]:
    """Both CAs in PEM, the present one first."""
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
    """Read a Secret's certificate and key; None: they are missing, unusable or too old."""
    if not data.get(certificate) or not data.get(key):
        return None
    try:
        pair = read(data[certificate], data[key])
    except pki.PkiError as error:
        log.warning("certificate in the Secret ignored: %s: %s", certificate, error)
        return None
    return pair if now < pair.ends_at else None


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names of a Service; API servers use the one that ends in .svc."""
    return (
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}",
        service,
        f"{service}.{namespace}.svc.cluster.local",
    )
