"""A thousand pods are created at once, and the API server's priority and fairness makes them wait:
Roost keeps its Leases, and a hub's users are all created and placed.

The hub's account, the other tenant's and Roost's are all of priority level `workload-low`: Roost
has no FlowSchema, which is the cluster's own affair. One account that sends more than its queues
hold is refused by the API server (429), with Roost and without. A hub sends as many at once as its
`concurrentSpawnLimit` allows.
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import pytest

from roost_core.objects.fields import JSONObject
from tests.e2e.pods import IMAGE, SINGLEUSER, pod
from tests.e2e.storm import LATER_SECONDS
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

# zero-to-jupyterhub's `hub.concurrentSpawnLimit`.
AT_ONCE = 64
PEOPLE = 300
OTHERS = 700
NODES = 6
# The fifth of what an API server lets in by default, as a small control plane's: 49 seats for all.
SMALL = ("--max-requests-inflight=80", "--max-mutating-requests-inflight=40")
CREATED = 201
REQUESTS = {"cpu": "50m", "memory": "64Mi"}
RBAC = "rbac.authorization.k8s.io"


class Tenant:
    """An account that creates pods in a namespace."""

    def __init__(self, cluster: ControlPlane, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._address = urlsplit(cluster.server)
        self._tls = ssl.create_default_context(cafile=str(cluster.ca_path))
        who = {"metadata": {"name": name}}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
        role = {"apiGroup": RBAC, "kind": "Role", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        version = {"apiVersion": f"{RBAC}/v1"}
        for body in (
            {"apiVersion": "v1", "kind": "ServiceAccount", **who},
            {**version, "kind": "Role", **who, "rules": rules},
            {**version, "kind": "RoleBinding", **who, "roleRef": role, "subjects": [subject]},
        ):
            cluster.api.create(body, namespace)
        self._token = cluster.service_account_token(namespace, name)
        # How many requests were answered with each status.
        self.statuses: Counter[int] = Counter()

    async def create(self, bodies: Iterable[JSONObject], at_once: int) -> None:
        """Create these pods on so many connections, each of which sends one request at a time."""
        left = iter(bodies)
        host, port = self._address.hostname, self._address.port
        ways = [await asyncio.open_connection(host, port, ssl=self._tls) for _ in range(at_once)]
        try:
            await asyncio.gather(*(self._work(*way, left) for way in ways))
        finally:
            # To wait is what closes the sockets: else the loop ends first, and whatever test runs
            # at the next garbage collection is told of them.
            for _, writer in ways:
                writer.transport.abort()
            await asyncio.gather(*(writer.wait_closed() for _, writer in ways))

    async def _work(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: Iterator[JSONObject]
    ) -> None:
        for body in left:
            text = json.dumps(body).encode()
            head = (
                f"POST /api/v1/namespaces/{self._namespace}/pods HTTP/1.1\r\n"
                f"Host: {self._address.netloc}\r\nAuthorization: Bearer {self._token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
            )
            writer.write(head.encode() + text)
            line = await reader.readline()
            assert line, "the API server closed a connection instead of answering"
            status = int(line.split()[1])
            length = 0
            while (line := await reader.readline()) != b"\r\n":
                key, _, value = line.partition(b":")
                length = int(value) if key.lower() == b"content-length" else length
            # A long answer comes in chunks.
            while not length and (size := int(await reader.readline(), 16)):
                await reader.readexactly(size + 2)
            await reader.readexactly(length or 2)
            self.statuses[status] += 1


def holders(cluster: ControlPlane, namespace: str) -> dict[str, tuple[str, int]]:
    """Who holds each Lease, and how often that changed."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return {
        body["metadata"]["name"]: (
            body["spec"]["holderIdentity"],
            body["spec"].get("leaseTransitions", 0),
        )
        for body in cluster.api.list(path)
    }


def test_users_are_all_created_and_placed_while_another_tenant_fills_the_api_servers_queues() -> (
    None
):
    values = {"singleuser": SINGLEUSER, "placeholders": []}
    with (
        ControlPlane(apiserver_flags=SMALL) as cluster,
        FakeNodes(cluster.api) as nodes,
        start_scheduler(cluster, leader_elect=False),
    ):
        for index in range(NODES):
            nodes.create(
                f"node-{index}", cpu="64", memory="256Gi", images={IMAGE: 10**9}, pods=1000
            )
        namespace = cluster.create_namespace()
        elsewhere = cluster.create_namespace()
        hub = Tenant(cluster, namespace, "hub")
        other = Tenant(cluster, elsewhere, "jobs")
        users = [pod(f"user-{index}", requests=REQUESTS) for index in range(PEOPLE)]
        jobs = [pod(f"job-{index}", "job", requests=REQUESTS) for index in range(OTHERS)]
        with Stack(cluster, namespace, values, controllers=True) as stack:
            before = holders(cluster, namespace)
            assert len(before) == 2

            async def come() -> None:
                await asyncio.gather(hub.create(users, AT_ONCE), other.create(jobs, OTHERS))

            asyncio.run(come())
            assert hub.statuses == {CREATED: PEOPLE}
            # Else nothing was tried here.
            assert waited(cluster) > 10.0
            path = f"/api/v1/namespaces/{namespace}/pods"

            def waiting() -> list[JSONObject]:
                return cluster.api.list(path, fieldSelector="spec.nodeName=")

            wait_until(lambda: not waiting(), LATER_SECONDS, "all users to have a node")
            assert holders(cluster, namespace) == before
            assert stack.controllers[0].metric("roost_controllers_leader") == 1.0


def waited(cluster: ControlPlane) -> float:
    """For how many seconds the API server has kept requests of that priority level in queues."""
    name = "apiserver_flowcontrol_request_wait_duration_seconds_sum"
    page = cluster.api.get("/metrics")["text"]
    return sum(
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line.startswith(name) and 'priority_level="workload-low"' in line
    )
