"""The certificate of new TLS connections, which can be replaced while the webhook serves.

Open connections keep the certificate with which they started. So a replacement ends none of them.
"""

import os
import ssl
import threading
from typing import Final

ALPN: Final = ["http/1.1"]  # the only protocol that the API server uses for webhooks


class TlsError(Exception):
    """A certificate and key can't be used; the message says why, without key material."""


class ServingCertificate:
    """The certificate in use. The listener gets `context` once, and keeps it after changes.

    `context` holds no certificate. At the beginning of each connection, it is replaced by a context
    that holds the newest certificate. New certificates aren't loaded into an old context, because
    OpenSSL keeps a certificate for each type of key. So an ECDSA certificate would stay in use
    after it was replaced by an RSA certificate.
    """

    def __init__(self, *, verifies_clients: bool = False) -> None:
        """verifies_clients: clients must have a certificate of the CA that `use` gets."""
        self._verifies_clients = verifies_clients
        self.context = self._new_context()
        self.context.sni_callback = self._hand_over
        self._current: ssl.SSLContext | None = None
        self._loaded = threading.Event()

    @property
    def is_loaded(self) -> bool:
        """Whether there is a certificate yet."""
        return self._loaded.is_set()

    def use(self, chain_pem: bytes, key_pem: bytes, client_ca_pem: bytes = b"") -> None:
        """Serve new connections with this certificate chain (leaf first) and key.

        client_ca_pem: the CAs of clients, if clients are verified. Raises TlsError if these can't
        be used; then the old certificate stays.
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
        # The API server resumes no sessions, so no tickets are sent. The usual two tickets would
        # cost a seventh of a handshake, and many pods at once cause many handshakes.
        context.num_tickets = 0
        if self._verifies_clients:
            # Both contexts need the mode: a connection keeps the mode of the first, and uses the
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
    # Python's ssl module reads certificates only from files. This file is in memory, and is gone
    # when its descriptor is closed, so the key is never on a disk.
    descriptor = os.memfd_create("roost-leaf", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as memory:
        memory.write(chain_pem.rstrip() + b"\n" + key_pem)
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_reject_password)


def _reject_password() -> bytes:
    # Without this function, OpenSSL would ask for a password on the terminal, and wait.
    raise ValueError("encrypted keys aren't supported")
