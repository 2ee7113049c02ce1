"""Which of the puller's DaemonSets bring images to a node, as the controllers are told by the rendered document."""

import json
from typing import Any

import yaml

from generator.render.manifests import render
from generator.values.files import read_defaults
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release import Release
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.image_gate.settings import GateSettings, read_gate
from roost_core.objects.node import Node
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import startup_taint
from roost_core.release.reader import Reader

DEFAULT, GPU_IMAGE = "quay.io/o/default:1", "quay.io/o/gpu:1"
USER = Taint("hub.jupyter.org/dedicated", "user", "NoSchedule")
GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")
# zero-to-jupyterhub's own recipe: an extended resource, no node selector.
RECIPE = {"image": GPU_IMAGE, "extra_resource_limits": {"nvidia.com/gpu": "1"}}


def gate(override: dict[str, Any] | None = None, **singleuser: Any) -> GateSettings:
    """What the controllers read of a hub with one GPU profile."""
    values = {
        "singleuser": {
            "image": {"name": "quay.io/o/default", "tag": "1"},
            "profileList": [{"kubespawner_override": RECIPE if override is None else override}],
            **singleuser,
        }
    }
    merged = merge_values(read_defaults(), [load(yaml.safe_dump(values).encode(), "values.yaml")])
    manifests = [one.body for one in render(merged.values, Release("hub", "hub"))]
    data: list[Any] = [one.get("data") for one in manifests if one["kind"] == "ConfigMap"]
    document = next(json.loads(one["release.json"]) for one in data if "release.json" in one)
    read = Reader()
    settings = read_gate(ReleaseDocument(read, document))
    assert read.faults == []
    return settings


def node(*taints: Taint, **labels: str) -> Node:
    return Node(name="node", labels=labels, taints=taints, unschedulable=False, ready=True)


def images(settings: GateSettings, at: Node) -> list[str]:
    return [image.reference for image in settings.images_for(at)]


def test_a_tainted_gpu_node_gets_the_images_of_those_who_may_use_it_and_no_others() -> None:
    there = node(USER, GPU)
    assert images(gate(), there) == [GPU_IMAGE]
    assert gate().taint_against_pullers(there) is None


def test_a_node_that_no_puller_tolerates_lacks_what_belongs_there_and_the_taint_is_told() -> None:
    settings = gate({"image": GPU_IMAGE})
    assert images(settings, node(GPU)) == [DEFAULT, GPU_IMAGE]
    assert settings.taint_against_pullers(node(GPU)) == GPU


def test_every_puller_tolerates_the_startup_taint_and_what_all_daemon_pods_do() -> None:
    joining = node(
        USER,
        Taint(startup_taint("hub", "hub"), "", "NoSchedule"),
        Taint("node.kubernetes.io/not-ready", "", "NoExecute"),
    )
    assert gate().taint_against_pullers(joining) is None
    assert images(gate(), joining) == [DEFAULT, GPU_IMAGE]
