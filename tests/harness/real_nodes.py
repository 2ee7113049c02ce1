"""Real nodes: a kubelet and a containerd of their own on this machine, pulling real images and
running real pods.

Owns one node's life. Guarantee: two and more run at once beside each other and beside whatever else
the machine runs, and nothing of them outlives the Python process that started them, even one that
was killed: each node lives in its own process and mount namespaces, whose end the kernel makes the
end of all processes and mounts in them. Control groups, which no namespace takes along, are removed
by `stop` or by the next run.
"""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Self

import yaml

from roost_core.objects.fields import JSONObject
from tests.harness.api import ApiError
from tests.harness.binaries import HarnessUnavailableError, ensure_binary
from tests.harness.cgroups import ROOT, hierarchies, make_group, remove_group
from tests.harness.controlplane import ControlPlane
from tests.harness.distribution import DistributionRegistry
from tests.harness.images import make_image, write_archive
from tests.harness.nodes import NOT_READY_TAINT
from tests.harness.pod_network import PLUGINS, PodNetwork
from tests.harness.processes import Process, ProgramExitedError, is_alive
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until

READY_SECONDS = 120.0  # a bound for an overloaded machine; an idle one takes ten
END_SECONDS = 30.0
INIT = Path(__file__).with_name("node_init.py")
CONTAINERD = Path(__file__).with_name("containerd.toml")
SOCKET = "/run/containerd/containerd.sock"
# Not from the test's registry: a node comes up whatever that was told to do.
SANDBOX_IMAGE = "sandbox.test/pause:1"
CONTAINERD_NAMESPACE = "k8s.io"
KUBELET_ROLE = "roost-test-kubelets"
# What a kubelet would set machine-wide, with the values that it wants to see: it then leaves the
# real ones alone. Source: setupKernelTunables in pkg/kubelet/cm/container_manager_linux.go.
KERNEL_SETTINGS = {
    "/proc/sys/vm/overcommit_memory": "1",
    "/proc/sys/vm/panic_on_oom": "0",
    "/proc/sys/kernel/panic": "10",
    "/proc/sys/kernel/panic_on_oops": "1",
    "/proc/sys/kernel/keys/root_maxkeys": "1000000",
    "/proc/sys/kernel/keys/root_maxbytes": "25000000",
}
EVICTED_FOR = (
    "memory.available",
    *(f"{fs}.{what}" for fs in ("nodefs", "imagefs") for what in ("available", "inodesFree")),
)
# Replaced for the node by folders of its own, so that it finds nothing of the machine's and leaves
# nothing there.
PRIVATE_FOLDERS = ("/var/lib", "/var/log")
# `kubelet=` of a node that answers anybody who asks for logs, configuration or metrics: for the
# test's own addresses.
SERVING = {
    "enableServer": True,
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
}
_numbers = itertools.count(1)


