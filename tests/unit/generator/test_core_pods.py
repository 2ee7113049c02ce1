"""Pods as rendered: what programs have in common and change, what placeholders inherit, security
contexts.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.render.functions import complete_placeholder_set
from generator.render.manifests import render
from generator.values.merge import merge_maps
from generator.values.release_name import Release
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.popular_images.pull_pods import PopularPull, pull_pod
from roost.controllers.popular_images.settings import read_popular_settings
from roost_core.release.reader import Reader
from tests.builders import HUB_RELEASE, default_values, release_document
from tests.popular_builders import node_state
from tests.recorded_data import rows
from tests.unit.generator.linted import found, merged, said

PROGRAMS = ("scheduler", "webhook", "controllers", "recorder", "seating")
Values = dict[str, Any]


def pods(text: str) -> dict[str, Values]:
    bodies: list[Values] = [
        dict(manifest.body)
        for manifest in render(merged(text).values, Release("hub", "hub", "v1.37.2"))
    ]
    deployments = {
        body["metadata"]["name"]: body for body in bodies if body["kind"] == "Deployment"
    }
    return {name: deployments[f"hub-roost-{name}"]["spec"]["template"]["spec"] for name in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_has_what_core_pods_says(program: str) -> None:
    spec = pods(
        "recorder: {enabled: true}\nseating: {enabled: true}\n"
        "corePods: {nodeSelector: {pool: core}, tolerations: [], hostNetwork: true}"
    )
    assert spec[program]["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "core"}
    assert "tolerations" not in spec[program]
    assert spec[program]["hostNetwork"] is True


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_changes_what_it_names_for_itself_alone(program: str) -> None:
    own = {"nodeSelector": {"disk": "ssd"}, "priorityClassName": "", "hostNetwork": False}
    common = {"nodeSelector": {"pool": "core"}, "priorityClassName": "high", "hostNetwork": True}
    switched_on = {"recorder": {"enabled": True}, "seating": {"enabled": True}}
    specs = pods(json.dumps(merge_maps({"corePods": common, **switched_on}, {program: own})))
    assert specs[program]["nodeSelector"] == {
        "kubernetes.io/os": "linux",
        "pool": "core",
        "disk": "ssd",
    }
    assert not {"priorityClassName", "hostNetwork"} & set(specs[program])
    others = [specs[name] for name in PROGRAMS if name != program]
    assert all(
        other["nodeSelector"]["pool"] == "core" and other["priorityClassName"] == "high"
        for other in others
    )


@pytest.mark.parametrize(("values", "key"), rows("generator/core-pods-faults"))
def test_a_fault_names_the_key_that_says_it(values: str, key: str) -> None:
    assert key in {fault.key for fault in found(values)}


def test_the_defaults_hold_for_every_entry_that_does_not_name_them() -> None:
    values = merged("""
placeholder:
  defaults:
    annotations: {x: "y"}
    nodeSelector: {pool: users}
    requiredNodeTerms: [{matchExpressions: [{key: a, operator: Exists}]}]
placeholders: [{name: a, replicas: 1}, {name: b, replicas: 2, nodeSelector: {pool: large}}]
""").values
    bodies: list[Values] = [
        dict(manifest.body) for manifest in render(values, Release("hub", "hub"))
    ]
    pods = [body["spec"]["template"] for body in bodies if body["kind"] == "StatefulSet"]
    # On Windows nodes no placeholder could run.
    assert [pod["spec"]["nodeSelector"] for pod in pods] == [
        {"kubernetes.io/os": "linux", "pool": "users"},
        {"kubernetes.io/os": "linux", "pool": "large"},
    ]
    for pod in pods:
        assert pod["metadata"]["annotations"] == {"x": "y"}
        required = pod["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert required["nodeSelectorTerms"] == [
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
        ]
        assert pod["spec"]["containers"][0]["resources"] == {
            "requests": {"cpu": "50m", "memory": "1Gi"}
        }


@pytest.mark.parametrize(("tolerations", "is_warned"), rows("generator/placeholders-tolerations"))
def test_an_entry_that_drops_the_user_pools_toleration_is_warned_of(
    tolerations: str, is_warned: bool
) -> None:
    text = f"placeholders: [{{name: a, replicas: 1, tolerations: {tolerations}}}]"
    assert (
        "prod.yaml:1: warning: placeholders[0].tolerations: leaves out" in said(text)
    ) is is_warned


def test_an_entry_without_pods_may_drop_what_it_likes() -> None:
    assert "leaves out" not in said("placeholders: [{name: a, replicas: 0, tolerations: []}]")


ENTRIES: st.SearchStrategy[dict[str, object]] = st.dictionaries(
    st.sampled_from(
        ["resources", "nodeSelector", "tolerations", "requiredNodeTerms", "labels", "windows"]
    ),
    st.one_of(
        st.none(),
        st.just({}),
        st.just([]),
        st.just("nodes"),
        st.dictionaries(st.just("a"), st.just("b")),
    ),
)


@given(entry=ENTRIES)
def test_a_named_key_counts_as_a_whole_and_every_other_is_the_defaults(
    entry: Mapping[str, object],
) -> None:
    defaults = {
        "resources": {"requests": {"cpu": "1"}},
        "nodeSelector": {"x": "y"},
        "tolerations": [1],
        "labels": {},
    }
    whole = complete_placeholder_set(entry, defaults)
    named = {key: value for key, value in entry.items() if value is not None}
    usual = {**defaults, "windows": [], "learn": None}
    assert whole == {**usual, **named}


EVERYTHING = (
    "{recorder: {enabled: true}, prePuller: {extraImages: {a: {name: a/b, tag: '1'}}}, events:"
    " {enabled: true}"
)
OPENSHIFT = (
    f"{EVERYTHING}, podSecurityContext: {{runAsUser: null, runAsGroup: null, fsGroup: null}}}}"
)


def all_pods(text: str) -> Iterator[tuple[str, Any]]:
    for manifest in render(merged(text).values, HUB_RELEASE):
        body: Any = manifest.body
        if body["kind"] in ("Deployment", "DaemonSet", "StatefulSet"):
            yield f"{body['kind']} {body['metadata']['name']}", body["spec"]["template"]["spec"]


def test_without_fixed_ids_no_pod_has_any_and_the_rest_stays() -> None:
    seen = dict(all_pods(OPENSHIFT))
    assert {name.partition(" ")[0] for name in seen} == {"Deployment", "DaemonSet", "StatefulSet"}
    assert len(seen) == 6
    for name, spec in seen.items():
        assert spec["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }, name
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert container["securityContext"] == default_values()["securityContext"], name


@pytest.mark.parametrize("text", [f"{EVERYTHING}}}", OPENSHIFT])
def test_pods_that_the_controllers_make_have_the_same(text: str) -> None:
    settings = read_popular_settings(ReleaseDocument(Reader(), release_document(text)))
    assert settings is not None
    pod: Any = pull_pod(settings, node_state("n"), PopularPull("a/b:1", "n", 1))
    expected = {name: spec["securityContext"] for name, spec in all_pods(text)}[
        "DaemonSet hub-roost-puller"
    ]
    assert pod["spec"]["securityContext"] == expected
