"""Serve the certificate that lies in a directory, as kubelet mounts a Secret, and follow its changes.

The one way in every mode: the controllers' leader, cert-manager or somebody else writes the Secret.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509

from roost_core.kube.readiness import Verdict
from webhook.certificates.tls import TlsError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from webhook.certificates.tls import ServingCertificate
    from webhook.metrics import Metrics

log = logging.getLogger(__name__)

CERTIFICATE_FILE: Final = "tls.crt"
KEY_FILE: Final = "tls.key"
POLL_SECONDS: Final = 1.0
MAX_PEM_BYTES: Final = 1024 * 1024
# A Secret that is made after its pod comes with the kubelet's next round over the pod's volumes.
WAIT_HINT: Final = (
    "In mode self the controllers' leader makes it (see its log), and the kubelet brings it within 90 s; "
    "in the other modes it is the Secret of webhook.certificates"
)


class CertificateFiles:
    """`tls.crt` (leaf first) and `tls.key` of one directory. A pair that can't be used leaves the last one serving."""

    def __init__(
        self,
        folder: Path,
        serving: ServingCertificate,
        metrics: Metrics,
        now: Callable[[], float] = time.time,
        *,
        client_ca: Path | None = None,
    ) -> None:
        """Prepare. `client_ca`: the file with the CAs of clients, when these are verified; followed likewise."""
        self._client_ca = client_ca
        self._folder = folder
        self._serving = serving
        self._metrics = metrics
        self._now = now
        self._seen: tuple[bytes, bytes, bytes] | None = None
        self._fault = "not read yet"
        self._expiry = 0.0

    def verdict(self) -> Verdict:
        """Ready while a certificate is served that hasn't ended."""
        if not self._serving.is_loaded:
            return Verdict(passed=False, detail=f"no certificate yet: {self._fault}. {WAIT_HINT}")
        if self._now() >= self._expiry:
            return Verdict(passed=False, detail="the certificate has ended")
        return Verdict(passed=True, detail=f"the last change was refused: {self._fault}" if self._fault else "")

    def poll(self) -> None:
        """Read both files, and serve them when they changed and fit together."""
        try:
            client_ca = b"" if self._client_ca is None else _read(self._client_ca)
            pair = _read(self._folder / CERTIFICATE_FILE), _read(self._folder / KEY_FILE), client_ca
        except OSError as error:
            self._refuse(f"{self._folder}: {Path(error.filename or '').name} can't be read: {error.strerror}")
            return
        if pair == self._seen:
            return
        # Kubelet swaps both at once, other writers may not: a pair that doesn't fit is looked at again when it changes.
        self._seen = pair
        try:
            expiry = x509.load_pem_x509_certificate(pair[0]).not_valid_after_utc.timestamp()
            self._serving.use(*pair)
        except TlsError as error:
            self._refuse(f"{self._folder}: {error}")
            return
        except ValueError:
            self._refuse(f"{self._folder}: {CERTIFICATE_FILE} holds no PEM certificate")
            return
        self._expiry, self._fault = expiry, ""
        self._metrics.show_certificate("leaf", expiry)
        log.info("certificate in use source=files ends=%s", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiry)))

    def run(self, stop: threading.Event) -> None:
        """Poll until `stop`."""
        while not stop.wait(POLL_SECONDS):
            try:
                self.poll()
            except Exception:  # the thread must outlive any fault, or no renewal would ever be served
                log.exception("certificate poll failed")

    def _refuse(self, fault: str) -> None:
        if fault != self._fault:
            self._fault = fault
            log.error("certificate refused: %s", fault)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_PEM_BYTES)
