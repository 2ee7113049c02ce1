"""A copy of a record differs in what was asked for, and in nothing else."""

from dataclasses import fields, replace
from typing import Any

from roost_core.objects.pod import Pod, PodSpec, copy_pod, copy_spec


def test_a_copy_is_what_replace_gives() -> None:
    # Each field has a value of its own, so that two changed for each other would show.
    values: dict[str, Any] = {one.name: one.name for one in fields(Pod)}
    pod = Pod(**values)
    assert copy_pod(pod, node_name="here", created=3.0) == replace(pod, node_name="here", created=3.0)
    assert copy_pod(pod) == pod
    spec = PodSpec(images=("image:1",), non_zero_cpu=7)
    assert copy_spec(spec, images=()) == replace(spec, images=())
