"""Start a real etcd, kube-apiserver and kube-controller-manager on loopback, and stop them without
a trace.

Owns one cluster: its ports, keys, users and processes. Nodes and kubelets there are none: see
`nodes` and `pods`.
"""

import base64
import contextlib
import http.client
import json
import os
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from roost_core.objects.fields import JSONObject
from tests.harness.api import Api, ApiError
from tests.harness.binaries import NEWEST_MINOR, ensure_binary
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import Process, ProgramExitedError, RunFolder
from tests.harness.talk import say
from tests.harness.waiting import wait_until

READY_SECONDS = 90.0  # a bound for an overloaded machine; an idle one takes three
ADMIN = "admin"
ISSUER = "https://kubernetes.default.svc"
# What turns workloads into pods and keeps names in order. Left out: node-lifecycle-controller,
# which would taint our nodes for having no kubelet, and pod-garbage-collector-controller, which
# would race with tests that delete nodes.
CONTROLLERS = (
    *(
        "clusterrole-aggregation-controller",
        "root-ca-certificate-publisher-controller",
        "serviceaccount-controller",
    ),
    *(
        f"{kind}-controller"
        for kind in ("daemonset", "deployment", "disruption", "garbage-collector")
    ),
    *(f"{kind}-controller" for kind in ("job", "namespace", "replicaset", "statefulset")),
)


class KubectlError(RuntimeError):
    """kubectl failed; the message is what it wrote to stderr."""