class RealNode:
    """`with RealNode(cluster, "node-a", registry) as node:` returns when the node is Ready.

    labels, taints: as the node registers (taints as in a manifest). kubelet: fields of
    KubeletConfiguration that differ from ours, such as {"maxPods": 20, "serializeImagePulls":
    False, "imageGCHighThresholdPercent": 50}. minor: of the kubelet, the cluster's by default.
    disk_bytes: of a file system for images alone; 0: none.

    Pods need no hostNetwork: each gets a network namespace with a loopback device only, and an
    address that leads nowhere. With `network`, pods and nodes live in that, where they reach each
    other and the API server. Images of any registry are asked of `registry`: a pod may name
    `quay.io/me/image:1` when `registry.push("me/image:1", ...)` was done.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        name: str,
        registry: RealRegistry | DistributionRegistry,
        *,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        kubelet: Mapping[str, Any] | None = None,
        minor: str | None = None,
        network: PodNetwork | None = None,
        disk_bytes: int = 0,
    ) -> None:
        self.cluster = cluster
        self.name = name
        self.registry = registry
        self._labels = dict(labels or {})
        self._taints = [dict(taint) for taint in taints]
        self._kubelet = dict(kubelet or {})
        self._minor = minor or cluster.minor
        self.network = network
        # The kubelet's own, so that two of one network serve on the same port.
        self._address: str | None = None
        self._disk_bytes = disk_bytes
        self._group: str | None = None
        self._init: Process | None = None
        self._init_pid: int | None = None

    # Life

    def start(self) -> Self:
        """Start it without waiting: see `wait_ready`."""
        require_real_nodes()
        plugins = () if self.network is None else PLUGINS
        names = ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "in-pod", *plugins)
        self._programs = {name: ensure_binary(name) for name in names}
        self._programs["kubelet"] = ensure_binary("kubelet", self._minor)
        self.folder = self.cluster.folder / f"real-{self.name}-{next(_numbers)}"
        try:
            self._address = self.network.add_node_address() if self.network else None
            self._lay_out()
            self._let_kubelets_in()
            self._group = make_group()
            self.cluster.on_stop(self._end)
            self._start_programs()
        except BaseException:
            self.stop()
            raise
        return self

    def wait_ready(self, timeout_seconds: float = READY_SECONDS) -> JSONObject:
        """Wait for the kubelet to say Ready; returns the Node.

        Lifts the taint with which the API server makes every node, as node-lifecycle-controller
        would.
        """

        def find() -> JSONObject | None:
            if self._init is None or not self._init.is_running:
                raise ProgramExitedError(
                    f"node {self.name} ended before it was ready:\n{self.log_tail()}"
                )
            node = self.node()
            return (
                self._lift_taint(node)
                if node is not None and condition(node, "Ready") == "True"
                else None
            )

        return wait_until(
            find, timeout_seconds, f"node {self.name} to be Ready", explain=self.log_tail
        )

    def stop(self) -> None:
        """End it, remove its Node and its pods' objects, and leave nothing on the machine."""
        self._end()
        with contextlib.suppress(OSError, ApiError):  # the cluster may be gone already
            self.cluster.api.delete(f"/api/v1/nodes/{self.name}")
            for pod in self.cluster.api.list(
                "/api/v1/pods", fieldSelector=f"spec.nodeName={self.name}"
            ):
                meta = pod["metadata"]
                self.cluster.api.delete(
                    f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                    gracePeriodSeconds=0,
                )

    def __enter__(self) -> Self:
        try:
            self.start().wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What it holds

    def node(self) -> JSONObject | None:
        return self.cluster.api.find(f"/api/v1/nodes/{self.name}")

    def status_images(self) -> dict[str, int]:
        """`node.status.images` as name -> bytes: what the kubelet has told so far."""
        node = self.node() or {"status": {}}
        images = node["status"].get("images", [])
        return {
            name: image.get("sizeBytes", 0) for image in images for name in image.get("names") or ()
        }

    def images(self) -> dict[str, str]:
        rows = [line.split() for line in self.ctr("images", "list").splitlines()[1:]]
        return {row[0]: row[2] for row in rows}

    def remove_image(self, reference: str) -> None:
        """Remove an image under all its names, as garbage collection would. Raises LookupError when
        it isn't there.

        Containers that run from it keep their files.
        """
        held = self.images()
        if reference not in held:
            raise LookupError(
                f"{self.name} holds no image {reference}; it holds {', '.join(sorted(held))}"
            )
        # The tag, the digest and the configuration's id are three entries for one image.
        names = [name for name, digest in held.items() if digest == held[reference]]
        self.ctr("images", "remove", "--sync", *names)

    def ctr(self, *arguments: str) -> str:
        command = [str(self._programs["ctr"]), "--address", str(self.path_in_node(SOCKET))]
        done = subprocess.run(
            [*command, "--namespace", CONTAINERD_NAMESPACE, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"ctr {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout

    def path_in_node(self, path: str) -> Path:
        """How this process reaches a path of the node's own mounts."""
        return Path(f"/proc/{self._pid_of_init()}/root{path}")

    def _lift_taint(self, node: JSONObject) -> JSONObject | None:
        """The Node without its not-ready taint; None: somebody else changed it just now."""
        taints = node["spec"].get("taints", [])
        kept = [taint for taint in taints if taint["key"] != NOT_READY_TAINT]
        if kept == taints:
            return node
        # With the version that was read: a taint that another lifted meanwhile must not come back.
        change = {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "spec": {"taints": kept},
        }
        try:
            return self.cluster.api.patch(f"/api/v1/nodes/{self.name}", change)
        except ApiError as error:
            if error.status != 409:
                raise
            return None

    # Its programs

    def log(self, program: str = "kubelet") -> str:
        path = self.folder / f"{program}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def log_tail(self) -> str:
        if not hasattr(self, "folder"):
            return "not started"
        told = {
            program: self.log(program).splitlines()[-15:]
            for program in ("init", "containerd", "kubelet")
        }
        return "\n".join(f"{program}: {line}" for program, found in told.items() for line in found)

    def pids(self) -> list[int]:
        return _family(self._init_pid) if self._init_pid is not None else []

    # Start

    def _lay_out(self) -> None:
        self.folder.mkdir()
        for private in PRIVATE_FOLDERS:
            self._own_folder(private).mkdir(parents=True)
        for name in ("bin", "cni", "kubelet", "containerd", "certs.d/_default"):
            (self.folder / name).mkdir(parents=True)
        for name, program in self._programs.items():
            (self.folder / "bin" / name).symlink_to(program)
        plugin = {"type": "in-pod"} if self.network is None else self.network.plugin
        network = {"cniVersion": "1.0.0", "name": "test", "plugins": [plugin]}
        (self.folder / "cni" / "10-test.conflist").write_text(json.dumps(network))
        (self.folder / "certs.d" / "_default" / "hosts.toml").write_text(
            f'server = "http://{self.registry.host}"\n'
        )
        config = Template(CONTAINERD.read_text())
        filled = config.substitute(folder=self.folder, socket=SOCKET, sandbox=SANDBOX_IMAGE)
        (self.folder / "containerd.toml").write_text(filled)
        (self.folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        pause = make_image(
            files={"/in-pod": self._programs["in-pod"]}, entrypoint=["/in-pod", "pause"]
        )
        write_archive(pause, SANDBOX_IMAGE, self.folder / "sandbox.tar")

    def _own_folder(self, path: str) -> Path:
        return self.folder / "own" / path.strip("/")

    def _kubelet_config(self) -> JSONObject:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            # No port at all, so none to share: nobody asks this kubelet for logs.
            "enableServer": False,
            "healthzPort": 0,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._group}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "oomScoreAdj": 0,
            "resolvConf": str(self.folder / "resolv.conf"),
            # nobody answers there; without one each pod gets a warning
            "clusterDNS": ["127.0.0.1"],
            "clusterDomain": "cluster.local",
            "registerWithTaints": self._taints,
            "evictionHard": dict.fromkeys(EVICTED_FOR, "0%"),
            **({"address": self._address} if self._address else {}),
            **self._kubelet,
        }

    def _let_kubelets_in(self) -> None:
        """Bind kubelets' own role to their group; nobody is in it otherwise, as there is no node
        authorizer here.
        """
        role = {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:node",
        }
        group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}
        kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
        binding = {**kind, "metadata": {"name": KUBELET_ROLE}, "roleRef": role, "subjects": [group]}
        try:
            self.cluster.api.create(binding)
        except ApiError as error:
            if error.status != 409:  # another node's doing
                raise

    def _kubeconfig(self) -> Path:
        """The admin's, used as another: requests count as system:node:NAME's, in RBAC, admission
        and the audit log.
        """
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        config["users"][0]["user"] |= {
            "as": f"system:node:{self.name}",
            "as-groups": ["system:nodes"],
        }
        path = self.folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    def _start_programs(self) -> None:
        (self.folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet_config()))
        labels = ",".join(f"{key}={value}" for key, value in self._labels.items())
        ctr = [str(self._programs["ctr"]), "--address", SOCKET, "--namespace", CONTAINERD_NAMESPACE]
        path = {
            "PATH": (
                f"{self.folder / 'bin'}:{os.environ.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}"
            )
        }
        containerd = {
            "name": "containerd",
            "command": [
                str(self._programs["containerd"]),
                f"--config={self.folder / 'containerd.toml'}",
            ],
            "environment": path,
            "log": str(self.folder / "containerd.log"),
            "socket": SOCKET,
            "then": [[*ctr, "images", "import", str(self.folder / "sandbox.tar")]],
        }
        kubelet = {
            "name": "kubelet",
            "command": [
                str(self._programs["kubelet"]),
                f"--config={self.folder / 'kubelet.yaml'}",
                f"--kubeconfig={self._kubeconfig()}",
                f"--hostname-override={self.name}",
                f"--root-dir={self.folder / 'kubelet'}",
                f"--cert-dir={self.folder / 'kubelet-certificates'}",
                *([f"--node-labels={labels}"] if labels else []),
                *([f"--node-ip={self._address}"] if self._address else []),
                "--v=2",
            ],
            "environment": path,
            "log": str(self.folder / "kubelet.log"),
        }
        plan = {
            "tmpfs": (
                {"/run": "50%"}
                | ({str(self.folder / "containerd"): self._disk_bytes} if self._disk_bytes else {})
            ),
            "binds": [[str(self._own_folder(private)), private] for private in PRIVATE_FOLDERS],
            "contents": KERNEL_SETTINGS,
            "scratch": str(self.folder),
            "programs": [containerd, kubelet],
        }
        (self.folder / "plan.json").write_text(json.dumps(plan))
        unshare = [
            "--pid",
            "--fork",
            "--kill-child",
            "--mount",
            "--mount-proc",
            "--propagation",
            "private",
        ]
        program = Path(str(shutil.which("unshare")))
        arguments = [
            *unshare,
            sys.executable,
            "-I",
            "-S",
            str(INIT),
            str(self.folder / "plan.json"),
        ]
        if self.network is not None:
            self.network.connect_to(self.cluster, int(self.registry.host.rpartition(":")[2]))
            program, arguments = self.network.entering(program, arguments)
        self._init = self.cluster.run.start(
            f"real-{self.name}", program, arguments, log_path=self.folder / "init.log"
        )

        self._init_pid = wait_until(
            self._find_init, 20, f"process 1 of {self.name}", explain=self.log_tail
        )

    def _find_init(self) -> int | None:
        """Process 1 of the node, as we see it: the only child of `unshare`, once it's in its own
        namespace.
        """
        if self._init is None or not self._init.is_running:
            raise ProgramExitedError(f"node {self.name} did not start:\n{self.log_tail()}")
        children = [pid for pid in _all_pids() if _parent(pid) == self._init.pid]
        return next(
            (
                pid
                for pid in children
                if _process_space(pid) not in (None, _process_space(os.getpid()))
            ),
            None,
        )

    def _pid_of_init(self) -> int:
        if self._init_pid is None:
            raise RuntimeError(f"node {self.name} doesn't run")
        return self._init_pid

    # End

    def _end(self) -> None:
        if self._init is not None:
            self._init.kill()
            if (pid := self._init_pid) is not None:
                # Process 1 of the node dies with `unshare`, and isn't dead before everybody else in
                # there is.
                wait_until(
                    lambda: not is_alive(pid), END_SECONDS, f"all processes of {self.name} to end"
                )
            self._init = self._init_pid = None
        if self._group is not None:
            remove_group(self._group)
            self._group = None
            # Images and volumes; the logs stay for as long as the cluster does.
            for data in ("containerd", "kubelet", "own", "sandbox.tar"):
                shutil.rmtree(self.folder / data, ignore_errors=True)


