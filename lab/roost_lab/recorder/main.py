"""Wire the recorder: settings, database, streams and probes, from options to exit code."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path
from typing import Final

import yaml

from roost_core.http.ops_server import OpsServer
from roost_core.http.server import BindError, bind
from roost_core.kube import logs
from roost_core.kube.account import connect
from roost_core.kube.client import Client, ClusterError
from roost_core.kube.kube_version import read_minor
from roost_core.kube.process import stop_on_signals, version
from roost_core.kube.readiness import check_all
from roost_core.release.reader import SettingsError, SettingsFault, describe
from roost_core.scheduler.plugins import OLDEST_MINOR
from roost_core.scheduler.profile import Profile, ProfileError, default_profile, read_each_profile
from roost_lab.recorder.options import RecorderOptions
from roost_lab.recorder.recording.metrics import RecorderMetrics
from roost_lab.recorder.recording.recorder import Recording, RecordingError
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.recording.settings import RecorderSettings, load_settings
from roost_lab.recorder.store.database import Store, StoreError, Unavailable
from roost_lab.units import DAY_US

log = logging.getLogger(__name__)

# How long to wait for a database that starts at the same time.
START_SECONDS: Final = 120.0
RETRY_SECONDS: Final = 2.0
FORGET_SECONDS: Final = 3600.0
_CONFIGURATION: Final = "KubeSchedulerConfiguration"


def serve(options: RecorderOptions) -> int:
    """Record until SIGTERM.

    0: ended normally; 1: it could not start or continue, and stderr says why.
    """
    logs.configure(options.log_level)
    try:
        _run(options, load_settings(options.settings_path))
    except SettingsError as error:
        for fault in error.faults:
            # Keys of the settings don't name their file; faults of whole files do.
            is_file = fault.key in (
                str(options.settings_path),
                str(options.scheduler_configuration_path),
            )
            where = "" if is_file else f"{options.settings_path}: "
            print(f"roost record: {where}{fault}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    except (ClusterError, BindError, RecordingError, StoreError) as error:
        print(f"roost record: {error}", file=sys.stderr)  # noqa: T201 - a command's talk
        return 1
    except Exception as error:  # a bug: the process must end visibly, so that it is restarted
        log.exception("ended by an unexpected error")
        print(f"roost record: unexpected {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - as above
        return 1
    return 0


def _run(options: RecorderOptions, settings: RecorderSettings) -> None:
    stop = threading.Event()
    stop_on_signals(stop)
    client = connect(options.kubeconfig)
    profiles = scheduler_profiles(options.scheduler_configuration_path, client)
    metrics = RecorderMetrics(version())
    store = Store.open(options.database)
    _migrate(store, stop)
    if stop.is_set():
        return
    recording = Recording(client, settings, store, metrics, model=Model(profiles))
    metrics.observe(
        is_recording=lambda: recording.readiness().passed, behind_seconds=recording.behind_seconds
    )
    bound = bind(options.bind_address, options.port)
    checks = {"recording": recording.readiness}
    ops = OpsServer(bound, metrics_text=metrics.text, readiness=lambda: check_all(checks))
    ops.start()
    if settings.retention_days:
        threading.Thread(
            target=forget_old_rows,
            args=(store, settings.retention_days, stop),
            name="forget",
            daemon=True,
        ).start()
    log.info("recording database=%s port=%d version=%s", store.shown_url, ops.port, version())
    try:
        with store.run(client.host, version(), settings.settings_hash):
            recording.run(stop)
    finally:
        ops.stop()
        store.close()
    log.info("stopped")


def scheduler_profiles(path: Path | None, client: Client) -> dict[str, Profile]:
    """The release's profiles and the default scheduler's, for the cluster's minor.

    Raises SettingsError.
    """
    minor = max(read_minor(client), OLDEST_MINOR)
    profiles = {"default-scheduler": default_profile(minor)}
    if path is None:
        return profiles
    try:
        configuration = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
        kind = configuration.get("kind") if isinstance(configuration, dict) else configuration
        if kind != _CONFIGURATION:
            raise SettingsError(
                [SettingsFault(str(path), describe(kind), f"the kind {_CONFIGURATION}")]
            )
        known, faults = read_each_profile(configuration, minor)
        for fault in faults.values():
            log.warning(
                "pods of a scheduler profile that Roost doesn't model are counted, but not"
                " judged: %s",
                fault,
            )
        return profiles | known
    except OSError as error:
        raise SettingsError(
            [SettingsFault(str(path), f"no readable file ({error.strerror})", "a YAML file")]
        ) from None
    except (yaml.YAMLError, ProfileError, TypeError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise SettingsError([SettingsFault(str(path), message, f"a {_CONFIGURATION}")]) from None


def _migrate(store: Store, stop: threading.Event) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not stop.is_set():
        try:
            store.migrate()
        except Unavailable as error:
            if time.monotonic() > deadline:
                raise
            log.warning("waiting for the database: %s", error)
            stop.wait(RETRY_SECONDS)
        else:
            return


def forget_old_rows(store: Store, retention_days: int, stop: threading.Event) -> None:
    """Delete what is older than `retention_days`, again each FORGET_SECONDS, until `stop`."""
    while not stop.is_set():
        try:
            counts = store.forget_before(time.time_ns() // 1000 - retention_days * DAY_US)
        except StoreError as error:
            log.warning("old records not deleted: %s", error)
        except Exception:
            # the thread must survive any error: without it the database would only grow
            log.exception("old records not deleted")
        else:
            if any(counts.values()):
                log.info(
                    "deleted old records: %s",
                    ", ".join(f"{name}={count}" for name, count in counts.items() if count),
                )
        stop.wait(FORGET_SECONDS)
