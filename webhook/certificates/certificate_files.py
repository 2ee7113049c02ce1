"""Serve the certificate in a folder, and follow its changes.

The kubelet mounts a Secret there. The mode says who writes the Secret: the controllers' leader,
cert-manager or an operator.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Final

from cryptography import x509

from roost_core.kube.logs import utc_time
from roost_core.kube.readiness import Readiness
from roost_core.placement.labels import TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY
from webhook.certificates.tls import ServingCertificate, TlsError
from webhook.metrics import WebhookMetrics

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
MAX_PEM_BYTES: Final = 1024 * 1024
# If the Secret is created after the pod, the kubelet mounts it with its next sync of the volumes.
WAIT_HINT: Final = (
    "In mode self the controllers' leader creates it (see its log), and the kubelet mounts it"
    " within 90 s; in the other modes it is the Secret named by webhook.certificates"
)


class CertificateFiles:
    """`tls.crt` (the leaf first) and `tls.key` in a folder.

    While they aren't valid, the last valid pair stays in use.
    """

    def __init__(
        self,
        folder: Path,
        serving: ServingCertificate,
        metrics: WebhookMetrics,
        *,
        client_ca: Path | None,
    ) -> None:
        """client_ca: a file with the CAs of clients, whose changes are followed, too. None: clients
        aren't verified.
        """
        self._client_ca = client_ca
        self._folder = folder
        self._serving = serving
        self._metrics = metrics
        # Certificate, key and clients' CAs, as they were read last.
        self._seen: tuple[bytes, bytes, bytes] | None = None
        self._fault = "not read yet"
        self._expiry = 0.0

    def readiness(self) -> Readiness:
        """Ready while the certificate in use hasn't expired."""
        if not self._serving.is_loaded:
            return Readiness(passed=False, detail=f"no certificate yet: {self._fault}. {WAIT_HINT}")
        if time.time() >= self._expiry:
            return Readiness(passed=False, detail="the certificate has expired")
        return Readiness(
            passed=True,
            detail=f"the last change was rejected: {self._fault}" if self._fault else "",
        )

    def poll(self) -> None:
        """Read the files, and use them if they changed and match."""
        try:
            client_ca = b"" if self._client_ca is None else _read(self._client_ca)
            certificate = _read(self._folder / TLS_CERTIFICATE_KEY)
            key = _read(self._folder / TLS_PRIVATE_KEY)
        except OSError as error:
            self._reject(
                f"{self._folder}: {Path(error.filename or '').name} can't be read: {error.strerror}"
            )
            return
        read = (certificate, key, client_ca)
        if read == self._seen:
            return
        # If certificate and key don't match, they are tried again when a file changes. The kubelet
        # replaces both at once, but others may replace one after the other.
        self._seen = read
        try:
            leaf = x509.load_pem_x509_certificate(certificate)
            expiry = leaf.not_valid_after_utc.timestamp()
            self._serving.use(certificate, key, client_ca)
        except TlsError as error:
            self._reject(f"{self._folder}: {error}")
            return
        except ValueError:
            self._reject(f"{self._folder}: {TLS_CERTIFICATE_KEY} is not a PEM certificate")
            return
        self._expiry = expiry
        self._fault = ""
        self._metrics.certificate_expiry.labels("leaf").set(expiry)
        log.info("certificate in use expires=%s", utc_time(expiry))

    def run(self, stop: threading.Event) -> None:
        """Poll until `stop`."""
        while not stop.wait(POLL_SECONDS):
            try:
                self.poll()
            except Exception:
                # The thread must survive any error: without it no renewal would be used.
                log.exception("certificate poll failed")

    def _reject(self, fault: str) -> None:
        """Note a fault. The same fault is logged once, not with each poll."""
        if fault != self._fault:
            self._fault = fault
            log.error("certificate rejected: %s", fault)


def _read(path: Path) -> bytes:
    """Read a file, MAX_PEM_BYTES at most. Raises OSError."""
    with path.open("rb") as file:
        return file.read(MAX_PEM_BYTES)
