"""What `roost doctor` says of bookings, and of waves that were learned, that the hub or the cluster
has no room for.
"""

from array import array
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.faults import UsageError
from roost.doctor.checks import run_checks
from roost.doctor.checks.bookings import check
from roost.doctor.evidence import AUTOSCALER_STATUS, NODE_POOLS
from roost.doctor.quotas_option import find_faults
from roost_core.objects.fields import JSONObject
from roost_core.placement.headroom_history import History
from roost_core.placement.labels import EVENTS_LABEL
from tests.builders import HUB_RELEASE
from tests.recorded_data import rows
from tests.unit.doctor.whole_cluster import CONFIG_MAPS, NODES, QUOTAS, Cluster, node

SET = (
    "placeholders: [{name: default, replicas: 0, resources: {requests: {cpu: 50m, memory:"
    " 1Gi}}LEARN}]\n"
)
LEARN = ", learn: {min: 0, max: 9, timeZone: UTC}"
EVENTS = "events: {enabled: true, activeServerLimit: 200}\n"


def hub(learn: str = "", events: str = EVENTS) -> Cluster:
    return Cluster(SET.replace("LEARN", learn) + events)


def booking(**people: int) -> JSONObject:
    events = [
        {"name": name, "people": n, "start": "2099-01-01T09:00", "timeZone": "UTC"}
        for name, n in people.items()
    ]
    return {"metadata": {"name": "booked"}, "data": {"events.yaml": yaml.safe_dump(events)}}


def told(cluster: Cluster) -> list[str]:
    quotas = ["requests"] if cluster.lists[QUOTAS] else []
    said = cluster.said("bookings", *quotas)
    assert {finding.severity for finding in said} <= {"warning"}
    return [f"{finding.evidence} {finding.fix}" for finding in said]


@pytest.mark.parametrize(("people", "there", "expected"), rows("doctor/bookings"))
def test_a_booking_that_hub_quota_nodes_or_pools_have_no_room_for_is_told_with_what_to_set(
    people: dict[str, int], there: dict[str, Any], expected: list[str]
) -> None:
    cluster = hub()
    cluster.lists[CONFIG_MAPS] = [booking(**people)]
    cluster.lists[QUOTAS] = there.get("quotas", [])
    for count, labels, pods, memory in there.get("nodes", ()):
        for number in range(count):
            one = node(
                f"{len(cluster.lists[NODES])}-{number}",
                taints=[labels["taint"]] if "taint" in labels else (),
            )
            one["metadata"]["labels"] = labels
            one["spec"]["unschedulable"] = "cordoned" in labels
            one["status"]["allocatable"] = {"cpu": "16", "memory": memory, "pods": str(pods)}
            cluster.lists[NODES].append(one)
    if pools := there.get("pools"):
        cluster.lists[NODE_POOLS] = [
            {
                "metadata": {"name": name},
                "spec": {"limits": limits, "disruption": {"consolidationPolicy": "WhenEmpty"}},
            }
            for name, limits in pools.items()
        ]
    status = {
        "nodeGroups": [
            {"name": name, "health": {"maxSize": most}}
            for name, most in there.get("groups", {}).items()
        ]
    }
    cluster.objects[AUTOSCALER_STATUS] = {"data": {"status": yaml.safe_dump(status)}}
    said = told(cluster)
    assert len(said) == len(expected), said
    assert all(text in one for text, one in zip(expected, said, strict=True)), said


def test_bookings_past_or_refused_are_not_judged_and_a_status_of_another_kind_says_nothing() -> (
    None
):
    cluster = hub()
    before = booking(lecture=100)
    before["data"]["events.yaml"] = before["data"]["events.yaml"].replace("2099", "1999")
    cluster.lists[CONFIG_MAPS] = [
        before,
        booking(exam=501),
        {"data": {"events.yaml": "&a [*a]"}},
        {},
    ]
    assert told(cluster) == []
    cluster.lists[CONFIG_MAPS].append(booking(exam=60))
    for text in ("- [", "autoscaler: old", "nodeGroups: [{name: 3}]", "nodeGroups: 7"):
        cluster.objects[AUTOSCALER_STATUS] = {"data": {"status": text}}
        assert told(cluster) == [], text
    for events in (
        "concurrentSpawnLimit: 9",
        "enabled: true, configMaps: false",
        "enabled: true, maxPlaceholders: 40",
    ):
        off = hub(events=f"events: {{{events}}}\n")
        off.lists[CONFIG_MAPS] = [booking(lecture=64)]
        off.lists[QUOTAS] = [
            {"metadata": {"name": "q", "namespace": "jhub"}, "spec": {"hard": {"pods": "40"}}}
        ]
        assert told(off) == [], events


