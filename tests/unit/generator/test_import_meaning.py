"""An import keeps what a hub meant: where its users may go, what they pull with which Secrets, who pulls for them."""

from typing import Any

import yaml

from roost_core.placement.managed_images import puller_groups
from tests.unit.generator.imported_hubs import PURPOSE_USER, imported, value

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
    assert value(result, "singleuser.profileList") == yaml.safe_load("""
        - display_name: GPU
          kubespawner_override:
            image: quay.io/o/gpu:1
            extra_resource_limits: {nvidia.com/gpu: "1"}
            tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
            node_affinity_required: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
            init_containers: [{image: "fuse:1"}]
            mem_guarantee: 60G
        - display_name: elsewhere
          profile_options:
            pool: {choices: {large: {kubespawner_override: {node_selector: {pool: large}, tolerations: []}}}}
        """)
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


SHARED_NODES = """
    jupyterhub:
      singleuser:
        profileList:
          - display_name: "Small & shared"
            slug: shared
            default: true
            kubespawner_override: {image: "quay.io/lab/base:1"}
            profile_options:
              requests:
                display_name: Share of a node
                choices:
                  quarter: {kubespawner_override: {mem_guarantee: 7G, node_selector: {type: r5.xlarge}}}
              image:
                unlisted_choice: {enabled: true}
                choices: {r: {display_name: R, kubespawner_override: {image: "quay.io/lab/r:2"}}}
          - {display_name: No image of its own, kubespawner_override: {mem_limit: 4G}}
          - {display_name: Old spelling, kubespawner_override: {image_spec: "quay.io/lab/old:3"}}
"""


def test_of_profiles_names_images_and_nodes_are_kept_and_of_the_default_one_its_size() -> None:
    assert value(imported(SHARED_NODES), "singleuser.profileList") == yaml.safe_load("""
        - display_name: "Small & shared"
          slug: shared
          default: true
          kubespawner_override: {image: "quay.io/lab/base:1"}
          profile_options:
            requests:
              choices: {quarter: {kubespawner_override: {node_selector: {type: r5.xlarge}, mem_guarantee: 7G}}}
            image:
              choices: {r: {kubespawner_override: {image: "quay.io/lab/r:2"}}}
              unlisted_choice: {enabled: true}
        - {display_name: Old spelling, kubespawner_override: {image: "quay.io/lab/old:3"}}
        """)
