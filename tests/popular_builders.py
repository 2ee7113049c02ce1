"""Make the nodes, pods and settings that popular images are about, and a world that does what their
plans ask for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from roost.controllers.contract.actions import CreatePod, DeletePod, Notice, Planned
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.popular_images.plan import PopularMemory, plan_popular_images
from roost.controllers.popular_images.settings import (
    MIN_USERS,
    PARALLEL,
    PopularSettings,
    read_popular_settings,
)
from roost_core.objects.node import Node
from roost_core.objects.pod import ContainerState, Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE, merged, release_document

GB = 10**9
WALL = 1_800_000_000.0
# Of pods that pull: two minutes after WALL.
CREATED = "2027-01-15T08:02:00Z"
DIGEST = "sha256:" + "d" * 64


def popular_document(**changes: object) -> dict[str, Any]:
    """release.json with popular images on; `changes` are merged at the top."""
    image = {"name": "quay.io/jupyterhub/roost", "tag": "1"}
    values = {"popularImages": {"enabled": True}, "image": image, "imagePullSecrets": ["regcred"]}
    return merged(release_document(values), changes)


def popular_settings(
    *,
    document: Mapping[str, object] | None = None,
    min_users: float = MIN_USERS,
    parallel: int = PARALLEL,
    bytes_per_minute: int = 10**15,
    **changes: object,
) -> PopularSettings:
    """Settings with `popularImages` changed, and with other limits; `document`: other parts."""
    read = Reader()
    settings = read_popular_settings(
        ReleaseDocument(read, popular_document(popularImages=changes, **(document or {})))
    )
    assert not read.faults, [str(fault) for fault in read.faults]
    assert settings is not None
    return replace(
        settings, min_users=min_users, parallel=parallel, bytes_per_minute=bytes_per_minute
    )


def node_state(
    name: str,
    *,
    disk: int | None = 1000 * GB,
    ready: bool = True,
    joined: float = WALL,
    pods: int = 110,
    **facts: Any,
) -> Node:
    """A node that joined just now, so that it may be empty."""
    allocatable = {"pods": pods} if disk is None else {"pods": pods, "ephemeral-storage": disk}
    facts = {key: fact for key, fact in facts.items() if fact is not None}
    labels = {"kubernetes.io/hostname": name, **facts.pop("labels", {})}
    facts = {"images": {}, "conditions": {}, "deleting": facts.pop("leaving", False), **facts}
    ready_since = joined if ready else None
    uid = f"uid-{name}-{joined:.0f}"
    return Node(
        name,
        labels,
        ready=ready,
        uid=uid,
        created=joined,
        allocatable=allocatable,
        ready_since=ready_since,
        **facts,
    )


def user(
    name: str,
    image: str,
    node: str = "elsewhere",
    *,
    namespace: str = NAMESPACE,
    image_id: str = "",
    phase: str = "Running",
    started: float = WALL,
    component: str = "singleuser-server",
    **spec: object,
) -> Pod:
    labels = {"component": component, "app": "jupyterhub"}
    body = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "labels": labels,
        },
        "spec": {"nodeName": node, "containers": [{"name": "notebook", "image": image}], **spec},
        "status": {"phase": phase},
    }
    pod = read_pod(body)
    containers = (
        ContainerState(image=image, image_id=image_id, running=phase == "Running", name="notebook"),
    )
    return replace(pod, created=started, started=started, containers=containers)


def users(count: int, image: str, **details: Any) -> list[Pod]:
    slug = image.replace("/", "-").replace(":", "-").replace("@", "-")
    return [user(f"{slug}-{index}", image, **details) for index in range(count)]


def cluster(nodes: Iterable[Node], pods: Iterable[Pod]) -> Snapshot:
    return Snapshot(
        RELEASE, NAMESPACE, {node.name: node for node in nodes}, {pod.key: pod for pod in pods}
    )


def at(seconds: float) -> Moment:
    return Moment(WALL + seconds, seconds)


def plan_after_a_while(snapshot: Snapshot, settings: PopularSettings) -> Planned[PopularMemory]:
    """The plan of a leader that has led for two minutes, so that its budget isn't empty any
    more.
    """
    first = plan_popular_images(snapshot, PopularMemory(), settings, at(0))
    assert not pulls(first), "a new leader begins nothing: it may have begun it a moment ago"
    return plan_popular_images(snapshot, first.memory, settings, at(120))


def created(planned: Planned[PopularMemory]) -> list[dict[str, Any]]:
    return [action.body for action in planned.actions if isinstance(action, CreatePod)]


def pulls(planned: Planned[PopularMemory]) -> list[tuple[str, str]]:
    """(node, what is pulled) of the pods that a plan makes."""
    return [(node_of(body), reference_of(body)) for body in created(planned)]


def deleted(planned: Planned[PopularMemory]) -> list[str]:
    return [action.name for action in planned.actions if isinstance(action, DeletePod)]


def notices(planned: Planned[PopularMemory]) -> list[str]:
    return [action.reason for action in planned.actions if isinstance(action, Notice)]


def node_of(body: Mapping[str, Any]) -> str:
    """The one node where a pulling pod may run."""
    required = body["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    (term,) = required["nodeSelectorTerms"]
    (name,) = term["matchFields"][0]["values"]
    return str(name)


def reference_of(body: Mapping[str, Any]) -> str:
    volumes = [
        volume["image"]["reference"] for volume in body["spec"]["volumes"] if "image" in volume
    ]
    return str(volumes[0] if volumes else body["spec"]["containers"][0]["image"])


def as_pod(
    body: Mapping[str, Any],
    *,
    phase: str = "Pending",
    node: str | None = None,
    waiting: str = "",
    leaving: bool = False,
    reason: str = "",
    ran: bool = False,
) -> Pod:
    """A pulling pod as the cluster has it. reason: the pod's as a whole; ran: its container did,
    and ended.
    """
    metadata = {
        "creationTimestamp": CREATED,
        **body["metadata"],
        "uid": f"uid-{body['metadata']['name']}",
    }
    if leaving:
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    state = {"waiting": {"reason": waiting, "message": "told so"}} if waiting else {}
    container = {"name": "pull", "state": state}
    if ran:
        container |= {
            "imageID": f"registry.k8s.io/pause@{DIGEST}",
            "state": {"terminated": {"exitCode": 137}},
        }
    status = {
        "phase": phase,
        "containerStatuses": [container],
        **({"reason": reason} if reason else {}),
    }
    spec = {**body["spec"], "nodeName": node_of(body) if node is None else node}
    return read_pod({"metadata": metadata, "spec": spec, "status": status}, keep_containers=True)


def follow(
    snapshot: Snapshot,
    settings: PopularSettings,
    seconds: Sequence[float],
    memory: PopularMemory | None = None,
) -> Planned[PopularMemory]:
    """Plan at each of these moments with nothing changing, and return the last plan."""
    planned: Planned[PopularMemory] | None = None
    for moment in seconds:
        before = memory if planned is None else planned.memory
        planned = plan_popular_images(snapshot, before or PopularMemory(), settings, at(moment))
    assert planned is not None
    return planned
