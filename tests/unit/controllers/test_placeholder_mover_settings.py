"""What the placeholder mover reads from its settings."""

import pytest

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.placeholder_mover.settings import read_mover_settings
from roost_core.objects.pod import Pod
from roost_core.release.reader import Reader
from roost_core.scheduler.plugins import NEWEST_MINOR
from tests.mover_world import MoverWorld, settled_world


@pytest.mark.parametrize("minor", [35, 36, 37])
def test_the_clusters_minor_decides_how_the_scheduler_is_modelled(minor: int) -> None:
    world = MoverWorld()
    read = Reader()
    profiles = read_mover_settings(ReleaseDocument(read, world.document, world.configuration, minor)).profiles
    assert len(profiles) > 3
    assert {one.minor for one in profiles.values()} == {minor}
    assert ("VolumeBinding" in dict(profiles["default-scheduler"].scores)) == (minor >= 37)


@pytest.mark.parametrize("gate", [True, False])
def test_users_count_with_and_without_a_gate(gate: bool) -> None:
    world = MoverWorld()
    world.document["podClasses"]["user"]["imageGate"] = gate
    settings = read_mover_settings(ReleaseDocument(Reader(), world.document, world.configuration, NEWEST_MINOR))
    assert settings.user_classes == {"user"}


def test_faults_of_the_settings_come_with_their_keys() -> None:
    world = MoverWorld()
    world.document["placeholderMover"] |= {"evictionsPerMinute": -1, "flapSeconds": "soon", "evictionsAMinute": 5}
    world.document["placeholders"][0]["nodeSelector"] = {"pool": 7}
    read = Reader()
    read_mover_settings(ReleaseDocument(read, world.document, world.configuration, NEWEST_MINOR))
    assert sorted(fault.key for fault in read.faults) == [
        "placeholderMover.evictionsAMinute",
        "placeholderMover.evictionsPerMinute",
        "placeholderMover.flapSeconds",
        "placeholders[0].nodeSelector.pool",
    ]


@pytest.mark.parametrize("component", ["puller", "popular-puller"])
def test_without_a_gate_nodes_need_no_images_but_pullers_must_be_done(component: str) -> None:
    world = settled_world()
    world.document["imageGate"]["mode"] = "off"
    labels = {"app.kubernetes.io/part-of": "roost", "app.kubernetes.io/component": component}
    world.pods["jhub/pull"] = Pod("jhub", "pull", "uid-pull", labels, node_name="new", phase="Pending")
    world.start_leader()
    world.add_node("new", imaged=False)
    assert world.marked_after(300) == ["old"]
    world.pods.pop("jhub/pull")
    assert world.marked_after(70) == ["new"]
