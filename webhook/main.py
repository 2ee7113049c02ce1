"""Run the webhook: wire release document, certificates, facts and the two listeners, and return
the exit code.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
from typing import Final

import uvloop

from roost_core.http.ops_server import OpsServer
from roost_core.http.server import BindError, Limits, Server, bind
from roost_core.kube import logs
from roost_core.kube.account import connect
from roost_core.kube.client import ClusterError
from roost_core.kube.process import return_freed_memory, version
from roost_core.kube.readiness import Check, Readiness, check_all
from roost_core.release.release_settings import ReleaseSettings
from webhook.bounds import MAX_BODY_BYTES
from webhook.certificates.certificate_files import CertificateFiles
from webhook.certificates.tls import ServingCertificate
from webhook.facts.facts import Facts
from webhook.metrics import WebhookMetrics, show
from webhook.release_file import ReleaseFile
from webhook.review import Reviewer
from webhook.serving import Pulse, client_waits, create_app
from webhook.serving import serve as serve_reviews
from webhook.watching.keeper import FactsKeeper
from webhook.webhook_options import WebhookOptions

log = logging.getLogger(__name__)

# How long another thread can hold the interpreter while the event loop waits. Python's default of 5
# ms is ten reviews.
SWITCH_SECONDS: Final = 0.0005
# At the same time, including handshakes. An API server keeps up to 25 idle ones and opens one for
# each pod of a burst. Each takes up to 0.3 MiB while a large body is received.
MAX_CONNECTIONS: Final = 600
# How long a metrics page is reused: it takes some milliseconds to write, and anyone can request it.
METRICS_SECONDS: Final = 0.2
# How long to wait for threads at the end.
STOP_SECONDS: Final = 2.0
NO_FACTS: Final = Facts()


def serve(options: WebhookOptions) -> int:
    """Run one replica until SIGTERM.

    Returns 0 after draining, 1 when it can't start (stderr says why).
    """
    logs.configure(options.log_level)
    return_freed_memory()
    try:
        _Replica(options).run()
    except (ClusterError, BindError) as error:
        print(f"roost webhook: {error}", file=sys.stderr)  # noqa: T201 - a command's messages go to stderr
        return 1
    return 0


class _Replica:
    def __init__(self, options: WebhookOptions) -> None:
        self._options = options
        self._stop = threading.Event()
        self._metrics = WebhookMetrics(version())
        self._draining = threading.Event()
        self._pulse = Pulse()
        # The last metrics page, and when it was written.
        self._page = b""
        self._page_at = 0.0
        self._certificate = ServingCertificate(verifies_clients=options.client_ca is not None)
        self._facts: FactsKeeper | None = None
        self._release = ReleaseFile(
            options.release_file, self._metrics, self._follow, self._why_foreign
        )
        self._reviewer = Reviewer(
            lambda: self._release.settings,
            self._current_facts,
            time.monotonic,
            self._metrics.count_review,
        )
        self._server = Server(
            create_app(self._reviewer.review),
            is_draining=self._draining.is_set,
            tls=self._certificate.context,
            client_name=options.client_name,
            limits=Limits(connections=MAX_CONNECTIONS, body_bytes=MAX_BODY_BYTES),
            client_waits=client_waits,
            on_drop=self._metrics.count_drop,
        )

    def run(self) -> None:
        """Start everything, serve, and stop everything."""
        options = self._options
        # On the host network a new replica starts to listen while the old one drains.
        bound = bind(options.bind_address, options.port, shares_port=True)
        ops_bound = bind(options.bind_address, options.metrics_port, shares_port=True)
        certificate_files = self._read_certificate()
        checks: dict[str, Check] = {
            "serving": self._serving_readiness,
            "policy": self._release.readiness,
            "certificate": certificate_files.readiness,
        }
        # What follows the changes of what the replica knows, a thread for each.
        followers = [certificate_files.run, self._release.run]
        if not options.no_cluster:
            facts = self._facts = FactsKeeper(connect(options.kubeconfig), self._metrics)
            checks["facts"] = facts.readiness
            followers.append(facts.run)
        self._release.poll()

        ops = OpsServer(
            ops_bound,
            metrics_text=self._metrics_text,
            readiness=lambda: check_all(checks),
            is_alive=self._pulse.is_beating,
        )
        serving = serve_reviews(
            self._server,
            bound,
            self._certificate,
            draining=self._draining,
            drain_seconds=options.drain_seconds,
            pulse=self._pulse,
        )
        sys.setswitchinterval(SWITCH_SECONDS)
        # What is loaded now is never freed: keep the collector from traversing it while reviews
        # wait.
        gc.collect()
        gc.freeze()
        threads = [
            threading.Thread(target=follow, args=(self._stop,), daemon=True) for follow in followers
        ]
        for thread in threads:
            thread.start()
        log.info(
            "listening port=%d metrics_port=%d version=%s",
            options.port,
            options.metrics_port,
            version(),
        )
        ops.start()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serving)
        finally:
            ops.stop()
            self._stop.set()
            deadline = time.monotonic() + STOP_SECONDS
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
        log.info("stopped")

    def _read_certificate(self) -> CertificateFiles:
        """The folder of the certificate, once it has been read."""
        options = self._options
        files = CertificateFiles(
            options.certificate_folder,
            self._certificate,
            self._metrics,
            client_ca=options.client_ca,
        )
        files.poll()
        return files

    def _why_foreign(self, settings: ReleaseSettings) -> str:
        """Why a document isn't this replica's, "" if it is: its labels and schedulers would be
        another release's.
        """
        options = self._options
        if (settings.name, settings.namespace) == (options.release, options.namespace):
            return ""
        return (
            f"is of release {settings.name!r} in namespace {settings.namespace!r}, but this webhook"
            f" runs with --release={options.release} --namespace={options.namespace}. Mount its own"
            " release's ConfigMap."
        )

    def _follow(self, settings: ReleaseSettings) -> None:
        if self._facts is not None:
            self._facts.follow(settings)

    def _current_facts(self) -> Facts:
        return NO_FACTS if self._facts is None else self._facts.facts

    def _serving_readiness(self) -> Readiness:
        if self._draining.is_set():
            return Readiness(passed=False, detail="draining")
        if not self._server.is_listening:
            return Readiness(passed=False, detail="not listening yet")
        return Readiness(passed=True)

    def _metrics_text(self) -> bytes:
        now = time.monotonic()
        if not self._page or now - self._page_at >= METRICS_SECONDS:
            show(self._metrics.ring_nodes, self._reviewer.ring_sizes())
            # Parts are away by the facts that reviews read, not by the last look at the Lease.
            leases = self._current_facts().leases
            show(self._metrics.part_away, {part: lease.is_away for part, lease in leases.items()})
            self._page = self._metrics.text()
            self._page_at = now
        return self._page
