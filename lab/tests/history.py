"""Builders of Kubernetes' Events and pods as people export them: of core/v1, in kubectl's form."""

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from roost_core.objects.fields import JSONObject
from roost_lab.recorder.importing.history import ImportedHistory
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from tests.recorded_data import object_of

BEGIN = datetime(2026, 10, 5, 8, 0, tzinfo=UTC)
IMAGE = "quay.io/jupyter/scipy-notebook:2026-09-01"
NAMESPACE = "hub"


def seconds_text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def micros_of(at: datetime) -> int:
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))


KUBELET: JSONObject = object_of("kubelet-event")


@dataclass
class Events:
    """A cluster's Events, in the order in which they were written."""

    items: list[JSONObject] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)

    def add(self, pod: str, reason: str, message: str, at: datetime, **changes: Any) -> JSONObject:
        """A kubelet's Event, in whole seconds."""
        number = next(self._numbers)
        text = seconds_text(at)
        metadata = {
            "name": f"{pod}.{number:016x}",
            "namespace": NAMESPACE,
            "uid": f"event-{number}",
        }
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": NAMESPACE,
            "name": pod,
            "uid": uid_of(pod),
        }
        event = {
            **KUBELET,
            "metadata": {**metadata, "creationTimestamp": text},
            "involvedObject": {**about, "fieldPath": "spec.containers{notebook}"},
            "reason": reason,
            "message": message,
            "firstTimestamp": text,
            "lastTimestamp": text,
            **changes,
        }
        self.items.append(event)
        return event

    def schedule(self, pod: str, reason: str, message: str, at: datetime) -> JSONObject:
        """A scheduler's Event, in microseconds."""
        event = self.add(pod, reason, message, at)
        del (
            event["involvedObject"]["fieldPath"],
            event["firstTimestamp"],
            event["lastTimestamp"],
            event["count"],
        )
        event.update(
            source={},
            eventTime=at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            reportingComponent="hub-user-scheduler",
            reportingInstance="hub-user-scheduler-0",
        )
        return event

    def start(
        self,
        pod: str,
        at: datetime,
        *,
        wait: float = 0,
        pull: float | None = None,
        end: float | None = None,
    ) -> None:
        """All Events of one start: seconds without a node, of a cold pull, and until it is
        stopped.
        """
        if wait:
            self.schedule(
                pod, "FailedScheduling", "0/4 nodes are available: 4 Insufficient memory.", at
            )
        bound = at + timedelta(seconds=wait)
        self.schedule(pod, "Scheduled", f"Successfully assigned {NAMESPACE}/{pod} to node-1", bound)
        ready = bound + timedelta(seconds=pull or 0)
        if pull is None:
            self.add(pod, "Pulled", f'Container image "{IMAGE}" already present on machine', ready)
        else:
            self.add(pod, "Pulling", f'Pulling image "{IMAGE}"', bound)
            took = (
                f"in {pull - 0.5:.3f}s ({pull:.3f}s including waiting). Image size: 1203405607"
                " bytes."
            )
            self.add(pod, "Pulled", f'Successfully pulled image "{IMAGE}" {took}', ready)
        self.add(pod, "Created", "Created container: notebook", ready)
        self.add(pod, "Started", "Started container notebook", ready + timedelta(seconds=1))
        if end is not None:
            self.add(pod, "Killing", "Stopping container notebook", at + timedelta(seconds=end))


def uid_of(pod: str) -> str:
    return f"uid-{pod}"


def listed(items: Iterable[JSONObject]) -> str:
    """As `kubectl get -o json` prints them."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "List",
            "metadata": {"resourceVersion": ""},
            "items": list(items),
        },
        indent=4,
    )


def as_lines(items: Iterable[JSONObject]) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in items)


def morning(pods: int = 6) -> Events:
    """Starts a minute apart: warm, cold, and after a wait; some end."""
    events = Events()
    for number in range(pods):
        at = BEGIN + timedelta(minutes=number, milliseconds=250)
        wait, pull, end = (
            95 if number % 3 == 2 else 0,
            40 if number % 3 else None,
            1800 if number % 2 else None,
        )
        events.start(f"jupyter-user-{number}", at, wait=wait, pull=pull, end=end)
    return events


def user_pod(name: str, at: datetime, **labels: str) -> JSONObject:
    """A pod that runs, as its kubelet reports it."""
    bound, started, ready = (seconds_text(at + timedelta(seconds=after)) for after in (1, 5, 6))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid_of(name),
            "creationTimestamp": seconds_text(at),
            "labels": {
                "component": "singleuser-server",
                "app": "jupyterhub",
                "release": "our-hub",
                **labels,
            },
        },
        "spec": {
            "nodeName": "node-1",
            "schedulerName": "hub-user-scheduler",
            "priority": 10,
            "containers": [
                {
                    "name": "notebook",
                    "image": IMAGE,
                    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                }
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": bound,
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": bound},
                {"type": "Ready", "status": "True", "lastTransitionTime": ready},
            ],
            "containerStatuses": [
                {
                    "name": "notebook",
                    "image": IMAGE,
                    "imageID": "",
                    "state": {"running": {"startedAt": started}},
                }
            ],
        },
    }


def import_texts(store: Store, folder: Path, *texts: str | bytes) -> ImportedHistory:
    """Import each text as a file of its own, in one go."""
    names = []
    for number, text in enumerate(texts):
        path = folder / f"file-{number}.json"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        names.append(str(path))
    history = ImportedHistory(store)
    history.read(names)
    return history


def rows(store: Store, table: sa.FromClause) -> list[JSONObject]:
    with store.reading() as connection:
        return sorted(
            (dict(row) for row in connection.execute(sa.select(table)).mappings()), key=repr
        )


# Kinds and places are numbered in the order in which they came.
_NUMBERS = {"id", "kind_id", "place_id"}


def contents(store: Store) -> dict[str, list[JSONObject]]:
    """Everything that is stored, whatever the order in which it came."""
    with store.reading() as connection:
        starts = connection.execute(
            sa.select(schema.start, schema.start_kind, schema.start_place.c.node_name)
            .join(schema.start_kind, schema.start_kind.c.id == schema.start.c.kind_id)
            .join(
                schema.start_place, schema.start_place.c.id == schema.start.c.place_id, isouter=True
            )
            .order_by(schema.start.c.pod_uid, schema.start.c.created_us)
        ).mappings()
        found = {
            "starts": [{key: row[key] for key in row if key not in _NUMBERS} for row in starts]
        }
    for table in (schema.pod, schema.decision, schema.pull, schema.preemption, schema.autoscaler):
        found[table.name] = rows(store, table)
    found["phase"] = rows(store, schema.phase)
    return found
