"""Keep the webhook's certificates in mode `self`: a CA, the one leaf that all replicas serve, and a fitting caBundle.

The leader's work, so that the process that the network reaches needs no right to write anything. A new CA signs nothing
before every entry of the configuration has trusted it for a while; the old one stays trusted until it ends. So each API
server trusts the leaf that a replica serves at any moment, though kubelets bring a new one up to 90 s late.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from roost_core.kube.client import ClusterError, JSONObject
from roost_core.kube.pki import (
    Authority,
    Leaf,
    PkiError,
    leaf_names,
    make_authority,
    read_authority,
    read_leaf,
    sign_leaf,
    split_bundle,
    still_valid,
)
from roost_core.kube.readiness import Verdict
from roost_core.kube.trust import Conflict

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
PREVIOUS_CERTIFICATE: Final = "previous-ca.crt"
PREVIOUS_KEY: Final = "previous-ca.key"
# As the other modes' Secrets have them: the webhook reads the same two files in each.
LEAF_CERTIFICATE: Final = "tls.crt"
LEAF_KEY: Final = "tls.key"
# Trusted CAs besides the two of the Secret, so that a bundle can't grow without end.
MAX_BUNDLE: Final = 4
# Between two looks while something is missing.
HURRIED_TICK_SECONDS: Final = 0.5
# Between two looks whether this replica leads by now.
IDLE_TICK_SECONDS: Final = 1.0


class Secret(Protocol):
    """Where a CA or a leaf is kept; see cluster.trust.SharedSecret."""

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
    def spare(self) -> float:
        """What a leaf must have left to wait for its successor: a CA settles, and a kubelet takes up to 90 s."""
        return min(240.0, self.leaf / 6)

    @property
    def tick(self) -> float:
        """Between two looks; short lives, as tests have them, are looked at oftener."""
        return min(10.0, self.leaf / 10, self.ca / 24)


class CertificateKeeper:
    """Certificate mode `self`. `tick` and `run` belong to one thread; all that lasts is in the two Secrets."""

    def __init__(
        self,
        *,
        names: tuple[str, ...],
        ca_name: str,
        lives: Lives,
        ca_secret: Secret,
        leaf_secret: Secret,
        bundle: Bundle,
        is_leader: Callable[[], bool],
        show: Callable[[Mapping[str, float]], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        """Prepare. `show` is told when `ca` and `leaf` end, in Unix time; {} while another replica leads."""
        self._names = names
        self._ca_name = ca_name
        self._lives = lives
        self._ca_secret = ca_secret
        self._leaf_secret = leaf_secret
        self._bundle = bundle
        self._is_leader = is_leader
        self._show = show
        self._now = now
        # What every entry of the configuration trusts, in PEM, and when each was first seen to be trusted.
        self._trusted: frozenset[bytes] = frozenset()
        self._trusted_since: dict[bytes, float] = {}
        # What any entry trusts.
        self._known: frozenset[bytes] = frozenset()
        self._fault = ""

    def verdict(self) -> Verdict:
        """Tell of trouble; it makes no replica unready, as another would fare no better."""
        return Verdict(passed=True, detail=self._fault)

    def run(self, stop: threading.Event) -> None:
        """Tick until `stop`; faster while something is missing."""
        while True:
            if not self._is_leader():
                self.rest()
                wait_seconds = IDLE_TICK_SECONDS
            elif self.tick_safely():
                wait_seconds = self._lives.tick
            else:
                wait_seconds = min(self._lives.tick, HURRIED_TICK_SECONDS)
            if stop.wait(wait_seconds):
                return

    def rest(self) -> None:
        """Forget what was seen: another replica leads, and what is trusted may change unseen."""
        self._trusted, self._trusted_since, self._known, self._fault = frozenset(), {}, frozenset(), ""
        self._show({})

    def tick_safely(self) -> bool:
        """Tick; faults are told and tried again. Return whether all was found in order."""
        fault = ""
        try:
            in_order = self.tick()
        except Conflict:
            # Somebody else was faster: the next tick reads what was written.
            return False
        except (ClusterError, PkiError) as error:
            in_order, fault = False, str(error)
        except Exception:  # the thread must outlive any fault: without it no leaf would be renewed
            log.exception("certificates failed")
            in_order, fault = False, "internal fault, see the log"
        if fault and fault != self._fault:
            log.warning("certificates: %s", fault)
        self._fault = fault
        return in_order

    def tick(self) -> bool:
        """Look at everything once, and mend one step of each. Raises Conflict, ClusterError, PkiError.

        Return whether there was nothing to mend.
        """
        now = self._now()
        current, previous, made_ca = self._authorities(now)
        # Before the first leaf: whoever serves it is trusted from the start.
        wrote_bundle = self._tend_bundle(current, previous, now)
        leaf, made_leaf = self._tend_leaf(current, previous, now)
        self._show({"ca": current.ends_at, "leaf": leaf.ends_at})
        return not (made_ca or wrote_bundle or made_leaf)

    def _authorities(self, now: float) -> tuple[Authority, Authority | None, bool]:
        """Read the CA and the one before it; make the first, or a new one when it is time. The third: made one."""
        found, data = self._ca_secret.read()
        current = self._read_pair(data, CA_CERTIFICATE, CA_KEY, now)
        previous = self._read_pair(data, PREVIOUS_CERTIFICATE, PREVIOUS_KEY, now)
        if current is not None and now < current.renew_at:
            return current, previous, False
        fresh = make_authority(self._ca_name, now, self._lives.ca)
        written = {CA_CERTIFICATE: fresh.certificate_pem, CA_KEY: fresh.key_pem}
        if current is not None:
            written |= {PREVIOUS_CERTIFICATE: current.certificate_pem, PREVIOUS_KEY: current.key_pem}
        self._ca_secret.write(found, written)
        log.info("certificate authority made ends=%s", _iso(fresh.ends_at))
        return fresh, current, True

    def _read_pair(self, data: Mapping[str, bytes], certificate: str, key: str, now: float) -> Authority | None:
        if not data.get(certificate) or not data.get(key):
            return None
        try:
            authority = read_authority(data[certificate], data[key])
        except PkiError as error:
            log.warning("certificate authority in the Secret ignored: %s: %s", certificate, error)
            return None
        return authority if now < authority.ends_at else None

    def _tend_bundle(self, current: Authority, previous: Authority | None, now: float) -> bool:
        """Learn which CAs every entry trusts, and see to it that ours are among them; return whether they weren't."""
        entries = self._bundle.read()
        if not entries:
            self._note_trusted({}, now)
            raise ClusterError("the MutatingWebhookConfiguration does not exist yet, or has no entries")
        trusted = {name: split_bundle(pem) for name, pem in entries.items()}
        self._note_trusted({name: frozenset(found) for name, found in trusted.items()}, now)
        own = [authority.certificate_pem for authority in (current, previous) if authority is not None]
        wanted: dict[str, bytes] = {}
        for name, found in trusted.items():
            # A CA whose Secret was lost still vouches for a leaf that is being served.
            older = [pem for pem in still_valid(found, current.certificate_pem, now) if pem not in own]
            wanted[name] = b"".join((own + older)[:MAX_BUNDLE])
        if wanted == entries:
            return False
        self._bundle.apply(wanted)
        log.info("caBundle applied entries=%d", len(wanted))
        return True

    def _note_trusted(self, entries: dict[str, frozenset[bytes]], now: float) -> None:
        # An entry without a bundle (new, or wiped) trusts nobody, and says nothing about what the others trust.
        filled = [trusted for trusted in entries.values() if trusted]
        self._trusted = frozenset.intersection(*filled) if filled else frozenset()
        self._trusted_since = {pem: self._trusted_since.get(pem, now) for pem in self._trusted}
        self._known = frozenset().union(*filled)

    def _tend_leaf(self, current: Authority, previous: Authority | None, now: float) -> tuple[Leaf, bool]:
        """Read the leaf; sign a new one when it is time, or when another CA should have. True: signed one."""
        found, data = self._leaf_secret.read()
        own = [authority.certificate_pem for authority in (current, previous) if authority is not None]
        leaf = self._read_leaf(data, (*own, *self._known), now)
        signer = self._signer(current, previous, leaf, now)
        if leaf is not None and (
            signer is None
            or (
                now < leaf.renew_at and leaf.authority_pem == signer.certificate_pem and leaf_names(leaf) == self._names
            )
        ):
            return leaf, False
        fresh = sign_leaf(signer or current, self._names, now, self._lives.leaf)
        self._leaf_secret.write(found, {LEAF_CERTIFICATE: fresh.certificate_pem, LEAF_KEY: fresh.key_pem})
        log.info("certificate signed ends=%s", _iso(fresh.ends_at))
        return fresh, True

    def _read_leaf(self, data: Mapping[str, bytes], authorities: tuple[bytes, ...], now: float) -> Leaf | None:
        if not data.get(LEAF_CERTIFICATE) or not data.get(LEAF_KEY):
            return None
        try:
            leaf = read_leaf(data[LEAF_CERTIFICATE], data[LEAF_KEY], authorities)
        except PkiError as error:
            log.warning("certificate in the Secret ignored: %s: %s", LEAF_CERTIFICATE, error)
            return None
        return leaf if now < leaf.ends_at and leaf.authority_pem else None

    def _signer(
        self, current: Authority, previous: Authority | None, leaf: Leaf | None, now: float
    ) -> Authority | None:
        """Return the CA that should have signed the leaf; None: whichever did, for now."""
        since = self._trusted_since.get(current.certificate_pem)
        if since is not None and (now >= since + self._lives.settle or self._is_late(current, previous, now)):
            return current
        if previous is not None and previous.certificate_pem in self._trusted:
            return previous
        if leaf is None or leaf.authority_pem == current.certificate_pem:
            return current
        if previous is not None and leaf.authority_pem == previous.certificate_pem:
            return previous
        # Of a CA whose Secret was lost: it serves as long as it can.
        return None if now < leaf.ends_at - self._lives.spare else current

    def _is_late(self, current: Authority, previous: Authority | None, now: float) -> bool:
        """Whether the old CA nears its end though the new one is long there: leaders that come and go see little."""
        is_ending = previous is not None and now >= previous.ends_at - self._lives.ca / 12
        return is_ending and now >= current.made_at + self._lives.ca / 24


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names under which a Service is reached; the API server uses the one that ends in .svc."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}", service, f"{service}.{namespace}.svc.cluster.local")


def _iso(unix_seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_seconds))
