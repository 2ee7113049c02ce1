"""The hub's user scheduler and its priorities."""

import pytest

from generator.importing.source import child
from tests.unit.generator.imported_hubs import imported, unmapped, value


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
    resources = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "1G"}}
    kept = {
        "scheduler.replicas": 1, "scheduler.logLevel": 6, "scheduler.pdb.maxUnavailable": 2,
        "scheduler.nodeSelector": {"pool": "core"}, "webhook.nodeSelector": {"pool": "core"},
        "scheduler.labels": {"team": "hub"}, "scheduler.image.name": "mirror.example.org/kube-scheduler",
        "imagePullSecrets": ["mirror", "other"], "scheduler.resources": resources,
    }  # fmt: skip
    assert {key: value(result, key) for key in kept} == kept
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
