"""Run Roost as rendered on a test cluster: manifests applied, its programs started as their own
accounts.

Owns what a kubelet would do for the rendered Deployments: it takes their command, the rendered
ConfigMaps, the Secret of the webhook's certificate and a token of the rendered ServiceAccount, and
starts the programs on loopback.
"""

import base64
import contextlib
import hashlib
import itertools
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import yaml

from roost_core.kube.pki import make_authority, sign_leaf
from roost_core.objects.fields import JSONObject
from tests.builders import without_mover_times
from tests.harness.api import ApiError
from tests.harness.binaries import NEWEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.life import Started
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import Process
from tests.harness.scheduler import Scheduler, start_scheduler
from tests.harness.waiting import wait_until

ROOST = Path(sys.executable).parent / "roost"
READY_SECONDS = 60.0
# Leases are stale after six seconds, from thirty: a partition needn't last minutes to be one.
FAST_ELECTION = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
# How late a changed Secret comes to a pod that mounts it; kubelets take up to 90 s.
MOUNT_SECONDS = 0.3
CERTIFICATE = "webhook-certificate"
DAY_SECONDS = 86400.0
# Of the rendered scheduler's; ports, files and log levels are a test's own affair.
_SCHEDULER_FLAGS = ("--feature-gates=", "--pod-max-in-unschedulable-pods-duration=")


