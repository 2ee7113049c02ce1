"""A real JupyterHub and its proxy as processes on loopback, with the rights of zero-to-jupyterhub's
hub.

Owns the two processes. The proxy is the npm package configurable-http-proxy, installed once in the
per-user cache from the lock file beside this module.
"""

import contextlib
import hashlib
import http.client
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import yaml

from generator.importing.seating import HUB_LINES
from roost_core.objects.fields import JSONObject
from tests.harness.binaries import HarnessUnavailableError, cache_root
from tests.harness.controlplane import ControlPlane
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.processes import Process
from tests.harness.waiting import wait_until
from tests.recorded_data import object_of

HERE = Path(__file__).parent
PASSWORD: Final = "made-up"
# Whose servers are seen: by itself a hub lists 200 users.
MOST_USERS: Final = 5000
# What docs/seated.md gives the role of seating's token.
SEATING_SCOPES: Final[tuple[str, ...]] = tuple(
    yaml.safe_load(HUB_LINES)["hub"]["loadRoles"]["roost-seating"]["scopes"]
)


def ensure_proxy() -> Path:
    """The proxy's program, installed now if it isn't yet.

    Raises HarnessUnavailableError without node or npm.
    """
    for needed in ("node", "npm"):
        if not shutil.which(needed):
            raise HarnessUnavailableError(
                f"no `{needed}` command on PATH; JupyterHub's proxy needs it. Install npm."
            )
    lock = HERE / "proxy" / "package-lock.json"
    folder = _installed("proxy", lock, ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"])
    return folder / "node_modules/configurable-http-proxy/bin/configurable-http-proxy"


def ensure_pinned_hub() -> Path:
    """A folder for PYTHONPATH with zero-to-jupyterhub's JupyterHub and idle culler; our hub is
    newer.
    """
    lock = HERE / "z2jh.txt"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    return _installed(
        "hub", lock, [*pip, "--no-deps", "--require-hashes", "--target=.", f"--requirement={lock}"]
    )


def _installed(name: str, lock: Path, command: Sequence[str]) -> Path:
    """A folder of the cache, in which `command` was run beside a copy of the lock file's folder;
    whole or not there.
    """
    target = cache_root() / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            folder = Path(scratch) / name
            if lock.parent == HERE:
                folder.mkdir()
            else:
                shutil.copytree(lock.parent, folder)
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise HarnessUnavailableError(
                    f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}"
                )
            with contextlib.suppress(OSError):  # another run was faster
                folder.rename(target)
    return target


