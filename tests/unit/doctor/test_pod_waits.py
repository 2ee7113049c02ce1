"""`roost doctor --now`: pods that wait, by cause, from what a kubeconfig alone shows."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from roost.doctor.pod_waits import find_waits, show_waits
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


def event(about: str, reason: str, message: str, age: float, *, by: str = "kubelet") -> JSONObject:
    last = moment(age)
    told = {
        "reason": reason,
        "message": message,
        "type": "Normal",
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


def a_pod(name: str, **status: Any) -> JSONObject:
    metadata = {"name": name, "uid": name, "creationTimestamp": stamp(NOW - 70)}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(NOW - 60)}
    status = {"phase": "Pending", "conditions": [bound], **status}
    return {"metadata": metadata, "spec": {"nodeName": "node-a"}, "status": status}


def stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def warned(pod: str, reason: str, message: str, first: float, last: float) -> JSONObject:
    return {
        "involvedObject": {"uid": pod},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "firstTimestamp": stamp(NOW - first),
        "lastTimestamp": stamp(NOW - last),
    }


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("reason", "message", "to_do"),
    [
        ("FailedMount", "MountVolume.SetUp failed", "kubectl describe pvc"),
        ("FailedAttachVolume", "Multi-Attach error", "kubectl describe pvc"),
        ("FailedCreatePodSandBox", "Failed to create pod sandbox: x", "network plugin"),
    ],
)
def test_a_wait_that_is_told_again_and_again_is_as_old_as_its_first_event(
    reason: str, message: str, to_do: str, seed: int
) -> None:
    rng = random.Random(seed)
    first, last = rng.randint(30, 59), rng.randint(0, 5)
    # One Event that is repeated, or several whose words differ; another pod's, and older ones of
    # another cause.
    events = [warned("p", reason, message, first, last)]
    for number in range(rng.randint(0, 3)):
        begin = rng.randint(last, first)
        events.append(warned("p", reason, f"{message} {number}", begin, rng.randint(last, begin)))
    events += [warned("q", reason, message, 300, 1), warned("p", "FailedScheduling", "x", 69, 65)]
    rng.shuffle(events)
    (wait,) = find_waits([a_pod("p")], events)
    assert NOW - wait.since == first
    text = show_waits([wait], 1, NOW)
    assert f"newest {first} s, oldest {first} s" in text
    assert to_do in text


def test_a_mount_that_timed_out_began_with_the_binding_and_an_init_container_with_its_start() -> (
    None
):
    late = warned("p", "FailedMount", "Unable to mount: timed out waiting for the condition", 3, 1)
    (wait,) = find_waits([a_pod("p")], [late])
    assert NOW - wait.since == 60
    init = {"name": "chown", "state": {"running": {"startedAt": stamp(NOW - 41)}}}
    (wait,) = find_waits([a_pod("p", initContainerStatuses=[init])], [])
    assert (wait.cause, NOW - wait.since) == ("chown runs before the rest", 41)
    assert "kubectl logs -c" in show_waits([wait], 1, NOW)
