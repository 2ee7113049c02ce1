"""A network for pods of real nodes: addresses that work, a way to the API server, and the API
server's way to them.

Owns one network namespace with a bridge in it, and what crosses its border. The machine's own
network isn't touched: there is no route in or out. Guarantee: the kernel removes all of it with the
process that holds it, which dies with us.

Pods reach the API server as they do everywhere, at the Service `kubernetes`; it reaches pods
through its own egress selector
(https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/), by HTTP CONNECT on a
socket of ours, and picks the endpoints of a Service by itself. There is no kube-proxy;
NetworkPolicies are not enforced. DNS: `names`.
"""

import asyncio
import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Self

import yaml

from roost_core.objects.fields import JSONObject
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.life import Started
from tests.harness.ports import LOOPBACK
from tests.harness.processes import RunFolder
from tests.harness.waiting import wait_until

# The first address of the range that ControlPlane gives to Services: that of `kubernetes`.
API_SERVICE = "10.0.0.1"
BRIDGE, BRIDGE_ADDRESS = "pods", "02:00:0a:f4:00:01"
GATEWAY, PODS = "10.244.0.1", "10.244.0.0/16"
PLUGINS = ("bridge", "host-local")
CLONE_NEWNET = 0x40000000
START_SECONDS = 20.0
CHUNK_BYTES = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


class PodNetwork(Started):
    """`with PodNetwork() as network, network.make_cluster() as cluster: RealNode(cluster, ...,
    network=network)`.
    """

    def __init__(self) -> None:
        self._forwarded: set[tuple[str, int]] = set()
        self._addresses = 0
        self._stack = contextlib.ExitStack()

    # Life

    def start(self) -> Self:
        require_pod_network()
        self._run = RunFolder()
        self._stack.callback(self._run.close)
        try:
            self._make_namespace()
            self._start_loop()
            self._await(self._listen_for_api_server())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self._stack.close()

    # For the control plane and for nodes

    @property
    def folder(self) -> Path:
        return self._run.path

    def make_cluster(self) -> ControlPlane:
        """A control plane, not yet started, that reaches pods by their Services."""
        connection = {
            "proxyProtocol": "HTTPConnect",
            "transport": {"uds": {"udsName": str(self._socket_path)}},
        }
        config = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }
        path = self.folder / "egress.yaml"
        path.write_text(yaml.safe_dump(config))
        flags = (
            f"--egress-selector-config-file={path}",
            "--enable-aggregator-routing=true",
            # For `kubectl exec`: nobody here knows nodes by name.
            "--kubelet-preferred-address-types=InternalIP",
        )
        return ControlPlane(
            apiserver_flags=flags, controllers=(*CONTROLLERS, "endpointslice-controller")
        )

    @property
    def plugin(self) -> JSONObject:
        """Of containerd's network configuration: the reference plugins.

        No address is given twice before all were.
        """
        ranges = [[{"subnet": PODS, "gateway": GATEWAY}]]
        addresses = {
            "ranges": ranges,
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(self.folder / "addresses"),
        }
        return {"type": "bridge", "bridge": BRIDGE, "ipam": {"type": "host-local", **addresses}}

    def entering(self, program: Path, arguments: list[str]) -> tuple[Path, list[str]]:
        return Path(str(shutil.which("nsenter"))), [
            f"--net={self._space}",
            str(program),
            *arguments,
        ]

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Be in that network, with this thread alone: its new sockets are of that network, and stay
        so.
        """
        with Path("/proc/thread-self/ns/net").open() as home, Path(self._space).open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def add_node_address(self) -> str:
        self._addresses += 1
        address = f"10.243.0.{self._addresses}"
        self._inside("ip", "address", "add", f"{address}/32", "dev", BRIDGE)
        return address

    def connect_to(self, cluster: ControlPlane, *ports: int) -> None:
        """Let nodes and pods reach the API server, and nodes these ports of the machine's loopback
        too.
        """
        server = int(cluster.server.rpartition(":")[2])
        self._forward(API_SERVICE, 443, server)
        for port in (server, *ports):
            self._forward(LOOPBACK, port, port)

    # The namespace

    def _make_namespace(self) -> None:
        holder = self._run.start(
            "network",
            Path(str(shutil.which("unshare"))),
            ["--net", str(shutil.which("sleep")), "infinity"],
        )
        self._space = f"/proc/{holder.pid}/ns/net"
        own = Path("/proc/self/ns/net").readlink()
        wait_until(
            lambda: Path(self._space).readlink() != own, START_SECONDS, "the network namespace"
        )
        self._inside("ip", "link", "set", "lo", "up")
        # With an address of its own: else it takes the lowest of its ports', and pods that know an
        # older one get no answer for ten seconds.
        self._inside("ip", "link", "add", BRIDGE, "address", BRIDGE_ADDRESS, "type", "bridge")
        self._inside("ip", "address", "add", f"{GATEWAY}/{PODS.partition('/')[2]}", "dev", BRIDGE)
        self._inside("ip", "link", "set", BRIDGE, "up")
        self._inside("ip", "address", "add", f"{API_SERVICE}/32", "dev", "lo")

    def _inside(self, *command: str) -> None:
        subprocess.run(["nsenter", f"--net={self._space}", *command], check=True)

    def _socket_inside(self) -> socket.socket:
        """A socket of that network; whoever uses it later may be anywhere.

        Only the loop's thread changes places.
        """
        with self.inside():
            return _new_socket()

    # What crosses the border

    @property
    def _socket_path(self) -> Path:
        return self.folder / "egress.sock"

    def _start_loop(self) -> None:
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, name="pod-network", daemon=True)
        thread.start()

        def end() -> None:
            async def cancel() -> None:
                for server in self._servers:
                    server.close()
                tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

            self._await(cancel())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None] | None] = set()
        self._stack.callback(end)

    def _await(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(START_SECONDS)

    async def _listen_for_api_server(self) -> None:
        self._servers.append(
            await asyncio.start_unix_server(self._serve_connect, self._socket_path)
        )

    def _forward(self, host: str, port: int, target_port: int) -> None:
        """Carry what comes to an address of the pods' network to a port of the machine's
        loopback.
        """
        if (host, port) in self._forwarded:
            return
        self._forwarded.add((host, port))

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # Cancelled is how it ends when we do.
            with self._kept_alive(), contextlib.suppress(asyncio.CancelledError):
                await _join(reader, writer, lambda: _connect(_new_socket(), LOOPBACK, target_port))

        async def listen() -> None:
            listener = self._socket_inside()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            self._servers.append(await asyncio.start_server(serve, sock=listener, backlog=128))

        self._await(listen())

    @contextlib.contextmanager
    def _kept_alive(self) -> Iterator[None]:
        """Hold the connection's task: once one side has ended, asyncio holds the other one by weak
        references only.
        """
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            yield
        finally:
            self._connections.discard(task)

    async def _serve_connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection of the API server's to a pod: `CONNECT 10.244.0.7:8443 HTTP/1.1`."""
        ended = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with self._kept_alive(), contextlib.closing(writer), contextlib.suppress(*ended):
            head = await reader.readuntil(b"\r\n\r\n")
            host, _, port = head.split()[1].decode().rpartition(":")

            async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                try:
                    pair = await _connect(self._socket_inside(), host, int(port))
                except OSError:
                    writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                    raise
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                return pair

            await _join(reader, writer, connect)