class ControlPlane:
    """A cluster of our own: `with ControlPlane() as cluster: cluster.api.create(pod)`.

    minor: of Kubernetes. controllers: names for kube-controller-manager; empty starts none.
    audit_level: "Metadata" or "RequestResponse" writes an audit log, read by `audit_events`.
    apiserver_flags and controller_flags: added last, so they win.
    """

    def __init__(
        self,
        minor: str = NEWEST_MINOR,
        *,
        controllers: Sequence[str] = CONTROLLERS,
        audit_level: str | None = None,
        apiserver_flags: Sequence[str] = (),
        controller_flags: Sequence[str] = (),
    ) -> None:
        self.minor = minor
        self._controllers = tuple(controllers)
        self._audit_level = audit_level
        self._apiserver_flags = tuple(apiserver_flags)
        self._controller_flags = tuple(controller_flags)
        self._stack = contextlib.ExitStack()
        self._kubeconfigs = 0
        self.keep_logs = False  # set: `stop` keeps the folder and prints where it is

    # Life

    def start(self) -> Self:
        """Build what is missing, start everything, and return when the API server is ready."""
        names = [
            "etcd",
            "kube-apiserver",
            *(["kube-controller-manager"] if self._controllers else []),
        ]
        programs = {name: ensure_binary(name, self.minor) for name in names}
        self.run = RunFolder()
        self._stack = contextlib.ExitStack()
        try:
            self._start_all(programs)
        except BaseException:
            self.stop(keep_logs=True)
            raise
        return self

    def stop(self, *, keep_logs: bool = False) -> None:
        """Stop everything and remove the folder; keep it, and say where, when asked or when
        `keep_logs` is set.
        """
        self._stack.close()
        if (kept := self.run.close(keep=keep_logs or self.keep_logs)) is not None:
            say(f"control plane's logs kept in {kept}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(keep_logs=error is not None and not isinstance(error, KeyboardInterrupt))

    def on_stop(self, call: Callable[[], object]) -> None:
        """Have `call` made when the cluster stops, the last one first."""
        self._stack.callback(call)

    # Ways in

    @property
    def folder(self) -> Path:
        """The private folder of this cluster: programs' logs are `NAME.log` in it."""
        return self.run.path

    @property
    def server(self) -> str:
        return f"https://{LOOPBACK}:{self._port.number}"

    @property
    def ca_path(self) -> Path:
        """The certificate, PEM, that the API server's own certificate is checked against."""
        return self.folder / "certificates" / "apiserver.crt"

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002
        kubeconfig: Path | None = None,
    ) -> str:
        """Run kubectl and return its stdout. input: its stdin.

        Raises KubectlError with its stderr.
        """
        done = subprocess.run(
            [str(ensure_binary("kubectl", self.minor)), *arguments],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            # Its own HOME: kubectl caches the API's discovery there, by address, and addresses come
            # again.
            env={
                **os.environ,
                "KUBECONFIG": str(kubeconfig or self.kubeconfig),
                "HOME": str(self.folder),
            },
        )
        if done.returncode != 0:
            raise KubectlError(
                f"kubectl {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout

    def api_as(self, token: str) -> Api:
        api = Api(self.server, token, str(self.ca_path))
        self._stack.callback(api.close)
        return api

    def service_account_token(self, namespace: str, name: str) -> str:
        spec = {"expirationSeconds": 24 * 3600}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.api.request("POST", path, request)["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        token = self.service_account_token(namespace, name)
        return self.write_kubeconfig(token, namespace=namespace, label=f"{namespace}-{name}")

    def write_kubeconfig(
        self, token: str, *, namespace: str = "default", label: str = "user"
    ) -> Path:
        ca = base64.b64encode(self.ca_path.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": label,
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self.server, "certificate-authority-data": ca},
                }
            ],
            "users": [{"name": label, "user": {"token": token}}],
            "contexts": [
                {
                    "name": label,
                    "context": {"cluster": "test", "user": label, "namespace": namespace},
                }
            ],
        }
        self._kubeconfigs += 1
        path = self.folder / f"{label}-{self._kubeconfigs}.kubeconfig"
        _write_private(path, yaml.safe_dump(config))
        return path

    def start_apiserver(self) -> None:
        """Start the API server, or after `apiserver.kill()` the same one again; returns when it is
        ready.
        """
        self.apiserver = self.run.start(
            "kube-apiserver", self._apiserver_program, self._apiserver_arguments()
        )
        self._wait_ready()

    # Shortcuts

    def create_namespace(
        self, name: str | None = None, labels: Mapping[str, str] | None = None
    ) -> str:
        """A namespace that takes pods at once (its `default` ServiceAccount is there); returns its
        name.
        """
        name = name or f"test-{secrets.token_hex(4)}"
        meta = {"name": name, "labels": dict(labels or {})}
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        account = f"/api/v1/namespaces/{name}/serviceaccounts"
        if "serviceaccount-controller" in self._controllers:
            wait_until(
                lambda: self.api.find(f"{account}/default"), 120, f"ServiceAccount {name}/default"
            )
        else:
            self.api.create(
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}},
                name,
            )
        return name

    def create_pod(self, manifest: Mapping[str, Any], namespace: str | None = None) -> JSONObject:
        return self.api.create({"apiVersion": "v1", "kind": "Pod", **manifest}, namespace)

    def pod(self, name: str, namespace: str = "default") -> JSONObject:
        return self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def wait_for_pod_node(
        self, name: str, namespace: str = "default", timeout_seconds: float = 30.0
    ) -> str:
        def has_node(pod: JSONObject) -> bool:
            return bool(pod["spec"].get("nodeName"))

        return str(
            self.wait_for_pod(name, namespace, has_node, "be bound", timeout_seconds)["spec"][
                "nodeName"
            ]
        )

    def wait_for_pod_phase(
        self,
        name: str,
        namespace: str = "default",
        phase: str = "Running",
        timeout_seconds: float = 30.0,
    ) -> JSONObject:
        def in_phase(pod: JSONObject) -> bool:
            return bool(pod["status"].get("phase") == phase)

        return self.wait_for_pod(name, namespace, in_phase, f"be {phase}", timeout_seconds)

    def wait_for_pod(
        self,
        name: str,
        namespace: str,
        rule: Callable[[JSONObject], bool],
        what: str,
        timeout_seconds: float = 30.0,
    ) -> JSONObject:
        """Wait until `rule` holds for a pod, and return the pod; what: the rule in words, as in "be
        bound".
        """

        def find() -> JSONObject | None:
            pod = self.pod(name, namespace)
            return pod if rule(pod) else None

        def explain() -> str:
            return self._why(name, namespace)

        return wait_until(
            find, timeout_seconds, f"pod {namespace}/{name} to {what}", explain=explain
        )

    def audit_events(self) -> list[JSONObject]:
        """What the audit log holds so far, one item a request that has been answered."""
        if self._audit_level is None:
            raise ValueError('no audit log: start the control plane with audit_level="Metadata"')
        # The server may be writing the last line.
        whole, _, _ = (self.folder / "audit.log").read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def _why(self, name: str, namespace: str) -> str:
        pod = self.pod(name, namespace)
        path = f"/api/v1/namespaces/{namespace}/events"
        events = self.api.list(path, fieldSelector=f"involvedObject.name={name}")
        told = [f"{event['reason']}: {event.get('message', '')}" for event in events]
        return json.dumps(
            {"node": pod["spec"].get("nodeName"), "status": pod["status"], "events": told}, indent=1
        )

    # Programs

    def _start_all(self, programs: Mapping[str, Path]) -> None:
        self._port = self._stack.enter_context(ReservedPort())
        token = secrets.token_urlsafe(32)
        self.etcd, self.etcd_url = self._start_etcd(programs["etcd"])
        key_path, self._token = self.folder / "service-account.key", token
        _write_private(key_path, _make_key())
        self._apiserver_program = programs["kube-apiserver"]
        self.start_apiserver()
        self.api = self.api_as(token)
        self.kubeconfig = self.write_kubeconfig(token, label=ADMIN)
        self.controller_manager = (
            self._start_controllers(programs["kube-controller-manager"])
            if self._controllers
            else None
        )

    def _start_etcd(self, program: Path) -> tuple[Process, str]:
        client_port = self._stack.enter_context(ReservedPort()).number
        client = f"http://{LOOPBACK}:{client_port}"
        peer = f"http://{LOOPBACK}:{self._stack.enter_context(ReservedPort()).number}"
        flags = [
            "--name=test",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            "--socket-reuse-port",  # beside our reservation
            "--unsafe-no-fsync",  # the data dies with the test
            "--log-level=warn",
        ]
        process = self.run.start("etcd", program, flags)

        def healthy() -> bool:
            connection = http.client.HTTPConnection(LOOPBACK, client_port, timeout=5)
            with contextlib.suppress(OSError), contextlib.closing(connection):
                connection.request("GET", "/health")
                return b'"true"' in connection.getresponse().read()
            return self._not_ended(process)

        wait_until(healthy, READY_SECONDS, "etcd to be healthy", explain=process.tail)
        return process, client

    def _apiserver_arguments(self) -> list[str]:
        key_path, token_path = self.folder / "service-account.key", self.folder / "tokens.csv"
        _write_private(token_path, f'{self._token},{ADMIN},{ADMIN},"system:masters"\n')
        return [
            f"--etcd-servers={self.etcd_url}",
            f"--secure-port={self._port.number}",
            "--permit-port-sharing=true",  # beside our reservation
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            "--endpoint-reconciler-type=none",  # loopback is no address for an Endpoints object
            f"--cert-dir={self.ca_path.parent}",
            f"--token-auth-file={token_path}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={key_path}",
            f"--service-account-signing-key-file={key_path}",
            f"--service-account-issuer={ISSUER}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--allow-privileged=true",  # zero-to-jupyterhub's user pods ask for it
            *self._audit_flags(),
            *self._apiserver_flags,
        ]

    def _audit_flags(self) -> list[str]:
        if self._audit_level is None:
            return []
        rules = [{"level": self._audit_level}]
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": rules,
        }
        path = self.folder / "audit-policy.yaml"
        path.write_text(yaml.safe_dump(policy))
        (self.folder / "audit.log").touch()
        log_flag = f"--audit-log-path={self.folder / 'audit.log'}"
        return [f"--audit-policy-file={path}", log_flag, "--audit-log-mode=blocking"]

    def _wait_ready(self) -> None:
        def ready() -> bool:
            # Until it's ready there is no certificate (it writes its own), or no listener, or an
            # answer that says so.
            with (
                contextlib.suppress(OSError, ApiError),
                contextlib.closing(Api(self.server, self._token, str(self.ca_path))) as api,
            ):
                return bool(api.get("/readyz"))
            return self._not_ended(self.apiserver)

        wait_until(ready, READY_SECONDS, "kube-apiserver to be ready", explain=self.apiserver.tail)

    def _start_controllers(self, program: Path) -> Process:
        flags = [
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers={','.join(self._controllers)}",
            f"--root-ca-file={self.ca_path}",
            "--leader-elect=false",
            "--secure-port=0",
            # The default of 20 requests a second makes a StatefulSet of 200 pods a matter of
            # minutes.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            *self._controller_flags,
        ]
        return self.run.start("kube-controller-manager", program, flags)

    def _not_ended(self, process: Process) -> bool:
        if not process.is_running:
            raise ProgramExitedError(process.epitaph("before it was ready"))
        return False


def _make_key() -> str:
    """A new P-256 private key in PEM (SEC 1), as the API server reads it."""
    form = serialization.PrivateFormat.TraditionalOpenSSL
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(
        serialization.Encoding.PEM, form, serialization.NoEncryption()
    ).decode()


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
