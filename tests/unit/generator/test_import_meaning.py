"""An import keeps what a hub meant: where its users may go, what they pull with which Secrets, who
pulls for them.
"""

from typing import Any

import yaml

from generator.render.managed_images import puller_groups
from tests.unit.generator.imported_hubs import PURPOSE_USER, hub, imported, value


def groups(result: Any) -> dict[str, Any]:
    """The images of each puller, by the keys that it tolerates."""
    found = puller_groups(value(result, "singleuser"), value(result, "prePuller"))
    return {
        ",".join(str(toleration["key"]) for toleration in group.tolerations[2:]): group
        for group in found
    }


def test_a_profiles_nodes_tolerations_and_extended_resources_are_kept() -> None:
    result = imported(hub("profiles"))
    assert value(result, "singleuser.profileList") == yaml.safe_load(hub("profiles-kept"))
    assert "dropped" not in result.to_yaml()


def test_each_profiles_puller_goes_where_its_users_may() -> None:
    found = groups(imported(hub("profiles")))
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
    assert group.images == (
        "tc:1",
        "quay.io/jupyterhub/k8s-network-tools:4.4.0",
        "proxy:1",
        "a/b:1",
    )
    assert "secret" not in result.to_yaml()


def test_of_profiles_names_images_and_nodes_are_kept_and_of_the_default_one_its_size() -> None:
    assert value(imported(hub("shared-nodes")), "singleuser.profileList") == yaml.safe_load(
        hub("shared-nodes-kept")
    )
