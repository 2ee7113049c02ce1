"""The hub's placeholders: their size, and the nodes they stand for."""

import pytest

from tests.unit.generator.imported_hubs import PLAIN, PURPOSE_USER, imported, placeholder, unmapped, value


def test_a_placeholder_is_as_large_as_one_user_for_kubespawner_reads_g_as_a_power_of_1024() -> None:
    assert placeholder(imported(PLAIN))["resources"] == {
        "requests": {"cpu": "250m", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "2Gi"},
    }


def test_placeholders_go_where_users_may_go() -> None:
    entry = placeholder(imported(PLAIN))
    assert entry["replicas"] == 4
    assert entry["nodeSelector"] == {"pool": "students"}
    assert entry["requiredNodeTerms"] == [PURPOSE_USER]
    tolerations = entry["tolerations"]
    assert isinstance(tolerations, list)
    assert tolerations[-1] == {"key": "course", "operator": "Exists"}
    assert [toleration.get("value") for toleration in tolerations[:-1]] == ["user", "user"]


def test_a_given_placeholder_smaller_than_a_user_is_raised_and_said() -> None:
    result = imported("""
        scheduling: {userPlaceholder: {replicas: 2, resources: {requests: {memory: 450M}, limits: {memory: 450M}}}}
        singleuser: {memory: {guarantee: 450M}}
        """)
    assert placeholder(result)["resources"] == {"requests": {"memory": "450Mi"}, "limits": {"memory": "450Mi"}}
    assert "memory raised from 450M to 450Mi" in result.to_yaml()


def test_a_given_placeholder_larger_than_a_user_stays() -> None:
    result = imported("scheduling: {userPlaceholder: {replicas: 2, resources: {requests: {memory: 57350076Ki}}}}")
    assert placeholder(result)["resources"] == {"requests": {"memory": "57350076Ki"}}


def test_a_gpu_limit_of_the_users_is_a_request_of_the_placeholder() -> None:
    result = imported('singleuser: {extraResource: {limits: {nvidia.com/gpu: "1"}}}')
    entry = {"requests": {"memory": "1Gi", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    assert placeholder(result)["resources"] == entry


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


def test_a_strong_preference_of_the_hubs_own_is_kept_for_placeholders_and_noted() -> None:
    term = {"weight": 60, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    result = imported(f"singleuser: {{extraNodeAffinity: {{preferred: [{term}]}}}}")
    purpose = {"matchExpressions": [{"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}]}
    terms = value(result, "podClasses.placeholder.preferredNodeTerms")
    assert terms == [{"weight": 100, "preference": purpose}, term]
    assert any("weight 60" in note for note in result.notes)


def test_pod_affinity_of_users_is_named_since_placeholders_cannot_carry_it() -> None:
    result = imported("singleuser:\n  extraPodAntiAffinity:\n    preferred:\n      - {weight: 1}\n")
    assert unmapped(result) == {"singleuser.extraPodAntiAffinity": 2}


def test_refused_placeholders_leave_none_rather_than_roosts_own() -> None:
    result = imported("scheduling: {userPlaceholder: {replicas: -3}}")
    assert value(result, "placeholders") == []
