"""A copy of a record differs in what was asked for, and in nothing else."""

from dataclasses import fields, replace
from typing import Any

import pytest

from roost_core.objects.pod import Pod, PodSpec, copy_pod, copy_spec


def test_a_copy_is_what_replace_gives() -> None:
    # Each field has a value of its own, so that two changed for each other would show.
    values: dict[str, Any] = {one.name: one.name for one in fields(Pod)}
    pod = Pod(**values)
    assert copy_pod(pod, node_name="here", created=3.0) == replace(pod, node_name="here", created=3.0)
    assert copy_pod(pod) == pod
    spec = PodSpec(images=("image:1",), non_zero_cpu=7)
    assert copy_spec(spec, images=()) == replace(spec, images=())


def test_the_copied_record_stays_as_it_was() -> None:
    pod = Pod("hub", "jupyter-ada")
    copy_pod(pod, node_name="here")
    assert pod == Pod("hub", "jupyter-ada")


def test_a_field_that_is_not_there_cannot_be_changed() -> None:
    with pytest.raises(KeyError):
        copy_pod(Pod("hub", "jupyter-ada"), nodename="here")