def require_pod_network() -> None:
    """Raise HarnessUnavailableError, with the reason and the fix, where pods can't have a
    network.
    """
    if missing := [name for name in ("ip", "nsenter", "unshare") if shutil.which(name) is None]:
        raise HarnessUnavailableError(
            f"no {', '.join(missing)} on PATH. As root: apt-get install iproute2 util-linux"
        )
    tried = ["unshare", "--net", "ip", "link", "add", BRIDGE, "type", "bridge"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HarnessUnavailableError(
            f"pods need a network of their own, and `{' '.join(tried)}` said:"
            f" {done.stderr.strip()}. Run as root; in a container, privileged."
        )


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:  # os.setns comes with Python 3.12
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _new_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    return made


async def _connect(
    through: socket.socket, host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        await asyncio.get_running_loop().sock_connect(through, (host, port))
    except BaseException:
        through.close()
        raise
    return await asyncio.open_connection(sock=through)


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connect: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]],
) -> None:
    """Carry bytes both ways until both sides have ended, or one has broken."""
    writers = [writer]
    try:
        other_reader, other_writer = await connect()
        writers.append(other_writer)
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(reader, other_writer))
            both.create_task(_pump(other_reader, writer))
    except* OSError:
        pass  # a side that broke: the other one hears of it below
    finally:
        for one in writers:
            one.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()
