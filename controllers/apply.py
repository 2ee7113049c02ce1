"""Carry out what plans ask for: one request an action, each bound to the very object that the plan saw.

Guarantee: no action changes an object that was replaced since, overwrites what somebody else wrote meanwhile, or goes
beyond the budgets.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from cluster.client import ApiError, ClusterError
from controllers.events import timestamp
from controllers.plans.actions import (
    Action,
    ChangeNode,
    CreatePod,
    DeletePod,
    Done,
    EvictPod,
    Notice,
    Outcome,
    ResizeSet,
    ScaleSet,
    SetCondition,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cluster.client import Client, JSONObject
    from controllers.budget import MinuteBudget
    from controllers.events import EventWriter

log = logging.getLogger(__name__)

MANAGER: Final = "roost-controllers"
NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
TOO_MANY: Final = 429
# Somebody else writes the same node now and then: the kubelet, a cloud's controller.
TAINT_TRIES: Final = 4


class Applier:
    """Applies plans within two budgets: one for evictions, one for all writes. One loop owns it."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        writes: MinuteBudget,
        evictions: MinuteBudget,
        events: EventWriter,
        may_write: Callable[[], bool],
        on_eviction: Callable[[], None] = lambda: None,
        owner: Callable[[], JSONObject | None] = lambda: None,
    ) -> None:
        """Prepare. `may_write` is asked before each request: a leader that lost its Lease stops in the middle.

        owner: gives an ownerReference for the pods that are made.
        """
        self._client = client
        self._namespace = namespace
        self.writes = writes
        self.evictions = evictions
        self._events = events
        self._may_write = may_write
        self._on_eviction = on_eviction
        self._owner = owner

    def apply(self, actions: Iterable[Action]) -> list[Done]:
        """Carry out the actions in order, and tell what became of each. Never raises for what the cluster says."""
        return [Done(action, self._apply_one(action)) for action in actions]

    def seconds_until_next(self) -> float:
        """How long to wait before something that was held back may be done."""
        waits = [budget.seconds_until_next() for budget in (self.writes, self.evictions)]
        return max((wait for wait in waits if wait < math.inf), default=0.0)

    def _apply_one(self, action: Action) -> Outcome:
        if not self._may_write():
            return Outcome.HELD_BACK
        if isinstance(action, Notice) and not self._events.is_due(action):
            return Outcome.DONE
        if self.writes.left <= 0 or (isinstance(action, EvictPod) and self.evictions.left <= 0):
            return Outcome.HELD_BACK
        # Taken before the request, and never given back: a request without an answer may have been carried out.
        self.writes.take()
        if isinstance(action, EvictPod):
            self.evictions.take()
            self._on_eviction()
        try:
            outcome = self._perform(action)
        except ApiError as error:
            outcome = _outcome_of(action, error)
            if outcome is Outcome.FAILED:
                log.warning("failed: %s: %s", action, error)
        except ClusterError as error:
            log.warning("failed: %s: %s", action, error)
            outcome = Outcome.FAILED
        if outcome is not Outcome.FAILED:
            log.info("%s: %s", outcome, action)
        return outcome

    def _perform(self, action: Action) -> Outcome:
        match action:
            case ChangeNode():
                return self._change_node(action)
            case SetCondition():
                return self._set_condition(action)
            case EvictPod():
                path = f"/api/v1/namespaces/{action.namespace}/pods/{action.name}/eviction"
                metadata = {"name": action.name, "namespace": action.namespace}
                options = {"preconditions": {"uid": action.uid}}
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
                self._client.create(path, body)
            case ScaleSet():
                path = f"/apis/apps/v1/namespaces/{self._namespace}/statefulsets/{action.name}/scale"
                self._client.merge(path, {"spec": {"replicas": action.replicas}}, MANAGER)
            case ResizeSet():
                path = f"/apis/apps/v1/namespaces/{self._namespace}/statefulsets/{action.name}"
                container = {"name": action.container, "resources": {"requests": action.requests, "limits": None}}
                template = {"spec": {"containers": [container]}}
                self._client.merge_by_key(
                    path, {"metadata": {"uid": action.uid}, "spec": {"template": template}}, MANAGER
                )
            case CreatePod():
                self._client.create(f"/api/v1/namespaces/{self._namespace}/pods", self._owned(action.body))
            case DeletePod():
                self._client.delete(f"/api/v1/namespaces/{action.namespace}/pods/{action.name}", action.uid)
            case Notice():
                self._events.write(action)
        return Outcome.DONE

    def _owned(self, body: JSONObject) -> JSONObject:
        """The pod as our account's: it goes when that goes, and drains and autoscalers take it for a controller's."""
        owner = self._owner()
        if owner is None:
            return body
        return {**body, "metadata": {**body["metadata"], "ownerReferences": [{**owner, "controller": True}]}}

    def _change_node(self, action: ChangeNode) -> Outcome:
        path = f"/api/v1/nodes/{quote(action.node)}"
        labels: JSONObject = {**action.set_labels, **dict.fromkeys(action.remove_labels)}
        metadata: JSONObject = {"uid": action.uid, **({"labels": labels} if labels else {})}
        if not (action.add_taints or action.remove_taints):
            self._client.merge(path, {"metadata": metadata}, MANAGER)
            return Outcome.DONE
        # Taints are one list with many authors: read, change, and write only onto what was read.
        for attempt in range(TAINT_TRIES):
            node = self._client.get(path)
            if node["metadata"]["uid"] != action.uid:
                return Outcome.GONE
            taints = _changed_taints(node["spec"].get("taints") or [], action)
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            try:
                self._client.merge(path, {"metadata": {**metadata, **version}, "spec": {"taints": taints}}, MANAGER)
            except ApiError as error:
                if error.status == CONFLICT and attempt < TAINT_TRIES - 1:
                    continue
                raise
            break
        return Outcome.DONE

    def _set_condition(self, action: SetCondition) -> Outcome:
        path = f"/api/v1/nodes/{quote(action.node)}/status"
        condition: JSONObject = {"type": action.type}
        if action.status is None:
            condition["$patch"] = "delete"
        else:
            condition |= {"status": action.status, "reason": action.reason, "message": action.message}
            now = timestamp()
            condition |= {"lastHeartbeatTime": now, **({"lastTransitionTime": now} if action.is_transition else {})}
        body = {"metadata": {"uid": action.uid}, "status": {"conditions": [condition]}}
        self._client.merge_by_key(path, body, MANAGER)
        return Outcome.DONE


def _changed_taints(taints: list[Any], action: ChangeNode) -> list[Any]:
    gone = action.remove_taints | {taint.key for taint in action.add_taints}
    kept = [taint for taint in taints if taint.get("key") not in gone]
    added = [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in action.add_taints
    ]
    return [*kept, *added]


def _outcome_of(action: Action, error: ApiError) -> Outcome:
    if isinstance(action, CreatePod) and error.status == CONFLICT:
        return Outcome.DONE
    if isinstance(action, EvictPod) and error.status == TOO_MANY:
        return Outcome.REFUSED
    # The uid isn't the object's: it was replaced since. Preconditions say 409, patches that it can't be changed.
    if error.status == UNPROCESSABLE and "metadata.uid" in str(error):
        return Outcome.GONE
    if error.status == NOT_FOUND or (error.status == CONFLICT and not isinstance(action, Notice)):
        return Outcome.GONE
    return Outcome.FAILED
