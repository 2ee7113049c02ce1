"""`roost doctor --now`: pods that wait, by cause, from what a kubeconfig alone shows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from roost.doctor.now import find_waits, show_waits
from roost_core.objects.fields import JSONObject
from tests.recorded_data import printed, rows

NOW = 1_800_000_000.0
FULL = (
    "0/9 nodes are available: 2 Insufficient memory, 7 node(s) didn't match Pod's node"
    " affinity/selector. preemption: 0/9 nodes are available: 9 Preemption is not helpful for"
    " scheduling."
)


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(NOW - seconds, UTC).isoformat()


def pod(
    name: str, age: float = 60, component: str = "singleuser-server", **rest: Any
) -> JSONObject:
    metadata = {
        "name": name,
        "uid": name,
        "creationTimestamp": moment(age),
        "labels": {"component": component},
    }
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Pending"}, **rest}


def unscheduled(
    name: str, age: float, message: str = FULL, component: str = "singleuser-server"
) -> JSONObject:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "message": message,
        "lastTransitionTime": moment(age),
    }
    return pod(name, age, component, status={"phase": "Pending", "conditions": [condition]})


def bound(name: str, age: float = 60, **state: Any) -> JSONObject:
    status = {"phase": "Pending", "containerStatuses": [{"name": "notebook", "state": state}]}
    return pod(name, age, spec={"nodeName": "node-a"}, status=status)


def event(
    about: str, reason: str, message: str, age: float, *, by: str = "kubelet", kind: str = "Normal"
) -> JSONObject:
    last = moment(age)
    told = {
        "reason": reason,
        "message": message,
        "type": kind,
        "lastTimestamp": last,
        "source": {"component": by},
    }
    return {"involvedObject": {"uid": about}, **told}


def test_pods_that_wait_are_told_by_cause_newest_first_and_placeholders_last() -> None:
    pods = [
        unscheduled("jupyter-ada", 250),
        unscheduled("jupyter-bob", 12, FULL.replace("2 Insuff", "3 Insuff")),
        unscheduled("room-0", 3, component="user-placeholder"),
        bound("jupyter-cyd", 90, waiting={"reason": "ContainerCreating"}),
        pod(
            "jupyter-fine",
            status={
                "phase": "Running",
                "containerStatuses": [{"name": "a", "state": {"running": {}}}],
            },
            spec={"nodeName": "node-a"},
        ),
        pod("old", status={"phase": "Succeeded"}),
    ]
    events = [
        event(
            "jupyter-ada",
            "NotTriggerScaleUp",
            "pod didn't trigger scale-up: 1 max size",
            20,
            by="cluster-autoscaler",
        ),
        event("jupyter-cyd", "Scheduled", "assigned", 90),
        event("jupyter-cyd", "Pulling", 'Pulling image "quay.io/a/b:1"', 85),
    ]
    assert show_waits(find_waits(pods, events), len(pods), NOW) + "\n" == printed("doctor-now")


@pytest.mark.parametrize(("waits", "events", "cause", "to_do"), rows("doctor/waits"))
def test_each_cause_is_told_with_what_to_do(
    waits: JSONObject, events: list[JSONObject], cause: str, to_do: str
) -> None:
    (found,) = find_waits([waits], events)
    assert found.cause == cause
    assert to_do.lower() in show_waits([found], 1, NOW).lower()


def test_where_nothing_waits_that_is_all_it_says() -> None:
    assert show_waits([], 3, NOW) == "Waiting: 0 of 3 pods."
