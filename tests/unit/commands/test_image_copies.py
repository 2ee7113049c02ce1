"""`roost images`: whole names, as a copier takes them."""

from typing import Final

import pytest

from roost.cli import run
from roost.commands.images import images_of
from tools.release.version import version_of

ONE: Final = "sha256:" + "ab" * 32


def test_a_name_is_whole_and_has_a_digest_or_a_tag() -> None:
    names = [
        "quay.io/a/n:1",
        "a/n:1",
        "python",
        "localhost:5000/a/n:1",
        f"r/n:1@{ONE}",
        f"quay.io/a/n:1@{ONE}",
    ]
    assert images_of([{"image": name} for name in names]) == [
        *("docker.io/a/n:1", "docker.io/library/python:latest", f"docker.io/r/n@{ONE}"),
        *("localhost:5000/a/n:1", "quay.io/a/n:1", f"quay.io/a/n@{ONE}"),
    ]


def test_images_of_containers_and_of_image_volumes_are_found_once() -> None:
    pod = {
        "initContainers": [{"image": "b"}],
        "containers": [{"image": "a"}, {"image": "b"}],
        "volumes": [{"image": {"reference": "c", "pullPolicy": "Always"}}],
    }
    assert images_of([{"spec": {"template": {"spec": pod}}}, {"data": {"image": 5}}]) == [
        f"docker.io/library/{name}:latest" for name in "abc"
    ]


def test_the_command_lists_what_the_values_need(capsys: pytest.CaptureFixture[str]) -> None:
    user = '{"name": "quay.io/me/lab", "tag": "1"}'
    arguments = ["images", "--kube-version", "v1.37.2", "--set", "image.name=r.example.org/roost"]
    assert run([*arguments, "--set-json", f"singleuser.image={user}"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "quay.io/me/lab:1",
        f"r.example.org/roost:{version_of()}",
        "registry.k8s.io/kube-scheduler:v1.37.2",
        "registry.k8s.io/pause:3.10.1",
    ]
