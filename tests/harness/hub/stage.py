"""A control plane on which the users of hubs start: nodes, Kubernetes' own scheduler, and stand-ins
for kubelets.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from tests.harness.controlplane import ControlPlane
from tests.harness.hub.user_pods import UserPods
from tests.harness.nodes import FakeNodes
from tests.harness.scheduler import start_scheduler

# As zero-to-jupyterhub prefers them.
USER_NODE: Final = {"hub.jupyter.org/node-purpose": "user"}


class HubStage(NamedTuple):
    """What `hub_stage` started."""

    cluster: ControlPlane
    nodes: FakeNodes
    pods: UserPods


@contextlib.contextmanager
def hub_stage(
    names: Iterable[str],
    pull_seconds: Mapping[str, float],
    *,
    cpu: str = "16",
    memory: str = "64Gi",
    audit_level: str | None = None,
) -> Iterator[HubStage]:
    """`with hub_stage(["user-a"], {image: 0.5}) as stage, RealHub(stage.cluster, namespace):`.

    names, cpu, memory: of the nodes. pull_seconds: of `UserPods`. audit_level: of `ControlPlane`.
    """
    with (
        ControlPlane(audit_level=audit_level) as cluster,
        FakeNodes(cluster.api) as nodes,
        start_scheduler(cluster),
        UserPods(cluster, pull_seconds) as pods,
    ):
        nodes.create_many(names, cpu=cpu, memory=memory, labels=USER_NODE)
        yield HubStage(cluster, nodes, pods)
