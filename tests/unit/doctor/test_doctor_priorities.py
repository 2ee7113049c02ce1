"""What `roost doctor` says of pods that rank below what Roost places."""

import pytest

from tests.unit.doctor.whole_cluster import Cluster, Object

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUILDS = "for want of room, pods of class build get no requests"
BARE = "podClasses: {build: {resources: null}}\n"
PREFERS = "imageGate: {mode: prefer}\n"


def priority_class(name: str, value: int, part_of: str = "") -> Object:
    return {"metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": part_of}}, "value": value}


OWN = [priority_class("hub.jhub.roost-placeholder", -10, "roost"), priority_class("hub.jhub.roost-puller", -5, "roost")]


@pytest.mark.parametrize(
    ("values", "classes", "told"),
    [
        ("", [*OWN, priority_class("critical", 1000)], []),
        ("", [*OWN, priority_class("batch", -3)], ["batch (-3) rank below users"]),
        (
            "",
            [priority_class("batch", -100)],
            ["batch (-100) rank below users", "batch (-100) rank below Roost's puller"],
        ),
        (PREFERS, [priority_class("batch", -100)], [BUILDS, "batch (-100) rank below Roost's puller"]),
        (PREFERS + "priorityClasses: {puller: -100, placeholder: -110}\n" + BARE, [priority_class("batch", -100)], []),
        (PREFERS + "prePuller: {enabled: false}\n" + BARE, [priority_class("batch", -100)], []),
    ],
)
def test_classes_whose_pods_could_be_deleted_for_roosts_are_named(
    values: str, classes: list[Object], told: list[str]
) -> None:
    cluster = Cluster(values)
    cluster.lists[CLASSES] = classes
    said = cluster.said("priorities")
    assert [one.severity for one in said] == ["warning"] * len(told)
    assert all(text in one.evidence for text, one in zip(told, said, strict=True))
