"""Remove what the controllers wrote to the cluster, before or after an uninstall.

Their objects in their own namespace are deleted with their ServiceAccount. Nodes outlive a release,
so their labels and taints are removed here. Running it again does no harm.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from roost.controllers.contract.actions import Action, ChangeNode, DeletePod
from roost.controllers.runtime.apply import FIRST_REST_SECONDS, Applier
from roost.controllers.runtime.budget import MinuteBudget
from roost.controllers.runtime.events import EventWriter
from roost_core.kube.client import NOT_FOUND, ApiError, Client, ClusterError, list_all
from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.node import Node, read_node
from roost_core.placement.beliefs import LEASE_SECONDS
from roost_core.placement.labels import (
    CONTROLLERS_MANAGER,
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_PART,
    OWN_POPULAR_PULLER,
    PART_OF_LABEL,
    is_own_node_label,
    startup_taint,
)

log = logging.getLogger(__name__)

# For the controllers to end; their grace period is 30 s.
END_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.5
# Phases of pods that don't run any more.
FINISHED: Final = ("Succeeded", "Failed")
# Rounds without progress before giving up; others may write a node at the same time.
ROUNDS: Final = 5
WHY: Final = "Roost is being uninstalled"


def clean_up(
    client: Client,
    release: str,
    namespace: str,
    *,
    controllers: str = "",
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Action], list[Action]]:
    """Stop the controllers, then clean every node; return what had to be removed, and what could
    not be.

    controllers: name of their Deployment, to be stopped first, and of their Lease; "": they don't
    run any more. Raises ClusterError if nodes can't be read.
    """
    if controllers and not dry_run:
        _stop_controllers(client, namespace, controllers, sleep, clock)
    todo = list(_find(client, release, namespace))
    if dry_run:
        return todo, []
    unlimited = MinuteBudget(10**9, clock)
    applier = Applier(
        client,
        namespace,
        writes=unlimited,
        evictions=unlimited,
        events=EventWriter(client, "cleanup"),
        may_write=lambda: True,
        clock=clock,
    )
    actions = todo
    fewest = len(todo)
    idle_rounds = 0
    while todo and idle_rounds < ROUNDS:
        applier.apply(todo)
        # Read again: a node may have changed or joined.
        todo = list(_find(client, release, namespace))
        idle_rounds = 0 if len(todo) < fewest else idle_rounds + 1
        fewest = min(fewest, len(todo))
        if todo:
            # The applier pauses after a failure.
            due_seconds = applier.seconds_until_next()
            if due_seconds == math.inf:
                due_seconds = FIRST_REST_SECONDS
            sleep(max(POLL_SECONDS, due_seconds))
    return actions, todo


def _find(client: Client, release: str, namespace: str) -> Iterator[Action]:
    for item in list_all(client, "/api/v1/nodes"):
        try:
            yield from _actions_for(read_node(item), release, namespace)
        except MalformedObjectError:
            continue
    labels = {
        PART_OF_LABEL: OWN_PART,
        OWN_COMPONENT_LABEL: OWN_POPULAR_PULLER,
        OWN_INSTANCE_LABEL: release,
    }
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    for item in list_all(
        client, f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector}
    ):
        metadata = item["metadata"]
        # Pods that the controllers' ServiceAccount owns go with it. While popular images and events
        # are off, there is no right to delete them.
        owners = {owner.get("kind") for owner in metadata.get("ownerReferences") or ()}
        if not metadata.get("deletionTimestamp") and "ServiceAccount" not in owners:
            yield DeletePod(
                namespace=namespace, name=metadata["name"], uid=metadata["uid"], why=WHY
            )


def _actions_for(node: Node, release: str, namespace: str) -> Iterator[Action]:
    labels = frozenset(key for key in node.labels if is_own_node_label(release, namespace, key))
    taints = frozenset(taint.key for taint in node.taints) & {startup_taint(release, namespace)}
    if labels or taints:
        yield ChangeNode(
            node=node.name, uid=node.uid, remove_labels=labels, remove_taints=taints, why=WHY
        )


def _stop_controllers(
    client: Client,
    namespace: str,
    controllers: str,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> None:
    """Scale the controllers to 0 and wait for their pods to end, because they would write the
    labels again.
    """
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{controllers}/scale"
    try:
        scale = client.merge(path, {"spec": {"replicas": 0}}, CONTROLLERS_MANAGER)
    except ApiError as error:
        if error.status == NOT_FOUND:
            return
        raise
    selector = (scale.get("status") or {}).get("selector") or ""
    lease_path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{controllers}"
    started = clock()
    # A Lease's spec changes with each renewal. "": there is no Lease; None: nothing was read yet.
    lease: Any = None
    lease_since = started
    while selector:
        alive = _pods_alive(client, namespace, selector)
        if not alive:
            return
        current_lease = (client.find(lease_path) or {}).get("spec") or ""
        if current_lease != lease:
            lease = current_lease
            lease_since = clock()
        # A pod on a dead node is Terminating for ever. It writes only while it holds the Lease, so
        # no longer once the Lease has expired.
        all_are_ending = all(alive.values())
        if all_are_ending and clock() - lease_since > LEASE_SECONDS:
            log.warning("these pods don't end, but can no longer write: %s", ", ".join(alive))
            return
        if clock() - started > END_SECONDS:
            raise ClusterError(
                f"pods of Deployment {controllers} in namespace {namespace} still exist after"
                f" {END_SECONDS:.0f} s ({', '.join(alive)}): find out why they don't end, then run"
                " roost cleanup again"
            )
        sleep(POLL_SECONDS)


def _pods_alive(client: Client, namespace: str, selector: str) -> dict[str, bool]:
    """Return names of pods that may still run, and whether each is being deleted; finished ones may
    stay for ever.
    """
    pods = list_all(client, f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})
    alive = [
        pod["metadata"] for pod in pods if (pod.get("status") or {}).get("phase") not in FINISHED
    ]
    return {metadata["name"]: bool(metadata.get("deletionTimestamp")) for metadata in alive}
