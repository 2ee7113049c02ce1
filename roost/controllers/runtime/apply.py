"""Carry out the actions of plans: one request each, bound to the very object that the plan saw.

Guarantee: no action changes an object that was replaced since the plan, overwrites another client's
change, or exceeds the budgets.

A leader that writes nothing must not hold the Lease: the webhook reads from the Lease that nodes'
labels are kept.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import quote

from roost.controllers.contract.actions import (
    Action,
    ChangeNode,
    CreatePod,
    DeletePod,
    Done,
    EvictPod,
    KeepHistory,
    Notice,
    Outcome,
    ScaleSet,
)
from roost.controllers.contract.back_off import BackOff, backed_off
from roost.controllers.runtime.budget import MinuteBudget
from roost.controllers.runtime.events import EventWriter
from roost_core.kube.client import (
    CONFLICT,
    NOT_FOUND,
    UNPROCESSABLE,
    ApiError,
    Client,
    ClusterError,
)
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import CONTROLLERS_MANAGER

log = logging.getLogger(__name__)

TOO_MANY: Final = 429
SERVER_ERROR: Final = 500
# Until the next try without the Lease.
LEADER_SECONDS: Final = 1.0
# A plan that takes longer to carry out is dropped, and a new one is made.
PLAN_SECONDS: Final = 60.0
# After a failed write, the same object isn't written for this long; doubled each time, up to the
# last.
FIRST_REST_SECONDS: Final = 5.0
LAST_REST_SECONDS: Final = 300.0
# The longest rest after an error of the API server itself (429, 5xx, no answer). Once its trouble
# is over, all is caught up within a minute.
LAST_TROUBLE_SECONDS: Final = 45.0
MAX_RESTING: Final = 10_000
# Conflicts: kubelets and cloud controllers write the same node.
TAINT_TRIES: Final = 4


class Applier:
    """Applies plans within two budgets, one for evictions and one for all writes.

    Not thread-safe: one loop owns it.
    """

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
        on_done: Callable[[], None] = lambda: None,
        owner: Callable[[], JSONObject | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """may_write: checked before each request, so that a leader that lost its Lease stops
        halfway.

        on_done: called after each action. owner: returns the ownerReference for created pods.
        """
        self._client = client
        self._namespace = namespace
        self.writes = writes
        self.evictions = evictions
        self._events = events
        self._may_write = may_write
        self._on_eviction = on_eviction
        self._on_done = on_done
        self._clock = clock
        # What failed recently.
        self._resting: dict[tuple[str, ...], BackOff] = {}
        # When the first action that was held back may be carried out.
        self._due_at = math.inf
        self._owner = owner

    def apply(self, actions: Iterable[Action]) -> list[Done]:
        """Carry out the actions in order; return each with its outcome.

        Errors of the API server are outcomes, too.
        """
        self._due_at = math.inf
        began_at = self._clock()
        done: list[Done] = []
        for action in actions:
            outcome = self._admit(action, began_at)
            if outcome is None:
                outcome = self._send(action)
            done.append(Done(action, outcome))
            self._on_done()
        return done

    def seconds_until_next(self) -> float:
        """Seconds until the first action that was held back may be carried out; infinity if none
        was.
        """
        return max(0.0, self._due_at - self._clock())

    def _hold_back(self, wait_seconds: float) -> Outcome:
        self._due_at = min(self._due_at, self._clock() + wait_seconds)
        return Outcome.HELD_BACK

    def _admit(self, action: Action, began_at: float) -> Outcome | None:
        """Take the action's part of the budgets; return its outcome if it isn't to be sent."""
        if not self._may_write():
            return self._hold_back(LEADER_SECONDS)
        if isinstance(action, Notice) and not self._events.is_due(action):
            # Its Event was written within REPEAT_SECONDS.
            return Outcome.DONE
        if self._clock() - began_at > PLAN_SECONDS:
            # The remaining actions are based on an outdated snapshot.
            return self._hold_back(0.0)
        if self.writes.left <= 0:
            return self._hold_back(self.writes.seconds_until_next())
        if isinstance(action, EvictPod) and self.evictions.left <= 0:
            return self._hold_back(self.evictions.seconds_until_next())
        rest = self._resting.get(_target(action))
        if rest is not None and rest.until > self._clock():
            return self._hold_back(rest.until - self._clock())
        # Taken before the request, and never returned: a request without a response may have been
        # carried out.
        self.writes.take()
        if isinstance(action, EvictPod):
            self.evictions.take()
            self._on_eviction()
        return None

    def _send(self, action: Action) -> Outcome:
        """Send the action's requests.

        What failed rests: it mostly fails again, and uses up the others' budget.
        """
        target = _target(action)
        last_seconds = LAST_REST_SECONDS
        try:
            outcome = self._perform(action)
        except ClusterError as error:
            outcome = _outcome_of(action, error)
            if _is_trouble(error):
                last_seconds = LAST_TROUBLE_SECONDS
            if outcome is Outcome.FAILED:
                log.warning("failed: %s: %s", action, error)
        if outcome is not Outcome.FAILED:
            self._resting.pop(target, None)
            log.info("%s: %s", outcome, action)
            return outcome
        now = self._clock()
        if len(self._resting) >= MAX_RESTING:
            self._resting = {key: rest for key, rest in self._resting.items() if rest.until > now}
        self._resting[target] = backed_off(
            self._resting.get(target), FIRST_REST_SECONDS, last_seconds, now
        )
        return outcome

    def _perform(self, action: Action) -> Outcome:
        match action:
            case ChangeNode():
                return self._change_node(action)
            case EvictPod():
                path = f"/api/v1/namespaces/{action.namespace}/pods/{action.name}/eviction"
                metadata = {"name": action.name, "namespace": action.namespace}
                options = {"preconditions": {"uid": action.uid}}
                body = {
                    "apiVersion": "policy/v1",
                    "kind": "Eviction",
                    "metadata": metadata,
                    "deleteOptions": options,
                }
                self._client.create(path, body)
            case ScaleSet():
                path = (
                    f"/apis/apps/v1/namespaces/{self._namespace}/statefulsets/{action.name}/scale"
                )
                body = {"metadata": {"uid": action.uid}, "spec": {"replicas": action.replicas}}
                self._client.merge(path, body, CONTROLLERS_MANAGER)
            case KeepHistory():
                path = f"/api/v1/namespaces/{self._namespace}/configmaps/{action.name}"
                self._client.merge(path, {"data": dict(action.data)}, CONTROLLERS_MANAGER)
            case CreatePod():
                self._client.create(
                    f"/api/v1/namespaces/{self._namespace}/pods", self._owned(action.body)
                )
            case DeletePod():
                self._client.delete(
                    f"/api/v1/namespaces/{action.namespace}/pods/{action.name}", action.uid
                )
            case Notice():
                self._events.write(action)
        return Outcome.DONE

    def _owned(self, body: JSONObject) -> JSONObject:
        """Make our ServiceAccount the pod's controller: both are deleted together, and drains evict
        such pods.
        """
        owner = self._owner()
        if owner is None:
            return body
        return {
            **body,
            "metadata": {**body["metadata"], "ownerReferences": [{**owner, "controller": True}]},
        }

    def _change_node(self, action: ChangeNode) -> Outcome:
        path = f"/api/v1/nodes/{quote(action.node)}"
        labels: JSONObject = {**action.set_labels, **dict.fromkeys(action.remove_labels)}
        metadata: JSONObject = {"uid": action.uid, **({"labels": labels} if labels else {})}
        if not action.remove_taints:
            self._client.merge(path, {"metadata": metadata}, CONTROLLERS_MANAGER)
            return Outcome.DONE
        # Taints are one list with many writers: read it, and write with the resourceVersion that
        # was read.
        for attempt in range(TAINT_TRIES):
            if not self._may_write():
                return self._hold_back(LEADER_SECONDS)
            node = self._client.get(path)
            if node["metadata"]["uid"] != action.uid:
                return Outcome.GONE
            metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
            taints = node["spec"].get("taints") or []
            left = [taint for taint in taints if taint.get("key") not in action.remove_taints]
            try:
                self._client.merge(
                    path, {"metadata": metadata, "spec": {"taints": left}}, CONTROLLERS_MANAGER
                )
            except ApiError as error:
                if error.status != CONFLICT or attempt == TAINT_TRIES - 1:
                    raise
            else:
                break
        return Outcome.DONE


def _outcome_of(action: Action, error: ClusterError) -> Outcome:
    if not isinstance(error, ApiError):
        return Outcome.FAILED
    if isinstance(action, CreatePod) and error.status == CONFLICT:
        # A pod of this name is there: an earlier request made it, and the plan didn't see it yet.
        return Outcome.DONE
    if isinstance(action, EvictPod) and error.status == TOO_MANY:
        return Outcome.REFUSED
    # The object was replaced, so its uid differs: preconditions fail with 409, patches because the
    # uid is immutable.
    if error.status == UNPROCESSABLE and "metadata.uid" in str(error):
        return Outcome.GONE
    if error.status == NOT_FOUND:
        return Outcome.GONE
    has_precondition = isinstance(action, EvictPod | DeletePod)
    if error.status == CONFLICT and (has_precondition or "UID in precondition" in str(error)):
        return Outcome.GONE
    return Outcome.FAILED


def _is_trouble(error: ClusterError) -> bool:
    """Whether the API server is overloaded, broken or away, or a webhook that it asks."""
    return (
        not isinstance(error, ApiError) or error.status == TOO_MANY or error.status >= SERVER_ERROR
    )


def _target(action: Action) -> tuple[str, ...]:
    """Identify what an action writes: equal for two actions that would fail for the same reason."""
    kind = type(action).__name__
    match action:
        case ChangeNode():
            return kind, action.node
        case CreatePod():
            return kind, str(action.body["metadata"]["name"])
        case Notice():
            return kind, action.namespace, action.name, action.reason
        case EvictPod() | DeletePod():
            return kind, action.namespace, action.name
        case ScaleSet() | KeepHistory():
            return kind, action.name
