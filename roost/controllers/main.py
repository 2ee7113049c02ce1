"""Start `roost controllers`: settings, watches, Lease, loop and probes, from options to exit
code.
"""

from __future__ import annotations

import functools
import gc
import logging
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from roost.controllers.certificates import CertificateKeeper, Lifetimes, service_names
from roost.controllers.contract.snapshot import Moment
from roost.controllers.controllers_options import ControllersOptions
from roost.controllers.controllers_settings import ControllersSettings, load_settings
from roost.controllers.image_gate.plan import NAME as GATE
from roost.controllers.runtime.apply import Applier
from roost.controllers.runtime.budget import WRITES_PER_MINUTE, MinuteBudget
from roost.controllers.runtime.events import EventWriter
from roost.controllers.runtime.loop import Loop, show_plan
from roost.controllers.runtime.metrics import ControllersMetrics
from roost.controllers.runtime.starts import Starts
from roost.controllers.runtime.watching.watched_cluster import WatchedCluster
from roost_core.http.ops_server import OpsServer
from roost_core.http.server import BindError, bind
from roost_core.kube import logs
from roost_core.kube.account import connect, own_service_account
from roost_core.kube.client import Client, ClusterError
from roost_core.kube.kube_version import follow_minor, wait_for_minor
from roost_core.kube.leader_election import Leadership
from roost_core.kube.process import return_freed_memory, stop_on_signals, version
from roost_core.kube.readiness import Check, Readiness, check_all
from roost_core.kube.webhook_secrets import BundleField, SharedSecret
from roost_core.release.reader import SettingsError, SettingsFault

log = logging.getLogger(__name__)

# For threads to end, so that the Lease is released.
STOP_SECONDS: Final = 5.0
# How long the first lists may take.
LIST_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.05
# How long to wait for an API server that is still starting.
VERSION_SECONDS: Final = 60.0
# A pod's JSON alone is some hundred containers, and a plan creates thousands; hardly any are in a
# cycle.
GC_THRESHOLDS: Final = (50_000, 20, 20)
HOUR_SECONDS: Final = 3600.0
DAY_SECONDS: Final = 24 * HOUR_SECONDS


def serve(options: ControllersOptions) -> int:
    """Run one replica until SIGTERM.

    Returns 0 after an orderly end, 1 if it could not start; stderr says why.
    """
    logs.configure(options.log_level)
    return_freed_memory()
    try:
        # By a client without metrics: the metrics come from the planners, which need the minor.
        minor = wait_for_minor(connect(options.kubeconfig), VERSION_SECONDS)
        settings = load_settings(options.settings_path, options.scheduler_configuration_path, minor)
        _check_release(options, settings)
        if options.dry_run:
            _print_plans(options, settings)
            return 0
        _Replica(options, settings, minor).run()
    except SettingsError as error:
        for fault in error.faults:
            # Keys of release.json don't name the file; other faults do.
            names_file = fault.key.startswith("--") or fault.key in map(str, options.files)
            where = "" if names_file else f"{options.settings_path}: "
            print(f"roost controllers: {where}{fault}", file=sys.stderr)  # noqa: T201 - a command's output
        return 1
    except (ClusterError, BindError) as error:
        print(f"roost controllers: {error}", file=sys.stderr)  # noqa: T201 - a command's output
        return 1
    return 0