def run_roost(*arguments: str) -> str:
    """What a command of `roost` prints. Raises RuntimeError with what it says, if it fails."""
    done = subprocess.run([ROOST, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = f"exit code {done.returncode}: {done.stderr.strip()}"
        raise RuntimeError(f"roost {' '.join(arguments)}: {said}")
    return done.stdout


def render(
    values: Mapping[str, Any],
    *,
    release: str,
    namespace: str,
    folder: Path,
    minor: str = NEWEST_MINOR,
) -> list[JSONObject]:
    """What `roost render` prints for these values over the defaults; times of the placeholder mover
    go by it.
    """
    values, times = without_mover_times(values)
    values_path = (
        folder / f"values-{hashlib.sha256(json.dumps(values).encode()).hexdigest()[:8]}.json"
    )
    values_path.write_text(json.dumps(values))
    options = ["--release", release, "--namespace", namespace, "--kube-version", minor]
    printed = run_roost("render", "-f", str(values_path), *options)
    documents = [
        document for document in yaml.load_all(printed, Loader=yaml.CSafeLoader) if document
    ]
    for data in (one.get("data") or {} for one in documents if one["kind"] == "ConfigMap"):
        if "release.json" not in data:
            continue
        settings = json.loads(data["release.json"])
        settings["placeholderMover"] |= times
        data["release.json"] = json.dumps(settings)
    return documents


def _identity(manifest: JSONObject) -> tuple[str, str | None, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace"), metadata["name"]


def read_page(port: int, path: str) -> tuple[int, str]:
    """Status and text of a page on loopback; status 0 while nothing answers."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def _logged_port(process: Process) -> int:
    return int(process.wait_for_log(" port=").partition(" port=")[2].split()[0])


class Replica:
    """One replica of a rendered program of Roost's, as a process on loopback."""

    def __init__(self, process: Process, metrics_port: int) -> None:
        self.process = process
        self.metrics_port = metrics_port

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page on the metrics port; status 0 while nothing answers."""
        return read_page(self.metrics_port, path)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels; 0.0 when there is none."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            sample, _, value = line.rpartition(" ")
            head, _, rest = sample.partition("{")
            if head == name and all(f'{key}="{wanted}"' in rest for key, wanted in labels.items()):
                total += float(value)
        return total

    def wait_ready(self, timeout_seconds: float = READY_SECONDS) -> None:
        def is_ready() -> bool:
            if self.process.exit_code is not None:
                raise RuntimeError(self.process.epitaph("before it was ready"))
            return self.get("/readyz")[0] == 200

        wait_until(
            is_ready,
            timeout_seconds,
            f"{self.process.name} to be ready",
            explain=lambda: f"{self.get('/readyz')}\n{self.process.tail()}",
        )


class Webhook(Replica):
    def __init__(self, process: Process, port: int, metrics_port: int) -> None:
        super().__init__(process, metrics_port)
        self.port = port


class Controllers(Replica):
    def wait_leading(self, timeout_seconds: float = READY_SECONDS) -> None:
        self.wait_ready(timeout_seconds)
        wait_until(
            lambda: self.metric("roost_controllers_leader") == 1.0,
            timeout_seconds,
            f"{self.process.name} to lead",
            explain=self.process.tail,
        )


class Stack(Started):
    """Roost for one hub on a test cluster.

    values: what differs from the defaults. Nodes, builder pods and the like are the test's own
        affair.
    controllers: run a replica of the controllers, too, and return when it leads.
    own_certificates: the webhook's certificate is the controllers' leader's (mode `self`), as it
        is by default where both run. Else it is given (mode `secret`), so that a test of the
        webhook alone needs no leader.
    leader_election: durations of the scheduler's Lease, in place of kube-scheduler's own.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        namespace: str,
        values: Mapping[str, Any] | None = None,
        *,
        release: str = "hub",
        scheduler: bool = True,
        webhook: bool = True,
        controllers: bool = False,
        own_certificates: bool | None = None,
        scheduler_flags: Sequence[str] = ("--v=3",),
        leader_election: Mapping[str, str] | None = None,
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.release = release
        self._values = dict(values or {})
        self._with_scheduler = scheduler
        self._with_webhook = webhook
        self._with_controllers = controllers
        self._pretends_controllers = False
        self._own_certificates = (
            (webhook and controllers) if own_certificates is None else own_certificates
        )
        self._over = threading.Event()
        self._versions = itertools.count(1)
        self._scheduler_flags = tuple(scheduler_flags)
        self._leader_election = dict(leader_election or {})
        self._stack = contextlib.ExitStack()
        self._starts = 0
        self.schedulers: list[Scheduler] = []
        self.webhooks: list[Webhook] = []
        self.controllers: list[Controllers] = []
        self.recorders: list[Replica] = []

    # Life

    def start(self) -> Self:
        """Render, apply, start the programs, and return when the webhook is ready and the others
        lead.
        """
        self.folder = self.cluster.folder / f"stack-{self.release}-{self.namespace}"
        self.folder.mkdir(exist_ok=True)
        self.port = self._stack.enter_context(ReservedPort())
        try:
            if not self._own_certificates:
                self._make_certificate()
            self.apply({})
            if self._own_certificates:
                threading.Thread(target=self._keep_mounted, daemon=True).start()
            if self._with_controllers:
                self.start_controllers()
            # The webhook names a scheduler only once one has led.
            if self._with_scheduler:
                self.start_scheduler().wait_leading()
            elif self._with_webhook:
                self.pretend_scheduler()
            if self._with_webhook and not self._with_controllers:
                self.pretend_controllers()
            if self._with_webhook:
                self.start_webhook().wait_ready()
            for replica in self.controllers:
                replica.wait_leading()
        except BaseException:
            self.cluster.keep_logs = True
            self.stop()
            raise
        return self

    def _delete_controllers_lease(self) -> None:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        self.cluster.api.delete(f"{leases}/{self._controllers_lease}")

    def stop(self) -> None:
        """End the programs and remove what was applied."""
        if self._pretends_controllers:
            self._pretends_controllers = False
            self._delete_controllers_lease()
        self._over.set()
        for replica in (*self.recorders, *self.controllers, *self.webhooks):
            if replica.process.exit_code is None:
                replica.process.kill()
        for scheduler in self.schedulers:
            scheduler.kill()
        if hasattr(self, "manifests"):
            self.cluster.kubectl(
                "delete",
                "--ignore-not-found",
                "--wait=false",
                "-f",
                "-",
                input=yaml.safe_dump_all(self.manifests),
            )
        self._stack.close()

    # What is rendered

    def apply(self, more: Mapping[str, Any]) -> None:
        """Render the values with `more` over them (top-level keys replace); apply all but
        Deployments, prune.
        """
        self._values |= more
        values = dict(self._values)
        webhook = dict(values.get("webhook", {}))
        given = {} if self._own_certificates else {"certificates": self._certificates}
        values["webhook"] = {
            "url": f"https://{LOOPBACK}:{self.port.number}/mutate",
            **given,
            **webhook,
        }
        everything = render(
            values,
            release=self.release,
            namespace=self.namespace,
            folder=self.folder,
            minor=self.cluster.minor,
        )
        self.deployments = {
            m["metadata"]["labels"]["app.kubernetes.io/component"]: m
            for m in everything
            if m["kind"] == "Deployment"
        }
        before = getattr(self, "manifests", [])
        self.manifests = [manifest for manifest in everything if manifest["kind"] != "Deployment"]
        self.bring(values)
        kept = {_identity(manifest) for manifest in self.manifests}
        if gone := [manifest for manifest in before if _identity(manifest) not in kept]:
            self.cluster.kubectl(
                "delete", "--ignore-not-found", "-f", "-", input=yaml.safe_dump_all(gone)
            )
        for component in ("webhook", "controllers", "recorder"):
            self._mount(component)

    def bring(self, values: Mapping[str, Any]) -> None:
        """Put the manifests, which are what these values give, into the cluster."""
        self.cluster.kubectl(
            "apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(self.manifests)
        )

    def _mount(self, component: str) -> None:
        """Write a Deployment's ConfigMaps as files, swapped by a symbolic link as a kubelet
        does.
        """
        for volume in self._pod_spec(component).get("volumes", []):
            if "configMap" not in volume:
                continue
            found = self.find("ConfigMap", volume["configMap"]["name"])
            self._write_mounted(f"{component}-{volume['name']}", found["data"])

    def _make_certificate(self) -> None:
        """Give the webhook a certificate, and the values what they say of one that is given."""
        now = time.time()
        authority = make_authority("test", now, DAY_SECONDS)
        leaf = sign_leaf(authority, (LOOPBACK,), now, DAY_SECONDS)
        self._write_mounted(
            CERTIFICATE,
            {"tls.crt": leaf.certificate_pem.decode(), "tls.key": leaf.key_pem.decode()},
        )
        bundle = base64.b64encode(authority.certificate_pem).decode()
        self._certificates = {"mode": "secret", "secretName": "given", "caBundle": bundle}

    def _keep_mounted(self) -> None:
        """Mount the Secret of the webhook's certificate, and each change of it, as a kubelet does,
        but sooner.
        """
        mounted: dict[str, str] = {}
        while not self._over.wait(MOUNT_SECONDS):
            (name,) = (
                volume["secret"]["secretName"]
                for volume in self._pod_spec("webhook")["volumes"]
                if "secret" in volume
            )
            try:
                found = self.cluster.api.get(f"/api/v1/namespaces/{self.namespace}/secrets/{name}")
            except (ApiError, OSError):
                continue
            data = {
                key: base64.b64decode(value).decode()
                for key, value in found.get("data", {}).items()
            }
            if data != mounted:
                mounted = data
                self._write_mounted(CERTIFICATE, data)

    def _pod_spec(self, component: str) -> JSONObject:
        """The pod of a rendered Deployment; {} when it isn't rendered."""
        found: JSONObject = (
            self.deployments.get(component, {}).get("spec", {}).get("template", {}).get("spec", {})
        )
        return found

    def _write_mounted(self, volume: str, data: Mapping[str, str]) -> None:
        """Swap in a new version of what a volume, COMPONENT-NAME, holds."""
        version = self.folder / f"{volume}-{next(self._versions)}"
        version.mkdir()
        for name, text in data.items():
            (version / name).write_text(text)
        link, fresh = self.folder / volume, self.folder / f".{volume}-new"
        fresh.symlink_to(version.name)
        fresh.rename(link)

    def find(self, kind: str, name: str | None = None) -> JSONObject:
        found = [
            m for m in self.manifests if m["kind"] == kind and name in (None, m["metadata"]["name"])
        ]
        if len(found) != 1:
            raise LookupError(f"{len(found)} objects of kind {kind} with name {name}, expected one")
        return found[0]

    def scheduler_name(self, profile: str) -> str:
        """The schedulerName of a profile, read from the rendered configuration."""
        names = [
            str(profile["schedulerName"]) for profile in self.scheduler_configuration()["profiles"]
        ]
        return next(name for name in names if name.endswith(f".{profile}"))

    def scheduler_configuration(self) -> JSONObject:
        (name,) = (
            volume["configMap"]["name"]
            for volume in self._pod_spec("scheduler")["volumes"]
            if "configMap" in volume
        )
        (text,) = self.find("ConfigMap", name)["data"].values()
        loaded: JSONObject = yaml.safe_load(text)
        loaded["leaderElection"] |= self._leader_election
        return loaded

    def pretend_scheduler(self) -> None:
        """Hold the scheduler's Lease for a day, so that the webhook names a scheduler which nobody
        started.
        """
        for lease in (manifest for manifest in self.manifests if manifest["kind"] == "Lease"):
            self._hold_lease(lease["metadata"]["name"])

    def pretend_controllers(self) -> None:
        """Hold the controllers' Lease for a day, so that the gate trusts labels which a test
        wrote.
        """
        if "controllers" in self.deployments:
            self._hold_lease(self._controllers_lease)
            self._pretends_controllers = True

    @property
    def _controllers_lease(self) -> str:
        command = self._pod_spec("controllers")["containers"][0]["command"]
        (name,) = (
            argument.partition("=")[2]
            for argument in command
            if argument.startswith("--lease-name=")
        )
        return str(name)

    def _hold_lease(self, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        held = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"holderIdentity": "a-test", "leaseDurationSeconds": 86400, "renewTime": now},
        }
        self.cluster.kubectl(
            "apply",
            "--server-side",
            "--field-manager=a-test",
            "--force-conflicts",
            "-f",
            "-",
            input=yaml.safe_dump(held),
        )

    # Programs

    def _account(self, component: str) -> Path:
        return self.cluster.service_account_kubeconfig(
            self.namespace, self._pod_spec(component)["serviceAccountName"]
        )

    def start_webhook(self, *flags: str) -> Webhook:
        """Start a replica with the rendered command; loopback and files replace what a kubelet
        would provide.
        """
        metrics_port = self._stack.enter_context(ReservedPort())
        ports = (f"--port={self.port.number}", f"--metrics-port={metrics_port.number}")
        process = self._start("webhook", *ports, *flags)
        webhook = Webhook(process, self.port.number, metrics_port.number)
        self.webhooks.append(webhook)
        return webhook

    def start_scheduler(self, minor: str | None = None, *, named: bool = False) -> Scheduler:
        """Start a replica of the rendered scheduler, with the rendered flags that say how it works.

        minor: another kube-scheduler than the cluster's. named: on a host with the rendered name;
        needs root.
        """
        spec = self._pod_spec("scheduler")
        (container,) = spec["containers"]
        rendered = [flag for flag in container["command"] if flag.startswith(_SCHEDULER_FLAGS)]
        scheduler = start_scheduler(
            self.cluster,
            self.scheduler_configuration(),
            kubeconfig=self._account("scheduler"),
            flags=(*rendered, *self._scheduler_flags),
            minor=minor,
            host=spec["hostname"] if named else "",
        )
        self.schedulers.append(scheduler)
        return scheduler

    def arguments(self, component: str) -> list[str]:
        """The rendered arguments of `roost`, with the mounted files where we keep them, as the
        rendered account.
        """
        pod = self._pod_spec(component)
        (container,) = pod["containers"]
        volumes = {one["name"] for one in pod["volumes"] if "configMap" in one or "secret" in one}
        mounts = {
            mount["mountPath"]: mount["name"]
            for mount in container["volumeMounts"]
            if mount["name"] in volumes
        }

        def here(argument: str) -> str:
            for path, volume in mounts.items():
                argument = argument.replace(f"={path}", f"={self.folder / f'{component}-{volume}'}")
            return argument

        arguments = [here(argument) for argument in container["command"][1:]]
        return [*arguments, f"--kubeconfig={self._account(component)}"]

    def _start(
        self, component: str, *flags: str, environment: Mapping[str, str] | None = None
    ) -> Process:
        self._starts += 1
        name = f"{component}-{self.release}-{self.namespace}-{self._starts}"
        arguments = [*self.arguments(component), f"--bind-address={LOOPBACK}", *flags]
        return self.cluster.run.start(name, ROOST, arguments, environment=environment)

    def start_controllers(self, *flags: str) -> Controllers:
        """Start a replica of the controllers with the rendered command; does not wait until it
        leads.
        """
        if self._pretends_controllers:
            self._pretends_controllers = False
            self._delete_controllers_lease()
        process = self._start("controllers", "--port=0", *flags)
        controllers = Controllers(process, _logged_port(process))
        self.controllers.append(controllers)
        return controllers

    def start_recorder(self, *flags: str) -> Replica:
        """Start the recorder with the rendered command and variables; its volumes are folders below
        ours.
        """
        process = self._start(
            "recorder", "--port=0", *flags, environment=self.recorder_environment()
        )
        recorder = Replica(process, _logged_port(process))
        self.recorders.append(recorder)
        return recorder

    def recorder_environment(self) -> dict[str, str]:
        """The rendered variables of the recorder, with its volumes where we keep them."""
        (container,) = self._pod_spec("recorder")["containers"]
        files = {
            volume["name"]
            for volume in self._pod_spec("recorder")["volumes"]
            if "configMap" in volume
        }
        environment = {}
        for variable in container["env"]:
            environment[variable["name"]] = self._value_of(variable)
            for mount in container["volumeMounts"]:
                if mount["name"] not in files and variable.get("value", "").startswith(
                    f"{mount['mountPath']}/"
                ):
                    folder = self.folder / f"recorder-{mount['name']}"
                    folder.mkdir(exist_ok=True)
                    environment[variable["name"]] = str(folder) + variable["value"].removeprefix(
                        mount["mountPath"]
                    )
        return environment

    def _value_of(self, variable: JSONObject) -> str:
        """A rendered variable's value, from its Secret as a kubelet takes it."""
        if "value" in variable:
            return str(variable["value"])
        asked = variable["valueFrom"]["secretKeyRef"]
        secret = self.cluster.api.get(
            f"/api/v1/namespaces/{self.namespace}/secrets/{asked['name']}"
        )
        return base64.b64decode(secret["data"][asked["key"]]).decode()

    def restart_controllers(self) -> Controllers:
        """End all replicas and start one, as a Deployment does whose settings changed; returns when
        it leads.
        """
        for replica in self.controllers:
            if replica.process.exit_code is None:
                replica.process.stop()
        replica = self.start_controllers()
        replica.wait_leading()
        return replica

    def plan(self) -> str:
        """What `roost controllers --dry-run` prints, as the rendered account."""
        return run_roost(*self.arguments("controllers"), "--dry-run")

    # Pods

    def create_pod(self, body: Mapping[str, Any]) -> JSONObject:
        """Create a pod in the hub's namespace, through admission; returns it as it is stored."""
        return self.cluster.create_pod(body, self.namespace)

    def wait_for_node(self, name: str, timeout_seconds: float = 30.0) -> str:
        return self.cluster.wait_for_pod_node(name, self.namespace, timeout_seconds)