def require_real_nodes() -> None:
    """Raise HarnessUnavailableError, with the reason and the fix, where no real node can run."""
    if sys.platform != "linux":
        raise HarnessUnavailableError(f"real nodes need Linux; this is {sys.platform}")
    if os.geteuid() != 0:
        raise HarnessUnavailableError(
            "real nodes need root, for namespaces, mounts and control groups. Run as root."
        )
    if shutil.which("unshare") is None:
        raise HarnessUnavailableError(
            "no `unshare` command on PATH. As root: apt-get install util-linux"
        )
    tried = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "true"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HarnessUnavailableError(
            f"real nodes need namespaces of their own, and `{' '.join(tried)}` said:"
            f" {done.stderr.strip()}. In a container, run it privileged."
        )
    for folder in hierarchies() or [ROOT]:
        if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_RDONLY:
            raise HarnessUnavailableError(
                f"real nodes need control groups, and {folder} can't be written to."
            )


def condition(node: JSONObject, kind: str) -> str | None:
    """The status of one condition of a Node: "True", "False", "Unknown" or None."""
    found = [c["status"] for c in node.get("status", {}).get("conditions", []) if c["type"] == kind]
    return str(found[0]) if found else None


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def _family(pid: int) -> list[int]:
    """A process and all its descendants, pods' own process namespaces included."""
    children: dict[int | None, list[int]] = {}
    for child in _all_pids():
        children.setdefault(_parent(child), []).append(child)
    found = [pid]
    for member in found:  # grows as it's walked
        found += children.get(member, ())
    return found


def _process_space(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return None


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
