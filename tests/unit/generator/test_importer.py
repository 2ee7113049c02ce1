"""The importer's mapping, key by key, on hubs as operators write them."""

from __future__ import annotations

from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from generator.checks.lint import lint
from generator.checks.schema import find_faults
from generator.faults import ValuesError
from generator.importing.importer import ImportResult, import_layers, import_values
from generator.importing.source import child
from generator.locations import chart_folder
from generator.render.functions import complete_placeholder_set, core_pod, items
from generator.values.loader import LoadedFile, load
from generator.values.merge import Merged, merge_values
from generator.values.release import Release
from tools import try_import

if TYPE_CHECKING:
    from pathlib import Path

PURPOSE_USER = {"matchExpressions": [{"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}]}


@cache
def defaults() -> LoadedFile:
    return load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")


def merged(result: ImportResult) -> Merged:
    """What Roost makes of the printed document; it must be valid and say what the result says."""
    printed = load(result.to_yaml().encode(), "imported.yaml")
    assert printed.values == result.values
    whole = merge_values(defaults(), [printed])
    faults = find_faults(whole) or lint(whole, Release())
    assert [str(fault) for fault in faults if fault.severity == "error"] == []
    return whole


def imported(text: str, release: str = "hub") -> ImportResult:
    result = import_values(dedent(text), "hub.yaml", release)
    merged(result)
    return result


def value(result: ImportResult, dotted: str) -> object:
    """A value of the document that was printed, merged into Roost's defaults and, for a program, into `corePods`."""
    values = dict(merged(result).values)
    for program in ("scheduler", "webhook", "controllers", "recorder"):
        values[program] = {**dict(items(values[program])), **core_pod(values["corePods"], values[program])}
    return child(values, *dotted.split("."))


def placeholder(result: ImportResult) -> dict[str, object]:
    """The one set, with what it inherits."""
    sets = result.values["placeholders"]
    assert isinstance(sets, list)
    (only,) = sets
    assert isinstance(only, dict)
    return complete_placeholder_set(only, value(result, "placeholder.defaults"))


def unmapped(result: ImportResult) -> dict[str, int]:
    return {note.key: note.line for note in result.unmapped}


def fault_of(text: str | bytes) -> str:
    with pytest.raises(ValuesError) as caught:
        import_values(text, "hub.yaml")
    return str(caught.value)


# --- a plain zero-to-jupyterhub ---------------------------------------------------------------------------------------

PLAIN = """
    hub:
      config:
        Authenticator: {admin_users: [ada]}
    proxy:
      service: {type: ClusterIP}
    scheduling:
      podPriority:
        enabled: true
      userPlaceholder:
        replicas: 4
      userPods:
        nodeAffinity: {matchNodePurpose: require}
    singleuser:
      image: {name: quay.io/lab/notebook, tag: "2026.08"}
      cpu: {guarantee: 0.25, limit: 2}
      memory: {guarantee: 1G, limit: 2G}
      nodeSelector: {pool: students}
      extraTolerations:
        - {key: course, operator: Exists}
      storage: {capacity: 5Gi}
    cull: {every: 300}
"""


def test_a_placeholder_is_as_large_as_one_user_for_kubespawner_reads_g_as_a_power_of_1024() -> None:
    assert placeholder(imported(PLAIN))["resources"] == {
        "requests": {"cpu": "250m", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "2Gi"},
    }


def test_placeholders_go_where_users_may_go() -> None:
    seat = placeholder(imported(PLAIN))
    assert seat["replicas"] == 4
    assert seat["nodeSelector"] == {"pool": "students"}
    assert seat["requiredNodeTerms"] == [PURPOSE_USER]
    tolerations = seat["tolerations"]
    assert isinstance(tolerations, list)
    assert tolerations[-1] == {"key": "course", "operator": "Exists"}
    assert [toleration.get("value") for toleration in tolerations[:-1]] == ["user", "user"]


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


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{}", "prod-user-scheduler"),
        ('fullnameOverride: ""', "prod-user-scheduler"),
        ("fullnameOverride: lab", "lab-user-scheduler"),
        ("fullnameOverride: null", "prod-jupyterhub-user-scheduler"),
        ("fullnameOverride: null\nnameOverride: pro", "prod-user-scheduler"),
    ],
)
def test_the_hubs_own_scheduler_is_taken_over_under_the_name_that_the_chart_gives_it(text: str, name: str) -> None:
    assert imported(f"hub: {{config: {{}}}}\n{text if text != '{}' else ''}", "prod").values["replaceSchedulers"] == [
        name
    ]


def test_a_hub_without_user_scheduler_keeps_the_clusters() -> None:
    result = imported("scheduling: {userScheduler: {enabled: false, replicas: 1}}")
    assert result.values["scheduler"] == {"target": "none"}
    assert "replaceSchedulers" not in result.values
    assert not any("userScheduler" in line for line in result.switch_off)


def test_settings_of_the_user_scheduler_are_kept() -> None:
    result = imported("""
        scheduling:
          userScheduler:
            replicas: 1
            logLevel: 6
            pdb: {enabled: true, maxUnavailable: 2}
            nodeSelector: {pool: core}
            tolerations: [{key: spot, operator: Exists}]
            labels: {team: hub}
            image: {name: mirror.example.org/kube-scheduler, pullSecrets: [{name: mirror}, other]}
            resources: {requests: {cpu: 0.01, memory: 64Mi}, limits: {memory: 1G}}
        """)
    assert value(result, "scheduler.replicas") == 1
    assert value(result, "scheduler.logLevel") == 6
    assert value(result, "scheduler.pdb.maxUnavailable") == 2
    assert value(result, "scheduler.nodeSelector") == {"pool": "core"}
    assert value(result, "webhook.nodeSelector") == {"pool": "core"}
    assert value(result, "scheduler.labels") == {"team": "hub"}
    assert value(result, "scheduler.image.name") == "mirror.example.org/kube-scheduler"
    assert value(result, "imagePullSecrets") == ["mirror", "other"]
    requests, limits = {"cpu": "10m", "memory": "64Mi"}, {"memory": "1G"}
    assert value(result, "scheduler.resources") == {"requests": requests, "limits": limits}
    tolerations = value(result, "scheduler.tolerations")
    assert isinstance(tolerations, list)
    assert [toleration.get("value") for toleration in tolerations] == ["core", "core", None]
    assert value(result, "webhook.tolerations") == tolerations


def test_a_schedulers_limit_below_roosts_default_request_lowers_the_request() -> None:
    result = imported("scheduling: {userScheduler: {resources: {limits: {memory: 64Mi}}}}")
    assert value(result, "scheduler.resources.requests.memory") == "64Mi"


def test_a_pinned_scheduler_version_is_named_not_kept_since_roost_goes_with_the_cluster() -> None:
    result = imported("scheduling:\n  userScheduler:\n    image:\n      tag: v1.29.1\n")
    assert unmapped(result) == {"scheduling.userScheduler.image.tag": 4}
    assert value(result, "scheduler.image.tag") == ""


def test_a_given_seat_smaller_than_a_user_is_raised_and_said() -> None:
    result = imported("""
        scheduling: {userPlaceholder: {replicas: 2, resources: {requests: {memory: 450M}, limits: {memory: 450M}}}}
        singleuser: {memory: {guarantee: 450M}}
        """)
    assert placeholder(result)["resources"] == {"requests": {"memory": "450Mi"}, "limits": {"memory": "450Mi"}}
    assert "memory raised from 450M to 450Mi" in result.to_yaml()


def test_a_given_seat_larger_than_a_user_stays() -> None:
    result = imported("scheduling: {userPlaceholder: {replicas: 2, resources: {requests: {memory: 57350076Ki}}}}")
    assert placeholder(result)["resources"] == {"requests": {"memory": "57350076Ki"}}


def test_a_gpu_limit_of_the_users_is_a_request_of_the_seat() -> None:
    result = imported('singleuser: {extraResource: {limits: {nvidia.com/gpu: "1"}}}')
    seat = {"requests": {"memory": "1Gi", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    assert placeholder(result)["resources"] == seat


def test_placeholders_that_were_off_stay_off() -> None:
    result = imported("scheduling: {userPlaceholder: {enabled: false, replicas: 7}}")
    assert result.values["placeholders"] == []


@pytest.mark.parametrize(
    ("purpose", "user_terms", "placeholder_terms"),
    [
        ("ignore", [], []),
        ("prefer", [{"weight": 100, "preference": PURPOSE_USER}], [{"weight": 100, "preference": PURPOSE_USER}]),
        ("require", [{"weight": 100, "preference": PURPOSE_USER}], []),
    ],
)
def test_node_purpose_of_users(purpose: str, user_terms: object, placeholder_terms: object) -> None:
    result = imported(f"scheduling: {{userPods: {{nodeAffinity: {{matchNodePurpose: {purpose}}}}}}}")
    assert value(result, "podClasses.user.preferredNodeTerms") == user_terms
    assert value(result, "podClasses.placeholder.preferredNodeTerms") == placeholder_terms


def test_a_required_zone_and_a_required_purpose_are_ored_as_the_users_are() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    result = imported(f"""
        scheduling: {{userPods: {{nodeAffinity: {{matchNodePurpose: require}}}}}}
        singleuser: {{extraNodeAffinity: {{required: [{zone}, {{}}]}}}}
        """)
    assert placeholder(result)["requiredNodeTerms"] == [PURPOSE_USER, zone]
    assert any("ORed" in note for note in result.notes)


def test_a_strong_preference_of_the_hubs_own_is_kept_for_seats_and_noted() -> None:
    term = {"weight": 60, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    result = imported(f"singleuser: {{extraNodeAffinity: {{preferred: [{term}]}}}}")
    purpose = {"matchExpressions": [{"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}]}
    seats = value(result, "podClasses.placeholder.preferredNodeTerms")
    assert seats == [{"weight": 100, "preference": purpose}, term]
    assert any("weight 60" in note for note in result.notes)


def test_pod_affinity_of_users_is_named_since_seats_cannot_carry_it() -> None:
    result = imported("singleuser:\n  extraPodAntiAffinity:\n    preferred:\n      - {weight: 1}\n")
    assert unmapped(result) == {"singleuser.extraPodAntiAffinity": 2}


def test_core_pods_that_require_core_nodes_bring_roosts_there() -> None:
    result = imported("scheduling: {corePods: {nodeAffinity: {matchNodePurpose: require}, tolerations: []}}")
    for part in ("scheduler", "webhook", "controllers", "recorder"):
        terms = child(
            value(result, f"{part}.affinity"), "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
        )
        assert "core" in str(terms)
        assert value(result, f"{part}.tolerations") == []


def test_priorities_are_kept_and_a_second_default_class_is_prevented() -> None:
    result = imported("""
        scheduling:
          podPriority:
           {enabled: true, globalDefault: true, defaultPriority: 10, userPlaceholderPriority: 0, imagePullerPriority: 1}
        """)
    wanted = {"enabled": True, "globalDefault": True, "user": 10, "placeholder": 0, "puller": 1}
    assert value(result, "priorityClasses") == wanted
    assert any("podPriority.globalDefault: false" in line for line in result.switch_off)
    assert list(unmapped(result)) == []


@pytest.mark.parametrize(
    ("given", "puller"),
    [("", -5), ("imagePullerPriority: -7", -7), ("defaultPriority: -5", -6), ("imagePullerPriority: 100", -1)],
)
def test_a_puller_comes_between_placeholders_and_users(given: str, puller: int) -> None:
    result = imported(f"scheduling: {{podPriority: {{enabled: true, {given}}}}}")
    assert value(result, "priorityClasses.puller") == puller


def test_users_above_zero_keep_the_hubs_own_class_for_roost_names_none_in_their_pods() -> None:
    result = imported("scheduling: {podPriority: {enabled: true, defaultPriority: 10, userPlaceholderPriority: 0}}")
    assert any("must (its users have priority 10 through it) stay" in note for note in result.notes)


def test_priorities_of_a_hub_that_has_them_off_say_nothing() -> None:
    assert "priorityClasses" not in imported("scheduling: {podPriority: {enabled: false, defaultPriority: 10}}").values


def test_own_plugins_are_kept_over_the_charts_as_helm_merges_them() -> None:
    result = imported("""
        scheduling: {userScheduler: {plugins: {score: {enabled: [{name: NodeAffinity, weight: 7}]}}}}
        """)
    plugins = value(result, "scheduler.profiles.user.plugins")
    assert child(plugins, "score", "enabled") == [{"name": "NodeAffinity", "weight": 7}]
    assert "NodeResourcesFit" in str(child(plugins, "score", "disabled"))
    assert "MostAllocated" in str(value(result, "scheduler.profiles.user.pluginConfig"))


def test_the_charts_own_plugins_written_out_are_roosts_packing() -> None:
    fit = "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}"
    result = imported(f"scheduling: {{userScheduler: {{pluginConfig: [{{name: NodeResourcesFit, args: {fit}}}]}}}}")
    assert "scheduler" not in result.values


def test_pullers_that_are_both_off_switch_the_gate_off_in_a_form_that_yaml_reads_as_text() -> None:
    result = imported("prePuller: {hook: {enabled: false}, continuous: {enabled: false}}")
    assert value(result, "imageGate.mode") == "off"
    assert "imageGate" not in imported("prePuller: {hook: {enabled: false}}").values


def test_extra_images_are_kept_without_what_only_a_puller_reads() -> None:
    result = imported("prePuller: {extraImages: {side: {name: quay.io/a/b, tag: v1, pullPolicy: Always}}}")
    assert value(result, "prePuller.extraImages") == {"side": {"name": "quay.io/a/b", "tag": "v1"}}


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


def test_refused_placeholders_leave_none_rather_than_roosts_own() -> None:
    result = imported("scheduling: {userPlaceholder: {replicas: -3}}")
    assert value(result, "placeholders") == []


# --- what the hub decides at run time ---------------------------------------------------------------------------------


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


# --- profiles ---------------------------------------------------------------------------------------------------------

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


def test_profiles_with_nodes_or_sizes_of_their_own_and_free_images_are_spoken_of() -> None:
    notes = " ".join(imported(SHARED_NODES).notes)
    assert "2 profiles or choices have nodes or sizes" in notes
    assert "unlisted_choice" in notes


# --- BinderHub --------------------------------------------------------------------------------------------------------

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
        "podClasses": {
            "user": {"join": {"user": None}},
            "build": {"resources": {"memory": "2G"}},
            "placeholder": {"avoid": {"user": None}},
        },
        "imageGate": {"mode": "off"},
        "prePuller": {"enabled": False},
        "singleuser": {"cpu": {"guarantee": 0.01, "limit": 1}, "memory": {"guarantee": "450M", "limit": "2G"}},
        "placeholders": [],
    }
    assert result.switch_off == ["binderhub.config.BinderHub.sticky_builds: false"]


# --- parent charts ----------------------------------------------------------------------------------------------------

BASEHUB = """
    basehub:
      nodePlaceholder: {enabled: true, replicas: 3}
      binderhub-service:
        enabled: true
        dockerApi: {nodeSelector: {type: r5.xlarge}}
        config: {KubernetesBuildExecutor: {sticky_builds: true}}
      jupyterhub:
        custom: {homepage: {title: Lab}}
        scheduling:
          userScheduler: {enabled: true, replicas: 1}
          corePods: {nodeAffinity: {matchNodePurpose: require}}
          userPods: {nodeAffinity: {matchNodePurpose: require}}
        singleuser: {memory: {guarantee: 256M}}
        prePuller: {hook: {enabled: false}, continuous: {enabled: false}}
"""


def test_a_hub_under_a_parent_chart_is_found_and_its_keys_are_named_in_full() -> None:
    result = imported(BASEHUB, "staging")
    assert result.values["replaceSchedulers"] == ["staging-user-scheduler"]
    assert placeholder(result)["resources"] == {"requests": {"memory": "256Mi"}}
    assert result.switch_off == [
        "basehub.jupyterhub.scheduling.userScheduler.enabled: false",
        "basehub.binderhub-service.config.KubernetesBuildExecutor.sticky_builds: false",
    ]


def test_builders_of_binderhub_service_replace_both_default_labels() -> None:
    assert value(imported(BASEHUB), "podClasses.build.home.builders.labels") == {
        "app.kubernetes.io/name": "binderhub-service",
        "app.kubernetes.io/component": "docker-api",
    }


def test_spare_nodes_and_builders_nodes_are_named() -> None:
    assert list(unmapped(imported(BASEHUB))) == [
        "basehub.nodePlaceholder",
        "basehub.binderhub-service.dockerApi.nodeSelector",
    ]


def test_a_builder_service_that_is_off_is_no_builder() -> None:
    result = imported("jupyterhub: {}\nbinderhub-service: {enabled: false, config: {}}")
    assert "podClasses" not in result.values


def test_the_values_of_binderhub_service_alone_configure_no_hub() -> None:
    result = imported("dockerApi: {}\nconfig: {BinderHub: {base_url: /}}")
    assert set(result.values) == {"podClasses"}


@pytest.mark.parametrize(
    "nesting", ["", "jupyterhub", "basehub.jupyterhub", "daskhub.jupyterhub", "my-chart.hub-alias"]
)
def test_a_hub_is_found_wherever_a_parent_chart_puts_it(nesting: str) -> None:
    text, indent = "", ""
    for key in filter(None, nesting.split(".")):
        text += f"{indent}{key}:\n"
        indent += "  "
    result = imported(f"other: {{a: 1}}\n{text}{indent}scheduling: {{userPlaceholder: {{replicas: 9}}}}\n")
    assert placeholder(result)["replicas"] == 9


def test_dask_pods_that_name_the_hubs_scheduler_are_warned_of() -> None:
    result = imported("""
        daskhub:
          jupyterhub: {singleuser: {}}
          dask-gateway: {gateway: {backend: {worker: {extraPodConfig: {schedulerName: hub-user-scheduler}}}}}
        """)
    assert "or these pods stay Pending" in result.report()


SEVERAL = "one: {jupyterhub: {singleuser: {}}}\ntwo: {jupyterhub: {scheduling: {userPlaceholder: {replicas: 7}}}}\n"


def test_several_hubs_in_one_file_are_a_fault_that_says_how_to_choose() -> None:
    said = fault_of(SEVERAL)
    assert "found 2 hubs: one.jupyterhub (hub.yaml) and two.jupyterhub (hub.yaml), expected one hub" in said
    assert "--hub one.jupyterhub" in said
    chosen = import_values(SEVERAL, "hub.yaml", hub="two.jupyterhub")
    assert placeholder(chosen)["replicas"] == 7


def test_a_hub_that_is_not_there_can_not_be_chosen() -> None:
    with pytest.raises(ValuesError, match=r"no values below jupyterhub, expected one.jupyterhub or two.jupyterhub"):
        import_values(SEVERAL, "hub.yaml", hub="jupyterhub")


BASEHUB_DEFAULTS = (
    "jupyterhub: {scheduling: {userScheduler: {enabled: false}}, singleuser: {memory: {guarantee: 256M}}}\n"
)


@pytest.mark.parametrize(
    ("nested", "key"),
    [
        ("basehub: {jupyterhub: {singleuser: {memory: {guarantee: 8G}}}}", "basehub.jupyterhub"),
        ("daskhub: {basehub: {jupyterhub: {singleuser: {}}}}", "daskhub.basehub.jupyterhub"),
        ("singleuser: {memory: {guarantee: 8G}}", "(top)"),
    ],
)
def test_defaults_of_another_chart_are_not_taken_for_the_hub(nested: str, key: str) -> None:
    with pytest.raises(ValuesError) as caught:
        import_layers([("basehub.yaml", BASEHUB_DEFAULTS), ("hub.yaml", nested)])
    said = str(caught.value)
    assert f"{key} (hub.yaml)" in said
    assert "jupyterhub (basehub.yaml)" in said
    assert "helm get values RELEASE --all" in said


def test_a_binderhub_with_a_hubs_key_beside_its_hub_is_one_hub() -> None:
    result = imported("binderhub: {config: {BinderHub: {}}, hub: {}, proxy: {}, jupyterhub: {singleuser: {}}}")
    assert result.values["replaceSchedulers"] == ["hub-user-scheduler"]


def test_later_layers_win_as_with_helm_and_notes_name_the_layer() -> None:
    result = import_layers(
        [
            ("common.yaml", "jupyterhub:\n  scheduling:\n    userPlaceholder: {replicas: 2, extraPodSpec: {a: 1}}\n"),
            ("prod.yaml", "jupyterhub:\n  scheduling:\n    userPlaceholder:\n      replicas: 8\n    other: 1\n"),
        ]
    )
    assert placeholder(result)["replicas"] == 8
    assert [(note.file, note.line) for note in result.unmapped] == [("common.yaml", 3), ("prod.yaml", 5)]


# --- what comes in, what goes out -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "a list"),
        ("just text", "just text"),
        ("a: [", "hub.yaml:"),
        ("hub:\n\tconfig: 1\n", "hub.yaml:2"),
        ("hub: {}\nhub: {}\n", "key twice"),
        (b"\xff\xfe\x00a", "UTF-8"),
        ("apiVersion: v2\nname: x\n", "no key of a hub"),
        ("jupyterhub: ENC[x]\nsops: {mac: 'ENC[y]'}\n", "SOPS"),
        ("a: &a [*a]\n", "alias"),
    ],
)
def test_what_is_no_values_file_is_a_fault_that_names_the_file(text: str | bytes, said: str) -> None:
    fault = fault_of(text)
    assert said in fault
    assert "hub.yaml" in fault


@pytest.mark.parametrize("text", ["on", "1e3", "017", "null", "0x1", "1_0", "2026", "y", "1.0", "64Mi"])
def test_text_that_yaml_would_misread_is_printed_so_that_it_stays_text(text: str) -> None:
    result = imported(f"singleuser: {{nodeSelector: {{pool: '{text}'}}, image: {{name: a/b, tag: '{text}'}}}}")
    assert placeholder(result)["nodeSelector"] == {"pool": text}
    assert value(result, "singleuser.image.tag") == text


def test_no_text_of_the_file_breaks_out_of_a_comment_or_a_line_of_the_report() -> None:
    result = import_values(
        'scheduling: {"x\\nreplaceSchedulers: [evil]": 1}', "a\nreplaceSchedulers: [evil]", "r\nadmission: {mode: none}"
    )
    printed = load(result.to_yaml().encode(), "printed").values
    assert printed == result.values
    assert "evil" not in str(printed)
    assert all("evil" not in line or line.startswith("a\\u000a") for line in result.report().splitlines())


def test_the_tool_that_tries_a_folder_tells_wrong_usage_from_a_bad_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hub.yaml").write_text("singleuser: {memory: {guarantee: 2G}}\n")
    assert try_import.main([]) == try_import.main([str(tmp_path / "none")]) == 2
    assert "usage" in capsys.readouterr().err
    assert try_import.main([str(tmp_path)]) == 0
    assert "1 files: 1 imported, 1 valid" in capsys.readouterr().out