@pytest.mark.parametrize(
    ("operator", "values", "is_told"),
    [
        ("In", ["hub.jhub.roost-placeholder"], True),
        ("In", ["hub-default-priority"], False),
        ("NotIn", ["system-node-critical"], True),
        ("NotIn", ["hub.jhub.roost-placeholder"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_a_quota_counts_placeholders_by_their_class_as_controllers_judge_it(
    operator: str, values: list[str], is_told: bool
) -> None:
    cluster = hub()
    cluster.lists[CONFIG_MAPS] = [booking(lecture=60)]
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    spec = {"hard": {"pods": "40"}, "scopeSelector": {"matchExpressions": [expression]}}
    cluster.lists[QUOTAS] = [{"metadata": {"name": "room", "namespace": "jhub"}, "spec": spec}]
    ((_, _, found),) = run_checks(cluster.install, {"bookings": check})
    told = "ResourceQuota jhub/room has room for 40 of 60 placeholders now"
    assert [told in finding.evidence for finding in found] == [True] * is_told


@pytest.mark.parametrize(("path", "rest"), [(NODES, 3), (QUOTAS, 2)])
def test_who_may_not_see_all_is_told_what_was_not_seen_and_of_all_the_rest(
    path: str, rest: int
) -> None:
    cluster = hub()
    cluster.lists[CONFIG_MAPS] = [booking(exam=201)]
    cluster.lists[QUOTAS] = [
        {"metadata": {"name": "q", "namespace": "jhub"}, "spec": {"hard": {"pods": "40"}}}
    ]
    cluster.refused = {path}
    ((_, _, (*told, unseen)),) = run_checks(cluster.install, {"bookings": check})
    assert (len(told), unseen.severity, path in unseen.evidence) == (rest, "unknown", True)


def files(folder: Path, *bodies: JSONObject, **hard: str) -> str:
    """A folder of a ResourceQuota of which 30 pods are used, and of these ConfigMaps."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "course", "namespace": "jhub"},
        "spec": {"hard": hard},
        "status": {"used": {"pods": "30"}},
    }
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", **body} for body in bodies]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([quota, *maps]))
    return str(folder)


def in_values(**people: int) -> str:
    """Values that book this at the same time."""
    start = {"start": "2099-01-01T09:00", "timeZone": "UTC"}
    booked = [{"name": name, "people": number} | start for name, number in people.items()]
    limits = {"activeServerLimit": 200, "concurrentSpawnLimit": 500}
    return yaml.safe_dump({"events": {"enabled": True, "booked": booked} | limits})


def test_without_a_cluster_quotas_of_files_are_told_of_bookings_in_the_values(
    tmp_path: Path,
) -> None:
    cluster = hub(events=in_values(exam=320))
    _, told = find_faults(files(tmp_path, pods="110"), cluster.install.values, HUB_RELEASE)
    assert (" has room for 80 of 320 placeholders now" in told.found, told.fix) == (
        True,
        "Raise pods to 350.",
    )


@pytest.mark.parametrize(
    ("of_values", "of_config_map", "expected"),
    [
        ({"exam": 320}, {}, None),
        ({"exam": 150, "lecture": 120}, {}, "exam, lecture, "),
        ({}, {"exam": 320}, "exam, "),
        ({"exam": 150}, {"lecture": 120}, "exam, lecture, "),
        ({"exam": 220}, {"exam": 320}, "exam, exam, "),
    ],
)
def test_without_a_cluster_the_hubs_limits_are_told_where_checks_of_the_values_do_not_see_it(
    of_values: dict[str, int], of_config_map: dict[str, int], expected: str | None, tmp_path: Path
) -> None:
    body = booking(**of_config_map)
    body["metadata"]["labels"] = {EVENTS_LABEL: HUB_RELEASE.name}
    values = hub(events=in_values(**of_values)).install.values
    faults = find_faults(files(tmp_path, body, services="9"), values, HUB_RELEASE)
    told = [fault.found for fault in faults if "hub.activeServerLimit" in fault.found]
    assert len(told) == (expected is not None)
    assert all(text.startswith(expected or "") for text in told), told


def test_without_a_cluster_config_maps_of_other_releases_book_nothing(tmp_path: Path) -> None:
    body = booking(exam=320)
    body["metadata"]["labels"] = {EVENTS_LABEL: "other"}
    values = hub(events=in_values()).install.values
    assert find_faults(files(tmp_path, body, services="9"), values, HUB_RELEASE) == []


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ({"data": "- name: exam"}, "data"),
        ({"data": {"events.yaml": [{"name": "exam"}]}}, "data"),
        ({"metadata": {"name": "booked", "labels": [{"name": "exam"}]}}, r"metadata\.labels"),
    ],
)
def test_a_config_map_that_the_api_server_would_refuse_is_named(
    part: JSONObject, key: str, tmp_path: Path
) -> None:
    values = hub(events=in_values()).install.values
    body = {"metadata": {"name": "booked"}, **part}
    refusal = rf"ConfigMap booked: found .*name.*, expected {key} as the"
    with pytest.raises(UsageError, match=refusal):
        find_faults(files(tmp_path, body, services="9"), values, HUB_RELEASE)


def test_a_wave_that_was_learned_is_told_by_the_minute_that_most_came_in_and_pauses_are_none() -> (
    None
):
    cluster = hub(LEARN)
    history = f"{CONFIG_MAPS}/hub-roost-headroom-history"
    for levels, expected in (
        ([10, 74, -1, 900], []),
        (
            [10, 140, 150],
            ["Set default: users of 130 seats came within a minute. If all come at once, the hub "],
        ),
    ):
        cluster.objects[history]["data"] = {
            "default": History(29_000_000, array("i", levels)).as_text()
        }
        said = told(cluster)
        assert [one.startswith(text) for one, text in zip(said, expected, strict=True)] == [
            True
        ] * len(expected)
    assert "the last of 130 waits about 90 s. Set it to 130 in the hub's values" in said[0]
    cluster.objects[history]["data"] = {"default": "?", "gone": "?"}
    assert told(cluster) == []
