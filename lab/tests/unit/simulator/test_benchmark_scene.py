"""The scene that benchmarks of the controllers play in renders under today's values."""

from benchmarks.scene import Size, manifests


def test_the_hub_of_a_scene_renders_with_all_controllers_on() -> None:
    size = Size(nodes=3, pods=50)
    objects = manifests(size)
    (placeholders,) = [found for found in objects if found["kind"] == "StatefulSet"]
    assert placeholders["spec"]["replicas"] == size.placeholders > 0
    assert {"DaemonSet", "Deployment"} <= {found["kind"] for found in objects}