def _certificate_keeper(
    options: ControllersOptions,
    client: Client,
    owner: Callable[[], dict[str, Any] | None],
    may_write: Callable[[], bool],
    metrics: ControllersMetrics,
) -> CertificateKeeper | None:
    """Return the webhook's certificate keeper, None if there is to be none.

    Raises SettingsError.
    """
    if not options.webhook_configuration:
        return None
    host = urlsplit(options.webhook_url).hostname
    if not options.ca_secret or not options.leaf_secret or not (options.webhook_service or host):
        found = f"--webhook-configuration={options.webhook_configuration} alone"
        expected = "--ca-secret, --leaf-secret and --webhook-service (or --webhook-url) beside it"
        raise SettingsError([SettingsFault("--webhook-configuration", found, expected)])
    names: tuple[str, ...] = ()
    if options.webhook_service:
        names += service_names(options.webhook_service, options.namespace)
    if host:
        names += (host,)
    return CertificateKeeper(
        names=names,
        ca_name=f"roost-ca.{options.release}.{options.namespace}",
        lifetimes=Lifetimes(
            ca=options.ca_days * DAY_SECONDS, leaf=options.leaf_hours * HOUR_SECONDS
        ),
        ca_secret=SharedSecret(client, options.namespace, options.ca_secret, owner),
        leaf_secret=SharedSecret(client, options.namespace, options.leaf_secret, owner),
        bundle=BundleField(client, options.webhook_configuration),
        is_leader=may_write,
        show=metrics.show_certificates,
    )


def _check_release(options: ControllersOptions, settings: ControllersSettings) -> None:
    if (settings.shared.name, settings.shared.namespace) != (options.release, options.namespace):
        found = f"release {settings.shared.name!r} in namespace {settings.shared.namespace!r}"
        expected = (
            f"--release={options.release} --namespace={options.namespace}: mount the release's own"
            " ConfigMap"
        )
        raise SettingsError([SettingsFault("release and namespace", found, expected)])


