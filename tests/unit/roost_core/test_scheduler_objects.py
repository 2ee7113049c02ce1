"""Nodes and pods as scheduling needs them: amounts, requests, terms, moments; and what of them is
no pod.
"""

import datetime as dt
from typing import Any

import pytest
import yaml

from roost_core.objects.fields import MalformedObjectError
from roost_core.objects.node import read_node
from roost_core.objects.pod import Owner, PodSpec
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.requests import read_requests
from roost_core.objects.selectors import Requirement, Taint
from roost_core.objects.timestamps import read_moment
from tests.recorded_data import object_of, rows

MIB = 2**20


def container(**requests: str) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": requests}}


def spec(**body: Any) -> PodSpec:
    return read_pod({"metadata": {"name": "p"}, "spec": {"containers": [], **body}}).spec


def test_terms_that_match_nothing_are_left_out_so_that_none_left_matches_nothing() -> None:
    required = {
        "nodeSelectorTerms": [{}, {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    }
    found = spec(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )
    assert found.required_node_terms is not None
    assert [term.expressions for term in found.required_node_terms] == [
        (Requirement("a", "Exists", frozenset()),)
    ]
    assert spec().required_node_terms is None


@pytest.mark.parametrize(("text", "cpu"), rows("pod-requests"))
def test_requests_follow_from_all_containers_and_are_rounded_up_once(text: str, cpu: int) -> None:
    # The second answer is remembered.
    assert [dict(read_requests(yaml.safe_load(text)))["cpu"] for _ in range(2)] == [cpu, cpu]


def test_requests_too_deep_or_too_large_to_be_remembered_are_read_or_refused() -> None:
    too_deep: Any = {}
    for _ in range(300):
        too_deep = {"deep": too_deep}
    deep = {"name": "main", "resources": {"requests": {"cpu": "1"}, "limits": too_deep}}
    assert dict(read_requests({"containers": [deep]})) == {"cpu": 1000}
    with pytest.raises(MalformedObjectError):
        read_requests({"containers": [{"resources": {"requests": {"cpu": 10**30 * 1.5e300}}}]})


@pytest.mark.parametrize("name", [["x"], {"a": 1}, 7, None])
def test_the_name_of_an_unbound_pods_container_may_be_anything(name: object) -> None:
    spec = {"containers": [{**container(cpu="1"), "name": name}]}
    assert dict(read_requests(spec)) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("conditions", "cpu"), [("[]", 4000), ("[{type: PodResizePending, reason: Infeasible}]", 2000)]
)
def test_while_a_resize_is_under_way_the_larger_of_wanted_granted_and_in_force_counts(
    conditions: str, cpu: int
) -> None:
    body = object_of("resized-pod")
    body["status"]["conditions"] = yaml.safe_load(conditions)
    found = dict(read_pod(body).spec.requests)
    assert (found["cpu"], found["memory"]) == (cpu, 2048 * MIB)


def test_what_scheduling_needs_of_a_pod_is_read() -> None:
    state = read_pod(object_of("placeholder"))
    assert (state.key, state.uid, state.node_name, state.phase) == (
        "jhub/placeholder-0",
        "u",
        "a",
        "Running",
    )
    assert (state.priority, state.preempts, state.scheduler_name) == (-10, False, "mine")
    assert state.started is not None
    assert state.started - state.created == 1
    assert (state.leaving, state.preempted) == (True, True)
    assert state.owner == Owner("StatefulSet", "placeholder", "s")
    assert state.annotations == {"roost.hub.jupyter.org/opt-out": "true"}
    assert state.spec.volume_images == ("r:1",)


def test_containers_are_kept_only_when_they_are_asked_for() -> None:
    body = object_of("pod-that-fails")
    assert read_pod(body).containers == ()
    main, init = read_pod(body, keep_containers=True).containers
    assert (main.image, main.waiting_reason, main.waiting_message) == (
        "i",
        "ImagePullBackOff",
        "no such host",
    )
    assert (init.image_id, init.init, init.terminated, init.running) == (
        "sha256:1",
        True,
        True,
        False,
    )


def test_equal_specs_become_one_object_through_a_pool() -> None:
    pool: dict[PodSpec, PodSpec] = {}
    bodies = [
        {"metadata": {"name": name}, "spec": {"containers": [container(cpu="1")]}} for name in "ab"
    ]
    first, second = (read_pod(body, specs=pool) for body in bodies)
    assert first.spec is second.spec


def test_what_scheduling_needs_of_a_node_is_read() -> None:
    state = read_node(object_of("node"))
    assert state.taints == (Taint("k", "", "NoSchedule"),)
    assert (state.unschedulable, state.ready) == (True, True)
    assert state.allocatable == {
        "cpu": 3900,
        "memory": 8192 * MIB,
        "pods": 110,
        "example.com/gpu": 2,
    }
    assert state.images == {"i@sha256:1": 5, "i:1": 5}
    assert state.ready_since is not None
    assert state.ready_since - state.created == 60


@pytest.mark.parametrize("text", rows("roost_core/no-pods"))
def test_what_is_no_pod_raises_one_error_and_no_other(text: str) -> None:
    with pytest.raises(MalformedObjectError):
        read_pod(yaml.safe_load(text))


@pytest.mark.parametrize(
    "body", [None, {}, {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": []}}}]
)
def test_what_is_no_node_raises_one_error_and_no_other(body: Any) -> None:
    with pytest.raises(MalformedObjectError):
        read_node(body)


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-01T00:00:00Z",
        "2024-02-29T23:59:60Z",
        "2000-03-01T01:02:03.5+02:00",
        "2026-11-21T17:50:29-05:30",
    ],
)
def test_moments_are_seconds_since_1970(text: str) -> None:
    leap = text.replace(":60Z", ":59Z")
    assert read_moment(text) == dt.datetime.fromisoformat(leap).timestamp() + (leap != text)


@pytest.mark.parametrize("text", [None, 5, "", "yesterday", "2026-11-21", "2026-11-21T17:50:29"])
def test_what_is_no_moment_is_none(text: Any) -> None:
    assert read_moment(text) is None
