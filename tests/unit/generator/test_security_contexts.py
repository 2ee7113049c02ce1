"""Security contexts of all pods are the values': their keys can be taken away, as OpenShift's restricted-v2 asks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from generator.render.manifests import render
from generator.values.release import Release
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.popular_images.pull_pods import PopularPull, pull_pod
from roost.controllers.popular_images.settings import read_popular_settings
from roost_core.release.reader import Reader
from tests.builders import default_values
from tests.popular_builders import node_state
from tests.unit.generator.linted import merged

RELEASE = Release("hub", "jhub", "v1.37.2")
EVERYTHING = "{recorder: {enabled: true}, prePuller: {extraImages: {a: {name: a/b, tag: '1'}}}, events: {enabled: true}"
OPENSHIFT = f"{EVERYTHING}, podSecurityContext: {{runAsUser: null, runAsGroup: null, fsGroup: null}}}}"


def pods(text: str) -> Iterator[tuple[str, Any]]:
    for manifest in render(merged(text).values, RELEASE):
        body: Any = manifest.body
        if body["kind"] in ("Deployment", "DaemonSet", "StatefulSet"):
            yield f"{body['kind']} {body['metadata']['name']}", body["spec"]["template"]["spec"]


def test_without_fixed_ids_no_pod_has_any_and_the_rest_stays() -> None:
    seen = dict(pods(OPENSHIFT))
    assert {name.partition(" ")[0] for name in seen} == {"Deployment", "DaemonSet", "StatefulSet"}
    assert len(seen) == 6
    for name, spec in seen.items():
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}, name
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert container["securityContext"] == default_values()["securityContext"], name


@pytest.mark.parametrize("text", [f"{EVERYTHING}}}", OPENSHIFT])
def test_pods_that_the_controllers_make_have_the_same(text: str) -> None:
    bodies: list[Any] = [manifest.body for manifest in render(merged(text).values, RELEASE)]
    (document,) = (
        json.loads(body["data"]["release.json"])
        for body in bodies
        if body["kind"] == "ConfigMap" and "release.json" in body["data"]
    )
    settings = read_popular_settings(ReleaseDocument(Reader(), document))
    assert settings is not None
    pod: Any = pull_pod(settings, node_state("n"), PopularPull("a/b:1", "n", 1))
    expected = {name: spec["securityContext"] for name, spec in pods(text)}["DaemonSet hub-roost-puller"]
    assert pod["spec"]["securityContext"] == expected