class _Replica:
    """One replica. Parts that are made first reach those made later by its methods."""

    def __init__(
        self, options: ControllersOptions, settings: ControllersSettings, minor: int
    ) -> None:
        """Raises SettingsError."""
        self._options = options
        self._minor = minor
        self._stop = threading.Event()
        self._planners = settings.planners
        self._metrics = ControllersMetrics(
            version(), [gauge for planner in self._planners for gauge in planner.gauges]
        )
        self._client = connect(
            options.kubeconfig, lambda verb: self._metrics.requests.labels(verb).inc()
        )
        # The owner of the objects that this replica creates.
        self._owner = functools.cache(lambda: own_service_account(self._client, options.namespace))
        identity = options.identity or f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._leadership = Leadership(
            self._client,
            options.namespace,
            options.lease_name,
            identity,
            owner=self._owner,
            is_fit=self._is_fit,
        )
        self._cluster = WatchedCluster(
            self._client,
            settings.shared,
            all_namespaces=not options.own_namespace_only,
            on_change=self._wake,
            on_minor_change=self._wake_later,
            on_error=lambda kind: self._metrics.watch_errors.labels(kind).inc(),
        )
        self._starts = Starts(settings.shared, self._metrics)
        self._loop = self._make_loop(settings, identity)
        self._certificates = _certificate_keeper(
            options, self._client, self._owner, self._may_write, self._metrics
        )

    def run(self) -> None:
        """Work until SIGTERM. Raises BindError."""
        stop_on_signals(self._stop)
        ops = self._serve_probes()
        # The first lists create millions of objects, and no cycles.
        gc.disable()
        self._cluster.start(self._stop)
        threads = self._start_threads()
        _settle_memory(self._cluster, self._stop)
        self._stop.wait()
        self._loop.wake()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        ops.stop()
        log.info("stopped")

    def _make_loop(self, settings: ControllersSettings, identity: str) -> Loop:
        shared = settings.shared
        applier = Applier(
            self._client,
            self._options.namespace,
            writes=MinuteBudget(WRITES_PER_MINUTE, time.monotonic),
            evictions=MinuteBudget(shared.evictions_per_minute, time.monotonic),
            events=EventWriter(self._client, identity, hub=f"{shared.name}.{shared.namespace}"),
            may_write=self._may_write,
            on_eviction=self._metrics.evictions.inc,
            on_done=self._note_progress,
            owner=self._owner,
        )
        return Loop(
            self._planners,
            self._cluster.snapshot,
            applier,
            self._metrics,
            is_leader=lambda: self._leadership.is_leader,
            is_current=lambda: self._cluster.readiness().passed,
            follow=self._stand_by,
            observe=lambda snapshot: self._starts.follow(snapshot, time.time()),
            vital=frozenset({GATE}),
        )

    def _wake(self) -> None:
        self._loop.wake()

    def _wake_later(self) -> None:
        self._loop.wake_later()

    def _note_progress(self) -> None:
        self._loop.progressed()

    def _is_fit(self) -> bool:
        """Whether this replica may lead.

        A leader that hangs or whose watches fail would do nothing, and keep the other replica from
        leading. The webhook reads from the Lease whether nodes' labels are maintained.
        """
        return self._cluster.readiness().passed and self._loop.is_working

    def _may_write(self) -> bool:
        return self._leadership.is_leader and not self._stop.is_set()

    def _stand_by(self) -> None:
        self._starts.forget()
        self._cluster.follow()

    def _serve_probes(self) -> OpsServer:
        checks: dict[str, Check] = {
            "watches": self._cluster.readiness,
            "loop": lambda: Readiness(self._loop.is_alive),
        }
        if self._certificates is not None:
            checks["certificates"] = self._certificates.readiness
        ops = OpsServer(
            bind(self._options.bind_address, self._options.port),
            metrics_text=self._metrics.text,
            is_alive=lambda: self._loop.is_alive,
            readiness=lambda: check_all(checks),
        )
        ops.start()
        log.info(
            "running controllers=%s port=%d version=%s kubernetes=1.%d",
            ",".join(planner.name for planner in self._planners),
            ops.port,
            version(),
            self._minor,
        )
        return ops

    def _start_threads(self) -> list[threading.Thread]:
        work: dict[str, Callable[[threading.Event], None]] = {
            "lease": self._leadership.run,
            "loop": self._loop.run,
            "minor": self._follow_minor,
        }
        if self._certificates is not None:
            work["certificates"] = self._certificates.run
        threads = [
            threading.Thread(target=target, args=(self._stop,), name=name, daemon=True)
            for name, target in work.items()
        ]
        for thread in threads:
            thread.start()
        return threads

    def _follow_minor(self, stop: threading.Event) -> None:
        follow_minor(self._client, self._minor, stop, self._end_for)

    def _end_for(self, new_minor: int) -> None:
        """Planners follow the rules of one minor: the kubelet restarts the container, which then
        reads the new one.
        """
        log.info(
            "the cluster is now Kubernetes 1.%d, was 1.%d: exiting, to restart with it",
            new_minor,
            self._minor,
        )
        self._stop.set()


def _has_listed(cluster: WatchedCluster, stop: threading.Event) -> bool:
    """Wait for the first lists; False: they took too long."""
    deadline = time.monotonic() + LIST_SECONDS
    while not cluster.readiness().passed:
        if time.monotonic() >= deadline or stop.wait(LOOK_SECONDS):
            return False
    return True


def _settle_memory(cluster: WatchedCluster, stop: threading.Event) -> None:
    """Exclude the objects of the first lists from garbage collection, which would traverse them
    again and again.
    """
    _has_listed(cluster, stop)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def _print_plans(options: ControllersOptions, settings: ControllersSettings) -> None:
    """Print what would be done now. Raises ClusterError."""
    stop = threading.Event()
    client = connect(options.kubeconfig)
    cluster = WatchedCluster(
        client,
        settings.shared,
        all_namespaces=not options.own_namespace_only,
        on_change=lambda: None,
    )
    cluster.start(stop)
    try:
        if not _has_listed(cluster, stop):
            detail = cluster.readiness().detail
            raise ClusterError(
                f"the cluster could not be listed within {LIST_SECONDS:.0f} s: {detail}"
            )
        now = Moment(time.time(), time.monotonic())
        print(show_plan(settings.planners, cluster.snapshot(), now), end="")  # noqa: T201 - the output
    finally:
        stop.set()
