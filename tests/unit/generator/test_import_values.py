"""What of a hub's values is kept, and as what; what is named; what is to be switched off."""

import pytest
import yaml

from generator.importing.result import ImportResult
from generator.importing.seating import HUB_LINES
from generator.values.lookups import child
from tests.builders import CHART_VALUES
from tests.unit.generator.imported_hubs import (
    PURPOSE_USER,
    hub,
    imported,
    placeholder,
    unmapped,
    value,
)
from tests.unit.generator.linted import table
from tools.root import ROOT

REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
PROGRAMS = ("scheduler", "webhook", "controllers", "recorder")


def seen(result: ImportResult, key: str) -> object:
    head, _, rest = key.partition(".")
    if head in ("set", "values"):
        return child(placeholder(result) if head == "set" else result.values, *rest.split("."))
    return value(result, key)


@pytest.mark.parametrize(("hub", "expected"), table("imported"))
def test_what_a_hub_says_is_kept_or_named(hub: str, expected: str) -> None:
    result, wanted = imported(hub), yaml.safe_load(expected)
    said = result.report() + result.to_yaml()
    will, wont = "\n".join(result.summary.will), "\n".join(result.summary.wont)
    for key, told in (("says", said), ("will", will), ("wont", wont)):
        assert [text for text in wanted.pop(key, ()) if text not in told] == []
    assert [text for text in wanted.pop("not-will", ()) if text in will] == []
    assert [text for text in wanted.pop("unsaid", ()) if text in said] == []
    assert wanted.pop("named", unmapped(result)) == unmapped(result)
    assert set(wanted.pop("switch", ())) <= set(result.switch_off)
    assert {key: seen(result, key) for key in wanted} == wanted


def test_a_plain_hub_says_what_to_switch_off_and_gets_placeholders_where_its_users_may_go() -> None:
    result = imported(hub("plain"))
    kept = ("image.name", "image.tag", "memory.guarantee")
    assert [value(result, f"singleuser.{key}") for key in kept] == [
        "quay.io/lab/notebook",
        "2026.08",
        "1G",
    ]
    assert result.switch_off == [
        "scheduling.userScheduler.enabled: false",
        "scheduling.userPlaceholder.replicas: 0",
        "prePuller.continuous.enabled: false    # Roost's puller does this",
    ]
    assert all(line in result.to_yaml() and line in result.report() for line in result.switch_off)
    assert any("podPriority.enabled: true can stay" in note for note in result.notes)
    assert result.unmapped == []
    entry = placeholder(result)
    # KubeSpawner reads G as a power of 1024.
    assert entry["resources"] == {
        "requests": {"cpu": "250m", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "2Gi"},
    }
    assert (entry["replicas"], entry["nodeSelector"]) == (4, {"pool": "students"})
    assert entry["requiredNodeTerms"] == [PURPOSE_USER]
    tolerations = entry["tolerations"]
    assert isinstance(tolerations, list)
    *others, last = tolerations
    assert last == {"key": "course", "operator": "Exists"}
    assert [toleration.get("value") for toleration in others] == ["user", "user"]


def test_a_null_for_a_whole_section_is_absent() -> None:
    nulls = (
        "scheduling: {userScheduler: null, userPlaceholder: {replicas: null}}\nsingleuser: {memory:"
        " null}"
    )
    assert imported(nulls).values == imported("").values


@pytest.mark.parametrize("section", ["scheduling: {userScheduler: %s}", "hub: %s"])
def test_programs_tolerate_the_taints_of_the_nodes_that_they_are_sent_to(section: str) -> None:
    core = {"key": "core", "operator": "Exists"}
    result = imported(section % {"nodeSelector": {"pool": "core"}, "tolerations": [core]})
    usual = child(CHART_VALUES.values, "corePods", "tolerations")
    for program in PROGRAMS[1:]:
        assert value(result, f"{program}.nodeSelector") == {"pool": "core"}
        assert value(result, f"{program}.tolerations") == [*usual, core]  # type: ignore[misc]
    assert result.unmapped == []


def test_core_pods_that_require_core_nodes_bring_roosts_there() -> None:
    result = imported(
        "scheduling: {corePods: {nodeAffinity: {matchNodePurpose: require}, tolerations: []}}"
    )
    assert all("core" in str(value(result, f"{part}.{REQUIRED}")) for part in PROGRAMS)
    assert [value(result, f"{part}.tolerations") for part in PROGRAMS] == [[]] * 4


def test_placement_keys_without_counterpart_are_named_with_their_line() -> None:
    assert unmapped(imported(hub("without-counterparts"))) == {
        "jupyterhub.scheduling.userScheduler.extraPodSpec": 4,
        "jupyterhub.scheduling.somethingNew.deeper": 7,
        "jupyterhub.prePuller.hook.nodeSelector": 12,
    }


def test_own_plugins_are_kept_over_the_charts_as_helm_merges_them() -> None:
    own = "{score: {enabled: [{name: NodeAffinity, weight: 7}]}}"
    profile = value(
        imported(f"scheduling: {{userScheduler: {{plugins: {own}}}}}"), "scheduler.profiles.user"
    )
    assert child(profile, "plugins", "score", "enabled") == [{"name": "NodeAffinity", "weight": 7}]
    assert "NodeResourcesFit" in str(child(profile, "plugins", "score", "disabled"))
    assert "MostAllocated" in str(child(profile, "pluginConfig"))


def test_tolerations_of_scheduler_and_puller_stand_beside_the_charts() -> None:
    result = imported("""
        scheduling:
          userScheduler:
            nodeSelector: {pool: core}
            tolerations: [{key: spot, operator: Exists}]
        prePuller: {extraTolerations: [{key: puller, operator: Exists}]}
        """)
    for key, keys in (("scheduler", ["spot"]), ("webhook", ["spot"]), ("prePuller", ["puller"])):
        assert [one["key"] for one in value(result, f"{key}.tolerations")][2:] == keys  # type: ignore[attr-defined]


def test_seating_runs_where_the_hubs_core_pods_run_if_the_hub_has_it() -> None:
    core = "scheduling: {userScheduler: {nodeSelector: {pool: core}}}\n"
    with_seating = imported(core + HUB_LINES)
    assert value(with_seating, "seating.nodeSelector") == {"pool": "core"}
    assert "seating" not in imported(core).values


def test_a_faulty_toleration_of_the_scheduler_is_told_by_the_hubs_key_for_it() -> None:
    result = imported("scheduling: {userScheduler: {tolerations: [{key: spot, operator: Bogus}]}}")
    assert [note.key for note in result.unmapped] == ["scheduling.userScheduler.tolerations[0]"]


def test_a_binder_federation_member() -> None:
    result = imported(hub("federation-member"))
    assert result.values == yaml.safe_load(hub("federation-member-kept"))
    assert result.switch_off == ["binderhub.config.BinderHub.sticky_builds: false"]


def test_the_page_of_seating_has_the_lines_that_import_prints() -> None:
    page = ROOT / "docs/seated.md"
    assert f"```yaml\n{HUB_LINES}```\n" in page.read_text()
    lines = yaml.safe_load(HUB_LINES)["hub"]
    assert set(lines) == {"services", "loadRoles"}
    # No right more than docs/rights.md names.
    scopes = ["list:users", "read:users:activity", "read:groups", "servers"]
    assert lines["loadRoles"]["roost-seating"]["scopes"] == scopes
