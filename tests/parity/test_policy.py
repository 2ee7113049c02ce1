"""Admission by policy: the rendered MutatingAdmissionPolicies at work in a real API server."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.values.release_name import Release
from roost_core.objects.pod import PREFERRED, REQUIRED
from roost_core.placement import labels
from roost_core.release.class_of_pod import Classes
from tests.builders import HUB_RELEASE
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.parity.renderers import roost_render
from tests.recorded_data import object_of, rows
from webhook.webhook_settings import read_settings

pytestmark = pytest.mark.e2e

Pod = dict[str, Any]
VALUES: dict[str, Any] = object_of("values-of-policies")
USER_TERMS = VALUES["podClasses"]["user"]["preferredNodeTerms"]


@pytest.fixture
def hub(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[str]:
    """A namespace where the policies work; they are gone afterwards."""
    yield from install(control_plane, namespace, tmp_path, VALUES)


def install(
    control_plane: ControlPlane, namespace: str, folder: Path, values: dict[str, Any]
) -> Iterator[str]:
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    objects = roost_render([file], Release("hub", namespace, HUB_RELEASE.kube_version))
    policies = [
        body for key, body in objects.items() if key[1].startswith("MutatingAdmissionPolicy")
    ]
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": policies})
    control_plane.kubectl("apply", "--filename=-", input=manifests)
    try:
        wait_until(
            lambda: are_at_work(control_plane, namespace), 30.0, "the policies to be at work"
        )
        yield namespace
    finally:
        control_plane.kubectl("delete", "--filename=-", "--wait", input=manifests)


def are_at_work(control_plane: ControlPlane, namespace: str) -> bool:
    probes = [
        pod(labels={"component": component})
        for component in ("singleuser-server", "binderhub-build")
    ]
    return all(
        admitted(control_plane, namespace, probe)["schedulerName"] != "default-scheduler"
        for probe in probes
    )


def pod(**given: Any) -> Pod:
    metadata = {
        "generateName": "p-",
        "labels": given.pop("labels", {"component": "singleuser-server"}),
    }
    metadata["annotations"] = given.pop("annotations", {})
    image = given.pop("image", "example.org/other:1")
    spec = {
        "automountServiceAccountToken": False,
        "containers": [{"name": "c", "image": image}],
        **given,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def admitted(control_plane: ControlPlane, namespace: str, given: Pod) -> Pod:
    found = control_plane.api.create(given, namespace, dryRun="All")
    spec: Pod = found["spec"]
    return spec


def holds(namespace: str, image: str) -> Pod:
    return {
        "key": labels.pulled_label("hub", namespace, image),
        "operator": "In",
        "values": ["true"],
    }


def near(weight: int, labels: Pod, **more: object) -> Pod:
    term = {
        "labelSelector": {"matchLabels": labels},
        "topologyKey": "kubernetes.io/hostname",
        **more,
    }
    return {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}


def test_a_user_gets_scheduler_gate_terms_and_company(
    control_plane: ControlPlane, hub: str
) -> None:
    spec = admitted(control_plane, hub, pod(image="jupyter/base:1"))
    assert spec["schedulerName"] == labels.scheduler_name("hub", hub, "user")
    image = {"weight": 100, "preference": {"matchExpressions": [holds(hub, "jupyter/base:1")]}}
    dask = near(
        7, {"dask": "worker", "x/y": "on"}, namespaceSelector={"matchLabels": {"dask": "here"}}
    )
    assert spec["affinity"] == {
        "nodeAffinity": {PREFERRED: [*USER_TERMS, image]},
        "podAffinity": near(100, {"component": "singleuser-server"}),
        "podAntiAffinity": dask,
    }


@pytest.mark.parametrize(
    "image",
    [
        "docker.io/jupyter/base:1",
        "index.docker.io/jupyter/base:1",
        *(f"quay.io/o/{x}" for x in ("gpu", "gpu:latest", "x:2")),
    ],
)
def test_each_way_to_write_a_managed_image_is_known(
    image: str, control_plane: ControlPlane, hub: str
) -> None:
    terms = admitted(control_plane, hub, pod(image=image))["affinity"]["nodeAffinity"][PREFERRED]
    assert {"weight": 100, "preference": {"matchExpressions": [holds(hub, image)]}} in terms


def test_an_image_that_nobody_pulls_draws_nobody(control_plane: ControlPlane, hub: str) -> None:
    terms = admitted(control_plane, hub, pod())["affinity"]["nodeAffinity"][PREFERRED]
    assert terms == USER_TERMS


def test_required_terms_stay_as_they_are_and_each_image_is_preferred_once(
    control_plane: ControlPlane, hub: str
) -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    here = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    terms = [{"matchExpressions": [zone]}, {"matchFields": [here]}, {}]
    given = pod(
        image="jupyter/base:1",
        initContainers=[
            {"name": "i", "image": "quay.io/o/x:2"},
            {"name": "j", "image": "jupyter/base:1"},
        ],
        affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}},
    )
    node = admitted(control_plane, hub, given)["affinity"]["nodeAffinity"]
    assert node[REQUIRED]["nodeSelectorTerms"] == terms
    assert node[PREFERRED][-2:] == [
        {"weight": 100, "preference": {"matchExpressions": [holds(hub, image)]}}
        for image in ("jupyter/base:1", "quay.io/o/x:2")
    ]


def test_a_pod_that_is_admitted_twice_is_as_admitted_once(
    control_plane: ControlPlane, hub: str
) -> None:
    once = admitted(control_plane, hub, pod(image="jupyter/base:1"))
    again = pod()
    again["spec"] = copy.deepcopy(once)
    assert admitted(control_plane, hub, again) == once


def test_what_an_author_wrote_stays_and_is_not_doubled(
    control_plane: ControlPlane, hub: str
) -> None:
    purpose = {"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}
    own = {"weight": 5, "preference": {"matchExpressions": [purpose]}}
    near = {
        "weight": 1,
        "podAffinityTerm": {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"},
    }
    given = pod(affinity={"nodeAffinity": {PREFERRED: [own]}, "podAffinity": {PREFERRED: [near]}})
    affinity = admitted(control_plane, hub, given)["affinity"]
    assert affinity["nodeAffinity"][PREFERRED][0] == own
    assert [term["weight"] for term in affinity["nodeAffinity"][PREFERRED]] == [5, 3]
    assert affinity["podAffinity"][PREFERRED][0] == near
    assert [term["weight"] for term in affinity["podAffinity"][PREFERRED]] == [1, 100]


LEFT_ALONE: dict[str, Pod] = {
    "opt-out": {"annotations": {labels.OPT_OUT_ANNOTATION: "true"}},
    "bound": {"nodeName": "some-node"},
    "no class": {"labels": {"component": "something-else"}},
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_a_pod_that_is_none_of_ours_is_left_alone(
    case: str, control_plane: ControlPlane, hub: str
) -> None:
    spec = admitted(control_plane, hub, pod(**LEFT_ALONE[case], image="jupyter/base:1"))
    assert spec["schedulerName"] == "default-scheduler"
    assert "affinity" not in spec


def test_only_schedulers_that_may_be_replaced_are(control_plane: ControlPlane, hub: str) -> None:
    mine = admitted(control_plane, hub, pod(schedulerName="mine"))
    assert mine["schedulerName"] == "mine"
    theirs = admitted(control_plane, hub, pod(schedulerName="hub-user-scheduler"))
    assert theirs["schedulerName"] == labels.scheduler_name("hub", hub, "user")


@pytest.mark.parametrize("spec", rows("webhook/own-terms"))
def test_an_authors_terms_about_pods_decide_before_packing(
    spec: Pod, control_plane: ControlPlane, hub: str
) -> None:
    assert admitted(control_plane, hub, pod(**spec))["schedulerName"] == labels.scheduler_name(
        "hub", hub, "user_strict"
    )


def test_a_class_in_selected_namespaces_works_there_alone(
    control_plane: ControlPlane, hub: str
) -> None:
    there = control_plane.create_namespace(labels={"dask": "here"})
    elsewhere = control_plane.create_namespace()
    worker = pod(labels={"dask": "worker", "x/y": "on"})
    wait_until(
        lambda: "affinity" in admitted(control_plane, there, worker), 20.0, "the class's policy"
    )
    spec = admitted(control_plane, there, worker)
    assert spec["schedulerName"] == "default-scheduler"
    towards_dask, towards_users = spec["affinity"]["podAffinity"][PREFERRED]
    assert towards_dask["podAffinityTerm"]["namespaceSelector"] == {"matchLabels": {"dask": "here"}}
    assert towards_users["podAffinityTerm"]["namespaces"] == [hub]
    assert "affinity" not in admitted(control_plane, elsewhere, worker)


TWO_CLASSES: dict[str, Any] = object_of("classes-of-policies")
ZEBRA = {"zebra": "yes"}


def test_a_pod_of_several_classes_gets_the_one_that_the_webhook_would_give_it(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    namespace = control_plane.create_namespace(labels={"courses": "here"})
    file = tmp_path / "webhook.yaml"
    file.write_text(json.dumps({"podClasses": TWO_CLASSES}))
    objects = roost_render([file], Release("hub", namespace, HUB_RELEASE.kube_version))
    (document,) = [
        body["data"]["release.json"]
        for body in objects.values()
        if "release.json" in body.get("data", {})
    ]
    settings = read_settings(document.encode())
    every = {"gpu": "yes", "course": "yes", "zebra": "yes"}
    more = ({}, *({key: "yes"} for key in every), every)
    wanted = [{"component": "singleuser-server", **labels} for labels in more]
    wanted += [{"course": "yes", **ZEBRA}, ZEBRA]
    values = {"admission": {"mode": "policy"}, "podClasses": TWO_CLASSES}
    for hub in install(control_plane, namespace, tmp_path, values):
        for namespace_labels in ({"courses": "here"}, {"courses": "here", "closed": "yes"}):
            control_plane.api.patch(
                f"/api/v1/namespaces/{hub}",
                {"metadata": {"labels": {"closed": None, **namespace_labels}}},
            )
            known = {hub: namespace_labels}
            is_course_open = "closed" not in namespace_labels
            course = {"course": "yes", "component": "singleuser-server"}
            wait_for_join(control_plane, hub, course, 4 if is_course_open else 100)
            # Each class has a policy, and the API server learns of one after the other.
            wait_for_join(control_plane, hub, ZEBRA, 5)
            for given in wanted:
                pod_class = Classes(settings.namespace, settings.classes).classify(
                    given, hub, known
                )
                spec = admitted(control_plane, hub, pod(labels=given))
                if pod_class is None:
                    assert "affinity" not in spec
                    continue
                assert joins(spec) == list(pod_class.join.values()), (given, pod_class.name)
                assert spec["schedulerName"] == labels.scheduler_name("hub", hub, pod_class.profile)


def wait_for_join(
    control_plane: ControlPlane, hub: str, given: dict[str, str], weight: int
) -> None:
    probe = pod(labels=given)
    wait_until(
        lambda: joins(admitted(control_plane, hub, probe)) == [weight],
        30,
        "the policies and the namespace's labels to be known",
    )


def joins(spec: Pod) -> list[int]:
    return [
        term["weight"]
        for term in spec.get("affinity", {}).get("podAffinity", {}).get(PREFERRED, ())
    ]


def test_an_older_cluster_gets_no_policy(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(json.dumps(VALUES))
    kinds = {key[1] for key in roost_render([file], Release("hub", "jhub", "v1.35.4"))}
    assert not any("Mutating" in kind or "Webhook" in kind for kind in kinds)
