"""The hub's images, profiles and pullers."""

from tests.unit.generator.imported_hubs import imported, value


def test_pullers_that_are_both_off_switch_the_gate_off_in_a_form_that_yaml_reads_as_text() -> None:
    result = imported("prePuller: {hook: {enabled: false}, continuous: {enabled: false}}")
    assert value(result, "imageGate.mode") == "off"
    assert "imageGate" not in imported("prePuller: {hook: {enabled: false}}").values


def test_extra_images_are_kept_without_what_only_a_puller_reads() -> None:
    result = imported("prePuller: {extraImages: {side: {name: quay.io/a/b, tag: v1, pullPolicy: Always}}}")
    assert value(result, "prePuller.extraImages") == {"side": {"name": "quay.io/a/b", "tag": "v1"}}


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
                  half: {kubespawner_override: {mem_guarantee: 14G, node_selector: {type: r5.xlarge}}}
              image:
                unlisted_choice: {enabled: true}
                choices:
                  r: {display_name: R, kubespawner_override: {image: "quay.io/lab/r:2"}}
          - display_name: No image of its own
            kubespawner_override: {mem_limit: 4G}
          - {display_name: Old spelling, kubespawner_override: {image_spec: "quay.io/lab/old:3"}}
"""


def test_pullers_go_where_the_hubs_went() -> None:
    result = imported("""
        singleuser: {nodeSelector: {pool: users}, extraTolerations: [{key: gpu, operator: Exists}]}
        prePuller:
          extraTolerations: [{key: puller, operator: Exists}]
          resources: {requests: {memory: 8Mi}, limits: {cpu: 1}}
          labels: {a: b}
        """)
    assert value(result, "singleuser.nodeSelector") == {"pool": "users"}
    tolerations = value(result, "prePuller.tolerations")
    assert isinstance(tolerations, list)
    assert [one["key"] for one in tolerations][2:] == ["puller"]
    assert value(result, "singleuser.extraTolerations") == [{"key": "gpu", "operator": "Exists"}]
    assert value(result, "prePuller.resources") == {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"cpu": "1"}}
    assert value(result, "prePuller.labels") == {"a": "b"}
    assert "prePuller.tolerations" not in imported("").to_yaml()


def test_what_to_do_with_the_hubs_pullers_is_said() -> None:
    assert any("hook.enabled can stay" in note for note in imported("").notes)
    without = imported("prePuller: {continuous: {enabled: false}}")
    assert not any("continuous" in line for line in without.switch_off)
    off = imported("prePuller: {hook: {enabled: false}, continuous: {enabled: false}}")
    assert value(off, "prePuller.enabled") is False


def test_of_profiles_only_names_images_and_nodes_are_kept() -> None:
    nodes = {"kubespawner_override": {"node_selector": {"type": "r5.xlarge"}}}
    assert value(imported(SHARED_NODES), "singleuser.profileList") == [
        {
            "display_name": "Small & shared",
            "slug": "shared",
            "kubespawner_override": {"image": "quay.io/lab/base:1"},
            "profile_options": {
                "requests": {"choices": {"half": nodes, "quarter": nodes}},
                "image": {
                    "choices": {"r": {"kubespawner_override": {"image": "quay.io/lab/r:2"}}},
                    "unlisted_choice": {"enabled": True},
                },
            },
        },
        {"display_name": "Old spelling", "kubespawner_override": {"image": "quay.io/lab/old:3"}},
    ]
