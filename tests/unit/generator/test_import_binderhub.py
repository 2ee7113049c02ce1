"""BinderHub's builds and users."""

import pytest

from tests.unit.generator.imported_hubs import imported, placeholder, unmapped, value

BINDER = """
    imageBuilderType: dind
    dind: {resources: {requests: {cpu: "1", memory: 4Gi}}}
    config:
      BinderHub: {use_registry: true, image_prefix: registry.example.org/binder-}
      KubernetesBuildExecutor:
        sticky_builds: true
        namespace: builds
        resources: {requests: {cpu: 200m, memory: 2G}, limits: {memory: 2G}}
        node_selector: {pool: builds}
    jupyterhub:
      singleuser: {cpu: {guarantee: 0.1}}
"""


def test_a_binderhubs_builds_keep_their_home_namespace_and_size() -> None:
    result = imported(BINDER)
    assert value(result, "podClasses.build.home.builders.labels") == {"component": "image-builder", "app": "binder"}
    assert value(result, "podClasses.build.match.namespaceSelector") == {
        "matchLabels": {"kubernetes.io/metadata.name": "builds"}
    }
    assert value(result, "podClasses.build.resources") == {"cpu": "200m", "memory": "2G"}
    assert "config.KubernetesBuildExecutor.sticky_builds: false" in result.switch_off
    assert list(unmapped(result)) == ["dind.resources", "config.KubernetesBuildExecutor.node_selector"]
    told = "config.KubernetesBuildExecutor.resources is not in this file: Roost gives builds requests"
    bare = imported(BINDER.replace("resources: {requests: {cpu: 200m, memory: 2G}, limits: {memory: 2G}}", ""))
    assert [any(told in note for note in each.notes) for each in (result, bare)] == [False, True]


def test_a_binderhubs_users_have_no_guarantee_and_no_image_to_wait_for() -> None:
    result = imported(BINDER)
    assert value(result, "singleuser.memory.guarantee") is None
    assert value(result, "imageGate.mode") == "off"
    assert placeholder(result)["resources"] == {"requests": {"cpu": "100m"}}


@pytest.mark.parametrize(
    "text", ["imageBuilderType: host\njupyterhub: {}", "binderhub: {config: {BinderHub: {use_registry: true}}}"]
)
def test_builds_by_the_docker_of_their_node_may_have_any_node_for_a_home(text: str) -> None:
    assert value(imported(text), "podClasses.build.home.builders.labels") == {}


def test_sticky_builds_of_a_layer_without_builder_keep_their_home() -> None:
    result = imported("binderhub: {config: {BinderHub: {sticky_builds: true, build_memory_request: 1G}}}")
    assert value(result, "podClasses.build.home.builders.labels") == {"component": "image-builder", "app": "binder"}
    assert value(result, "podClasses.build.resources.memory") == "1Gi"
    assert "binderhub.config.BinderHub.sticky_builds: false" in result.switch_off


@pytest.mark.parametrize("builder", ["pink", "host"])
def test_builds_that_were_not_to_be_sticky_are_not(builder: str) -> None:
    result = imported(f"imageBuilderType: {builder}\nconfig: {{KubernetesBuildExecutor: {{sticky_builds: false}}}}")
    assert value(result, "podClasses.build.home") is None


MEMBER = """
    etcJupyter: {}
    cryptnono: {enabled: true}
    binderhubEnabled: true
    binderhub:
      imageBuilderType: dind
      config:
        BinderHub: {pod_quota: 300, per_repo_quota: 100, sticky_builds: true}
        KubernetesBuildExecutor:
          resources: {requests: {cpu: 100m, memory: 2G}, limits: {cpu: "1", memory: 2G}}
      jupyterhub:
        scheduling:
          userPlaceholder: {enabled: false, replicas: 75}
          userScheduler: {enabled: false}
        singleuser:
          memory: {guarantee: 450M, limit: 2G}
          cpu: {guarantee: 0.01, limit: 1}
"""


def test_a_binder_federation_member() -> None:
    result = imported(MEMBER)
    assert result.values == {
        "scheduler": {"target": "none"},
        # Drawn to nobody, as before.
        "podClasses": {"user": {"join": {"user": None}, "warm": None}, "build": {"resources": {"memory": "2G"}}},
        "imageGate": {"mode": "off"},
        "prePuller": {"enabled": False},
        "singleuser": {"cpu": {"guarantee": 0.01, "limit": 1}, "memory": {"guarantee": "450M", "limit": "2G"}},
        "placeholders": [],
    }
    assert result.switch_off == ["binderhub.config.BinderHub.sticky_builds: false"]
