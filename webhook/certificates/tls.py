"""The certificate of new TLS connections, which can be replaced while serving.

Open connections keep the certificate they started with: a replacement drops none of them.
"""

import os
import ssl
import threading
from typing import Final

ALPN: Final = ["http/1.1"]  # the only protocol that the API server uses for webhooks


class TlsError(Exception):
    """A certificate and key can't be used; the message says why, without key material."""


class ServingCertificate:
    """The certificate in use; `context` is passed to the listener once and stays valid across
    changes.

    The listener's own context holds no certificate. Each ClientHello is handed to the newest
    context instead of loading into the old one, because OpenSSL keeps one certificate for each key
    type: an ECDSA one would outlive its replacement by an RSA one.
    """

    def __init__(self, *, verifies_clients: bool = False) -> None:
        """verifies_clients: `use` gets a CA, and clients without a certificate from it are
        rejected.
        """
        self._verifies_clients = verifies_clients
        self.context = self._new_context()
        self.context.sni_callback = self._hand_over
        self._current: ssl.SSLContext | None = None
        self._loaded = threading.Event()

    @property
    def is_loaded(self) -> bool:
        """Whether a certificate has been given yet."""
        return self._loaded.is_set()

    def use(self, chain_pem: bytes, key_pem: bytes, client_ca_pem: bytes = b"") -> None:
        """Serve new connections with this chain (leaf first) and key. Raises TlsError, and keeps
        the old one.

        client_ca_pem: CAs of clients' certificates, when clients are verified.
        """
        fresh = self._new_context()
        if self._verifies_clients:
            try:
                fresh.load_verify_locations(cadata=client_ca_pem.decode("ascii"))
            except (ssl.SSLError, ValueError):
                raise TlsError("the clients' CA can't be loaded: not a PEM certificate") from None
        try:
            _load(fresh, chain_pem, key_pem)
        except (ssl.SSLError, ValueError, OSError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise TlsError(f"certificate and key can't be loaded: {reason}") from None
        self._current = fresh
        self._loaded.set()

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(ALPN)
        # The API server resumes no session. Two tickets that nobody uses are a seventh of what a
        # handshake costs, and a burst of pods is a burst of handshakes.
        context.num_tickets = 0
        if self._verifies_clients:
            # Both contexts need it: a connection keeps the mode of its first context, and uses the
            # CAs of the newest.
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _hand_over(
        self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None


def _load(context: ssl.SSLContext, chain_pem: bytes, key_pem: bytes) -> None:
    # Python's ssl module reads certificates from files only. A memfd never touches a disk and
    # disappears with its descriptor, so the key can't be left behind.
    descriptor = os.memfd_create("roost-leaf", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as memory:
        memory.write(chain_pem.rstrip() + b"\n" + key_pem)
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_reject_password)


def _reject_password() -> bytes:
    # Without it OpenSSL prompts on the terminal and blocks.
    raise ValueError("encrypted keys aren't supported")
