"""A zero-to-jupyterhub's values, key by key: what is kept, what is named, what passes silently."""

import pytest

from generator.importing.source import child
from tests.unit.generator.imported_hubs import PLAIN, defaults, imported, placeholder, unmapped, value


def test_the_puller_managed_image_and_the_guarantees_are_kept_as_the_hub_writes_them() -> None:
    result = imported(PLAIN)
    assert value(result, "singleuser.image.name") == "quay.io/lab/notebook"
    assert value(result, "singleuser.image.tag") == "2026.08"
    assert value(result, "singleuser.memory.guarantee") == "1G"


def test_it_says_what_to_switch_off_and_what_may_stay() -> None:
    result = imported(PLAIN)
    assert result.switch_off == [
        "scheduling.userScheduler.enabled: false",
        "scheduling.userPlaceholder.replicas: 0",
        "prePuller.continuous.enabled: false    # Roost's puller does this",
    ]
    assert all(line in result.to_yaml() and line in result.report() for line in result.switch_off)
    assert any("podPriority.enabled: true can stay" in note for note in result.notes)


def test_keys_that_have_nothing_to_do_with_placement_pass_silently() -> None:
    assert imported(PLAIN).unmapped == []


def test_an_empty_file_is_a_hub_with_the_charts_defaults() -> None:
    result = imported("")
    assert result.values["replaceSchedulers"] == ["hub-user-scheduler"]
    assert placeholder(result)["replicas"] == 0


def test_a_null_for_a_whole_section_is_absent() -> None:
    nulls = "scheduling: {userScheduler: null, userPlaceholder: {replicas: null}}\nsingleuser: {memory: null}"
    assert imported(nulls).values == imported("").values


def test_a_null_takes_the_charts_default_away_as_helm_does() -> None:
    no_guarantee = imported("singleuser: {memory: {guarantee: null}}")
    assert "singleuser" not in no_guarantee.values
    assert value(imported(""), "singleuser.memory.guarantee") == "1G"
    no_scheduler = imported("scheduling: {userScheduler: {enabled: null}}")
    assert value(no_scheduler, "scheduler.target") == "none"
    assert imported("scheduling: {userPlaceholder: {enabled: null}}").values["placeholders"] == []
    no_pullers = imported("prePuller: {hook: {enabled: null}, continuous: {enabled: null}}")
    assert value(no_pullers, "imageGate.mode") == "off"
    pods = "{nodeAffinity: {matchNodePurpose: null}, tolerations: null}"
    plain = imported(f"scheduling: {{corePods: {pods}, userPods: {pods}}}")
    assert value(plain, "webhook.tolerations") == []
    assert value(plain, "podClasses.user.preferredNodeTerms") == []
    assert value(plain, "podClasses.placeholder.preferredNodeTerms") == []
    assert "core" not in str(
        value(plain, "scheduler.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution")
    )
    assert placeholder(plain)["tolerations"] == []


TAINT = "{key: core, operator: Exists}"


@pytest.mark.parametrize("program", ["webhook", "controllers", "recorder"])
@pytest.mark.parametrize("section", ["userScheduler", "hub"])
def test_a_program_tolerates_the_taints_of_the_nodes_that_it_is_sent_to(section: str, program: str) -> None:
    pool = f"{{nodeSelector: {{pool: core}}, tolerations: [{TAINT}]}}"
    result = imported(f"hub: {pool}" if section == "hub" else f"scheduling: {{userScheduler: {pool}}}")
    assert value(result, f"{program}.nodeSelector") == {"pool": "core"}
    tolerations = value(result, f"{program}.tolerations")
    assert isinstance(tolerations, list)
    assert tolerations[-1] == {"key": "core", "operator": "Exists"}
    assert tolerations[:-1] == child(defaults().values, "corePods", "tolerations")
    assert result.unmapped == []


def test_tolerations_of_the_hub_that_nothing_of_roosts_needs_are_named() -> None:
    result = imported(f"hub:\n  tolerations: [{TAINT}]\n  config: {{}}\n")
    assert unmapped(result) == {"hub.tolerations": 2}
    assert "webhook" not in result.values


@pytest.mark.parametrize("builder", ["dind", "pink"])
def test_the_size_of_builders_is_named_with_what_could_give_it(builder: str) -> None:
    result = imported(f"imageBuilderType: {builder}\n{builder}: {{resources: {{requests: {{cpu: 1}}}}}}\n")
    assert unmapped(result) == {f"{builder}.resources": 2}
    assert "component: image-builder" in result.report()


def test_core_pods_that_require_core_nodes_bring_roosts_there() -> None:
    result = imported("scheduling: {corePods: {nodeAffinity: {matchNodePurpose: require}, tolerations: []}}")
    for part in ("scheduler", "webhook", "controllers", "recorder"):
        terms = child(
            value(result, f"{part}.affinity"), "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
        )
        assert "core" in str(terms)
        assert value(result, f"{part}.tolerations") == []


def test_placement_keys_without_counterpart_are_named_with_their_line() -> None:
    result = imported("""
        jupyterhub:
          scheduling:
            userScheduler:
              extraPodSpec:
                hostNetwork: true
            somethingNew:
              deeper: 1
          prePuller:
            extraTolerations:
              - {key: a}
            hook:
              nodeSelector: {pool: core}
        """)
    assert unmapped(result) == {
        "jupyterhub.scheduling.userScheduler.extraPodSpec": 5,
        "jupyterhub.scheduling.somethingNew.deeper": 8,
        "jupyterhub.prePuller.hook.nodeSelector": 13,
    }


def test_the_charts_own_values_written_out_are_not_named() -> None:
    written_out = """
        scheduling:
          userScheduler:
            logLevel: 4
            serviceAccount: {create: true, name: null, annotations: {}}
            containerSecurityContext:
              runAsNonRoot: true
              capabilities: {drop: ["ALL"]}
          podPriority: {enabled: false, imagePullerPriority: -5}
          userPlaceholder: {containerSecurityContext: {runAsUser: 65534}, extraPodSpec: {}}
        """
    assert imported(written_out).unmapped == []


def test_a_wrong_type_is_named_and_the_rest_is_kept() -> None:
    result = imported('scheduling: {userScheduler: {replicas: "two", logLevel: 5}}')
    assert "expected an integer, found a string" in result.report()
    assert value(result, "scheduler.logLevel") == 5


def test_what_roost_refuses_is_named_and_the_rest_is_kept() -> None:
    result = imported('scheduling: {userScheduler: {replicas: 50, nodeSelector: {"a b": c}, logLevel: 5}}')
    assert value(result, "scheduler.logLevel") == 5
    assert value(result, "scheduler.replicas") == 2
    assert {"scheduling.userScheduler.replicas", "scheduling.userScheduler.nodeSelector"} <= set(unmapped(result))


def test_spawner_settings_in_the_hubs_configuration_are_named_not_guessed() -> None:
    result = imported("""
        hub:
          config:
            KubeSpawner:
              image: quay.io/lab/other:1
              start_timeout: 60
            MySpawner: {node_selector: {a: b}}
          extraConfig:
            first: "c.JupyterHub.log_level = 10"
            second: |
              def hook(spawner, pod): return pod
              c.KubeSpawner.modify_pod_hook = hook
        """)
    assert set(unmapped(result)) == {
        "hub.config.KubeSpawner.image",
        "hub.config.MySpawner.node_selector",
        "hub.extraConfig.second",
    }
    assert "singleuser" not in result.values or "image" not in str(result.values["singleuser"])
    assert any("hub.extraConfig is Python" in note for note in result.notes)
