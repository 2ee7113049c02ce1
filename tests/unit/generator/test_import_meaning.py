"""An import keeps what a hub meant: where its users may go, what they pull with which Secrets, who pulls for them."""

from typing import Any

import pytest

from generator.importing.source import child
from roost_core.placement.managed_images import puller_groups
from tests.unit.generator.imported_hubs import PURPOSE_USER, imported, unmapped, value

GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
PROFILES = """
singleuser:
  image: {name: quay.io/o/default, tag: "1"}
  extraTolerations: [{key: course, operator: Exists}]
  profileList:
    - display_name: GPU
      description: dropped
      kubespawner_override:
        image: quay.io/o/gpu:1
        mem_guarantee: 60G
        environment: {SECRET: dropped}
        tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}, {key: broken, operator: Perhaps}]
        extra_resource_limits: {nvidia.com/gpu: "1"}
        node_affinity_required: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}, {}]
        init_containers: [{name: fuse, image: "fuse:1", env: [{name: TOKEN, value: dropped}]}]
    - display_name: elsewhere
      profile_options:
        pool: {choices: {large: {kubespawner_override: {node_selector: {pool: large}, tolerations: []}}}}
"""


def groups(result: Any) -> dict[str, Any]:
    """The images of each puller, by the keys that it tolerates."""
    found = puller_groups(value(result, "singleuser"), value(result, "prePuller"))
    return {",".join(str(one["key"]) for one in group.tolerations[2:]): group for group in found}


def test_a_profiles_nodes_tolerations_and_extended_resources_are_kept() -> None:
    result = imported(PROFILES)
    assert value(result, "singleuser.profileList") == [
        {
            "display_name": "GPU",
            "kubespawner_override": {
                "image": "quay.io/o/gpu:1",
                "extra_resource_limits": {"nvidia.com/gpu": "1"},
                "tolerations": [GPU],
                "node_affinity_required": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}],
                "init_containers": [{"image": "fuse:1"}],
            },
        },
        {
            "display_name": "elsewhere",
            "profile_options": {
                "pool": {
                    "choices": {
                        "large": {"kubespawner_override": {"node_selector": {"pool": "large"}, "tolerations": []}}
                    }
                }
            },
        },
    ]
    assert "dropped" not in result.to_yaml()


def test_each_profiles_puller_goes_where_its_users_may() -> None:
    found = groups(imported(PROFILES))
    assert found["course"].images == ("quay.io/o/default:1",)
    assert found["nvidia.com/gpu,nvidia.com/gpu"].images == ("fuse:1", "quay.io/o/gpu:1")
    assert found[""].node_selector == {"pool": "large"}


def test_nodes_that_users_require_are_the_pullers() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    result = imported(f"""
        scheduling: {{userPods: {{nodeAffinity: {{matchNodePurpose: require}}}}}}
        singleuser: {{image: {{name: a/b, tag: "1"}}, extraNodeAffinity: {{required: [{zone}]}}}}
        """)
    (group,) = groups(result).values()
    assert list(group.required_terms) == [PURPOSE_USER, zone]


def test_what_runs_beside_the_image_is_brought_too() -> None:
    result = imported("""
        singleuser:
          image: {name: a/b, tag: "1"}
          initContainers: [{name: tc, image: "tc:1", env: [{name: PASSWORD, value: secret}]}]
          extraContainers: [{name: proxy, image: "proxy:1"}, {name: none}]
          networkTools: {image: {name: quay.io/jupyterhub/k8s-network-tools, tag: "4.4.0"}}
        """)
    (group,) = groups(result).values()
    assert group.images == ("tc:1", "quay.io/jupyterhub/k8s-network-tools:4.4.0", "proxy:1", "a/b:1")
    assert "secret" not in result.to_yaml()


@pytest.mark.parametrize("off", ["cloudMetadata: {blockWithIptables: false}", "cloudMetadata: {enabled: true}"])
def test_network_tools_are_left_out_where_no_pod_runs_them(off: str) -> None:
    tools = "networkTools: {image: {name: tools, tag: '1'}}"
    assert value(imported(f"singleuser: {{{tools}, {off}}}"), "singleuser.networkTools.image.name") == ""
    assert value(imported(f"singleuser: {{{tools}}}"), "singleuser.networkTools.image.name") == "tools"


def test_network_tools_that_the_file_does_not_name_are_spoken_of() -> None:
    assert "networkTools.image is not in this file" in imported("singleuser: {}").report()
    assert "networkTools" not in imported("singleuser: {cloudMetadata: {blockWithIptables: false}}").report()


def test_pull_secrets_come_along() -> None:
    result = imported("""
        imagePullSecret: {create: true, registry: r, username: u, password: hidden}
        imagePullSecrets: [all, {name: object}]
        singleuser:
          image: {pullSecrets: [users]}
          profileList: [{kubespawner_override: {image: "private/a:1", image_pull_secrets: [{name: profile}, users]}}]
        """)
    assert value(result, "imagePullSecrets") == ["all", "object", "image-pull-secret"]
    assert value(result, "singleuser.image.pullSecrets") == ["users", "profile"]
    assert "hidden" not in result.to_yaml()


@pytest.mark.parametrize(
    ("names", "secret"),
    [
        ("fullnameOverride: lab", "lab-image-pull-secret"),
        ("fullnameOverride: null", "hub-jupyterhub-image-pull-secret"),
        ("fullnameOverride: null\nnameOverride: hub", "hub-image-pull-secret"),
    ],
)
def test_the_secret_that_the_chart_makes_is_called_as_the_chart_calls_it(names: str, secret: str) -> None:
    assert value(imported(f"singleuser: {{}}\nimagePullSecret: {{create: true}}\n{names}"), "imagePullSecrets") == [
        secret
    ]


def test_a_hub_that_pulled_during_upgrades_only_stays_soft() -> None:
    result = imported("singleuser: {image: {name: a/b, tag: '1'}}\nprePuller: {continuous: {enabled: false}}")
    assert value(result, "prePuller.enabled") is False
    assert value(result, "imageGate.mode") == "prefer"
    assert value(result, "imageGate.pullerPods") == "zeroToJupyterHub"
    assert not any("prePuller" in line for line in result.switch_off)


def test_a_hub_without_its_own_scheduler_is_not_packed_by_the_way() -> None:
    result = imported("scheduling: {userScheduler: {enabled: false}}")
    classes = value(result, "podClasses")
    assert child(classes, "user", "join") == {}
    assert child(classes, "user", "warm") is None
    assert not child(classes, "placeholder", "join")
    assert value(imported(""), "podClasses.user.join") == {"user": 100}


def test_extended_resources_of_all_users_are_kept() -> None:
    result = imported('singleuser: {extraResource: {limits: {nvidia.com/gpu: "1"}, guarantees: {example.com/x: many}}}')
    assert value(result, "singleuser.extraResource") == {"limits": {"nvidia.com/gpu": "1"}, "guarantees": {}}
    assert unmapped(result) == {'singleuser.extraResource.guarantees."example.com/x"': 1}
