"""Keep a replica's own certificate: one CA that all replicas share, a leaf of one's own, and a caBundle that fits both.

A new CA signs nothing before every entry of the configuration has trusted it for a while; the old one stays trusted
until it ends. So at any moment each API server trusts each replica's leaf.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from cluster.client import ClusterError, JSONObject
from cluster.readiness import Verdict
from cluster.trust import Conflict
from webhook.pki import Authority, Leaf, PkiError, make_authority, read_authority, sign_leaf, split_bundle, still_valid

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from webhook.metrics import Metrics
    from webhook.tls import ServingCertificate

log = logging.getLogger(__name__)

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
PREVIOUS_CERTIFICATE: Final = "previous-ca.crt"
PREVIOUS_KEY: Final = "previous-ca.key"
# Trusted CAs besides the two of the Secret, so that a bundle can't grow without end.
MAX_BUNDLE: Final = 4
# Between two looks while something is missing.
HURRIED_TICK_SECONDS: Final = 0.5


class Secret(Protocol):
    """Where the CA is shared; see cluster.trust.SharedSecret."""

    def read(self) -> tuple[JSONObject | None, dict[str, bytes]]:
        """Return the object and its data."""

    def write(self, before: JSONObject | None, data: Mapping[str, bytes]) -> None:
        """Create or replace; raises Conflict."""


class Bundle(Protocol):
    """What API servers trust; see cluster.trust.BundleField."""

    def read(self) -> dict[str, bytes] | None:
        """Return each entry's bundle."""

    def apply(self, entries: Mapping[str, bytes]) -> None:
        """Set entries' bundles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """How long things last, in seconds."""

    ca: float
    leaf: float

    @property
    def settle(self) -> float:
        """From the moment that a bundle is seen until every API server has surely seen it too."""
        return min(60.0, self.ca / 12)

    @property
    def tick(self) -> float:
        """Between two looks; short lives, as tests have them, are looked at oftener."""
        return min(10.0, self.leaf / 10, self.ca / 24)


class OwnCertificates:
    """Certificate mode `self`. `tick` and `run` belong to one thread."""

    def __init__(
        self,
        *,
        names: tuple[str, ...],
        ca_name: str,
        lives: Lives,
        secret: Secret,
        bundle: Bundle | None,
        is_leader: Callable[[], bool],
        serving: ServingCertificate,
        metrics: Metrics,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Prepare. `bundle` None: somebody else keeps the caBundle, and finds the CA in the Secret."""
        self._names = names
        self._ca_name = ca_name
        self._lives = lives
        self._secret = secret
        self._bundle = bundle
        self._is_leader = is_leader
        self._serving = serving
        self._metrics = metrics
        self._now = now
        self._leaf: Leaf | None = None
        # What each entry of the configuration trusts, in PEM.
        self._entries: dict[str, frozenset[bytes]] = {}
        # What they have in common.
        self._trusted: frozenset[bytes] = frozenset()
        # When each CA was first seen to be trusted, by its PEM.
        self._trusted_since: dict[bytes, float] = {}
        self._fault = "not tried yet"

    def verdict(self) -> Verdict:
        """Ready while the leaf is valid and API servers trust its CA."""
        leaf, trouble = self._leaf, f" ({self._fault})" if self._fault else ""
        if leaf is None:
            return Verdict(passed=False, detail=f"no certificate yet{trouble}")
        if self._now() >= leaf.ends_at:
            return Verdict(passed=False, detail=f"the certificate has ended{trouble}")
        lacking = self._entries_without(leaf)
        if self._bundle is not None and len(lacking) == len(self._entries):
            return Verdict(passed=False, detail=f"caBundle does not hold our CA yet{trouble}")
        if lacking:
            # Such as a new class's: it must not take this replica from all the others.
            return Verdict(passed=True, detail=f"caBundle of {', '.join(lacking)} does not hold our CA yet{trouble}")
        return Verdict(passed=True, detail=self._fault)

    def _entries_without(self, leaf: Leaf) -> list[str]:
        """Entries of the configuration whose API servers would refuse the leaf."""
        return [name for name, trusted in self._entries.items() if leaf.authority_pem not in trusted]

    def run(self, stop: threading.Event) -> None:
        """Tick until `stop`; faster while something is missing."""
        while True:
            self.tick_safely()
            settled = self.verdict() == (True, "")
            if stop.wait(self._lives.tick if settled else min(self._lives.tick, HURRIED_TICK_SECONDS)):
                return

    def tick_safely(self) -> None:
        """Tick; faults are told and tried again."""
        fault = ""
        try:
            self.tick()
        except Conflict:
            # Another replica was faster: the next tick reads what it wrote.
            return
        except (ClusterError, PkiError) as error:
            fault = str(error)
        except Exception:  # the thread must outlive any fault: without it no leaf would be renewed
            log.exception("certificates failed")
            fault = "internal fault, see the log"
        if fault and fault != self._fault:
            log.warning("certificates: %s", fault)
        self._fault = fault

    def tick(self) -> None:
        """Look at everything once, and mend one step. Raises Conflict, ClusterError, PkiError."""
        now = self._now()
        current, previous = self._shared_authorities(now)
        self._metrics.show_certificate("ca", current.ends_at)
        if self._bundle is not None:
            self._tend_bundle(self._bundle, current, previous, now)
        signer = self._signer(current, previous, now)
        leaf = self._leaf
        if (
            leaf is None
            or now >= leaf.renew_at
            or (signer is not None and signer.certificate_pem != leaf.authority_pem)
        ):
            self._renew_leaf(signer or current, now)

    def _shared_authorities(self, now: float) -> tuple[Authority, Authority | None]:
        """Read the CA and the one before it; make the first, or a new one when it is time and ours to do."""
        found, data = self._secret.read()
        current = self._read_pair(data, CA_CERTIFICATE, CA_KEY, now)
        previous = self._read_pair(data, PREVIOUS_CERTIFICATE, PREVIOUS_KEY, now)
        if current is not None and (now < current.renew_at or not self._is_leader()):
            return current, previous
        fresh = make_authority(self._ca_name, now, self._lives.ca)
        written = {**data, CA_CERTIFICATE: fresh.certificate_pem, CA_KEY: fresh.key_pem}
        for key in (PREVIOUS_CERTIFICATE, PREVIOUS_KEY):
            written.pop(key, None)
        if current is not None:
            written |= {PREVIOUS_CERTIFICATE: current.certificate_pem, PREVIOUS_KEY: current.key_pem}
        self._secret.write(found, written)
        log.info("certificate authority made ends=%s", _iso(fresh.ends_at))
        return fresh, current

    def _read_pair(self, data: Mapping[str, bytes], certificate: str, key: str, now: float) -> Authority | None:
        if not data.get(certificate) or not data.get(key):
            return None
        try:
            authority = read_authority(data[certificate], data[key])
        except PkiError as error:
            log.warning("certificate authority in the Secret ignored: %s: %s", certificate, error)
            return None
        return authority if now < authority.ends_at else None

    def _tend_bundle(self, bundle: Bundle, current: Authority, previous: Authority | None, now: float) -> None:
        """Learn which CAs every entry trusts; as the leader, see to it that ours are among them."""
        entries = bundle.read()
        if not entries:
            self._note_trusted({}, now)
            raise ClusterError("the MutatingWebhookConfiguration does not exist yet, or has no entries")
        trusted = {name: split_bundle(pem) for name, pem in entries.items()}
        self._note_trusted({name: frozenset(found) for name, found in trusted.items()}, now)
        if not self._is_leader():
            return
        own = [authority.certificate_pem for authority in (current, previous) if authority is not None]
        wanted: dict[str, bytes] = {}
        for name, found in trusted.items():
            # A CA whose Secret was lost still vouches for leaves that are being served.
            older = [pem for pem in still_valid(found, current.certificate_pem, now) if pem not in own]
            wanted[name] = b"".join((own + older)[:MAX_BUNDLE])
        if wanted != entries:
            bundle.apply(wanted)
            log.info("caBundle applied entries=%d", len(wanted))

    def _note_trusted(self, entries: dict[str, frozenset[bytes]], now: float) -> None:
        self._entries = entries
        # An entry without a bundle (new, or wiped) trusts nobody, and says nothing about what the others trust.
        filled = [trusted for trusted in entries.values() if trusted]
        self._trusted = frozenset.intersection(*filled) if filled else frozenset()
        self._trusted_since = {pem: self._trusted_since.get(pem, now) for pem in self._trusted}

    def _signer(self, current: Authority, previous: Authority | None, now: float) -> Authority | None:
        """Return the CA that should have signed our leaf; None: whichever did, for now."""
        if self._bundle is None:
            # Whoever keeps the bundle has until the old CA nears its end.
            spare = self._lives.ca / 12
            return previous if previous is not None and now < previous.ends_at - spare else current
        since = self._trusted_since.get(current.certificate_pem)
        is_settled = since is not None and now >= since + self._lives.settle
        if is_settled:
            return current
        if previous is not None and previous.certificate_pem in self._trusted:
            return previous
        leaf = self._leaf
        ours = [authority.certificate_pem for authority in (current, previous) if authority is not None]
        if leaf is not None and now < leaf.renew_at and leaf.authority_pem in (*ours, *self._trusted):
            return None
        return current

    def _renew_leaf(self, signer: Authority, now: float) -> None:
        leaf = sign_leaf(signer, self._names, now, self._lives.leaf)
        self._serving.use(leaf.certificate_pem, leaf.key_pem)
        self._leaf = leaf
        self._metrics.show_certificate("leaf", leaf.ends_at)
        log.info("certificate in use source=self ends=%s", _iso(leaf.ends_at))


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names under which a Service is reached; the API server uses the one that ends in .svc."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}", service, f"{service}.{namespace}.svc.cluster.local")


def _iso(unix_seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_seconds))