class RealHub:
    """JupyterHub over a namespace of a test cluster: `with RealHub(cluster, namespace, **traits) as
    hub: hub.url`.

    packages: a folder whose JupyterHub runs instead of the environment's. extra_config: files of
    Python that end the hub's configuration, as hub.extraConfig does. groups: users by group. hub:
    JupyterHub's own settings. seating_scopes: what seating's token may. spawner: KubeSpawner's.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        namespace: str,
        *,
        packages: Path | None = None,
        extra_config: Sequence[Path] = (),
        groups: Mapping[str, Sequence[str]] | None = None,
        hub: Mapping[str, Any] | None = None,
        seating_scopes: Sequence[str] = SEATING_SCOPES,
        **spawner: Any,
    ) -> None:
        self._cluster = cluster
        self.namespace = namespace
        self._spawner = {"namespace": namespace, **spawner}
        self._groups = {name: list(users) for name, users in (groups or {}).items()}
        self._settings = dict(hub or {})
        self._seating_scopes = list(seating_scopes)
        self._proxy_token, self._token, self._culler_token, self.seating_token = (
            secrets.token_hex(16) for _ in range(4)
        )
        self._packages = packages
        self._extra_config = [str(path) for path in extra_config]
        self._starts = 0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._grant()
        proxy = ensure_proxy()
        ports = [ReservedPort() for _ in range(3)]
        public, api, hub = (f"http://{LOOPBACK}:{port.number}" for port in ports)
        self.url, self._hub_url = public, hub
        self._environment = {
            "CONFIGPROXY_AUTH_TOKEN": self._proxy_token,
            "KUBECONFIG": str(self._cluster.service_account_kubeconfig(self.namespace, "hub")),
            **({"PYTHONPATH": str(self._packages)} if self._packages else {}),
            # Warnings of the hub's own libraries are none of ours.
            "PYTHONWARNINGS": "ignore",
            "ROOST_TEST_HUB": json.dumps(
                {
                    "url": public,
                    "hub_url": hub,
                    "proxy_api_url": api,
                    "proxy_token": self._proxy_token,
                    "token": self._token,
                    "culler_token": self._culler_token,
                    "seating_token": self.seating_token,
                    "seating_scopes": self._seating_scopes,
                    "groups": self._groups,
                    "hub": self._settings,
                    "password": PASSWORD,
                    "most_users": MOST_USERS,
                    "database": f"sqlite:///{self._cluster.folder}/hub-{secrets.token_hex(4)}.sqlite",
                    "spawner": self._spawner,
                    "extra_config": self._extra_config,
                }
            ),
        }
        arguments = [
            f"--ip={LOOPBACK}",
            f"--port={ports[0].release()}",
            f"--api-ip={LOOPBACK}",
            f"--api-port={ports[1].release()}",
            f"--default-target={hub}",
            f"--error-target={hub}/hub/error",
        ]
        self.proxy = self._cluster.run.start(
            f"proxy-{self.namespace}", proxy, arguments, environment=self._environment
        )
        ports[2].release()
        self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()
        self.wait_answering()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._keeper.join()
        self.hub.stop(10)
        self.proxy.stop()

    def _keep(self) -> None:
        """Start the hub again when it has ended, as its Deployment does: it ends by itself when its
        watches break.
        """
        while not self._over.wait(0.2):
            if not self.hub.is_running:
                self._start()

    def restart(self) -> None:
        """End the hub as a rollout does; returns when the next one answers."""
        before = self.hub
        before.stop(20)
        wait_until(lambda: self.hub is not before, 10, "the hub to be started again")
        self.wait_answering()

    def _start(self) -> None:
        self._starts += 1
        arguments = ["-m", "jupyterhub", "-f", str(HERE / "jupyterhub_config.py")]
        self.hub: Process = self._cluster.run.start(
            f"hub-{self.namespace}-{self._starts}",
            Path(sys.executable),
            arguments,
            environment=self._environment,
        )

    @contextlib.contextmanager
    def culled(self, idle_seconds: int) -> Iterator[None]:
        """The idle culler looks once a second for servers that have been idle so long."""
        arguments = ["-m", "jupyterhub_idle_culler", f"--url={self._hub_url}/hub/api"]
        arguments += [f"--timeout={idle_seconds}", "--cull-every=1"]
        environment = {
            "PYTHONPATH": str(ensure_pinned_hub()),
            "JUPYTERHUB_API_TOKEN": self._culler_token,
        }
        name = f"culler-{self.namespace}"
        culler = self._cluster.run.start(
            name, Path(sys.executable), arguments, environment=environment
        )
        try:
            yield
        finally:
            culler.stop()

    def wait_answering(self) -> None:
        """Wait until the hub answers through the proxy."""

        def answers() -> bool:
            try:
                return bool(self.rest("GET", "/users"))
            except (OSError, http.client.HTTPException):
                return False

        wait_until(answers, 60, "the hub to answer", explain=lambda: self.hub.tail(40))

    def rest(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, token: str = ""
    ) -> tuple[int, Any]:
        """Call the hub's REST API; the status and what was answered. token: by default an
        administrator's.
        """
        request = urllib.request.Request(
            f"{self.url}/hub/api{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {token or self._token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                raise
            return error.code, json.loads(error.read() or "null")

    def servers(self) -> dict[str, str]:
        """Each server by USER/NAME: `ready`, or what is pending."""
        _, users = self.rest("GET", f"/users?limit={MOST_USERS}")
        return {
            f"{user['name']}/{name}": "ready" if server["ready"] else str(server["pending"])
            for user in users
            for name, server in (user.get("servers") or {}).items()
        }

    def user_pods(self) -> list[JSONObject]:
        """The pods of its users' servers."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return self._cluster.api.list(path, labelSelector="component=singleuser-server")

    def stop_servers(self) -> None:
        """Stop every server, and wait until none is left."""

        def are_gone() -> bool:
            for server in self.servers():
                user, _, name = server.partition("/")
                # What is being started or stopped just now is refused, and asked for again.
                with contextlib.suppress(urllib.error.HTTPError):
                    self.rest(
                        "DELETE",
                        f"/users/{user}/servers/{name}" if name else f"/users/{user}/server",
                    )
            return not self.servers()

        wait_until(are_gone, 60, "all servers to stop", interval_seconds=0.5, explain=self.servers)

    def _grant(self) -> None:
        meta = {"name": "hub", "namespace": self.namespace}
        group = "rbac.authorization.k8s.io"
        objects = [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {
                "apiVersion": f"{group}/v1",
                "kind": "Role",
                "metadata": meta,
                "rules": object_of("rules-of-hub"),
            },
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": meta,
                "roleRef": {"apiGroup": group, "kind": "Role", "name": "hub"},
                "subjects": [{"kind": "ServiceAccount", **meta}],
            },
        ]
        self._cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))
