"""`roost images`: whole names, as a copier takes them."""

from typing import Final

import pytest

from roost.cli import run
from roost.images.listing import images_of, name_of

ONE: Final = "sha256:" + "ab" * 32


def test_a_name_is_whole_and_has_a_digest_or_a_tag() -> None:
    names = ["quay.io/a/n:1", "a/n:1", "python", "localhost:5000/a/n:1", f"quay.io/a/n:1@{ONE}"]
    assert [str(name_of(name)) for name in names] == [
        *("quay.io/a/n:1", "docker.io/a/n:1", "docker.io/library/python:latest", "localhost:5000/a/n:1"),
        f"quay.io/a/n@{ONE}",
    ]


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("python:3.13", ("docker.io", "library/python", "3.13")),
        ("jupyterhub/k8s-hub", ("docker.io", "jupyterhub/k8s-hub", "")),
        ("docker.io/kindest/node", ("docker.io", "kindest/node", "")),
        ("localhost:5000/a/b:1", ("localhost:5000", "a/b", "1")),
        ("quay.io/a/b:1@sha256:00", ("quay.io", "a/b", "1")),
    ],
)
def test_an_images_name_is_taken_apart(image: str, parts: tuple[str, str, str]) -> None:
    assert name_of(image)[:3] == parts


def test_images_of_containers_and_of_image_volumes_are_found_once() -> None:
    pod = {
        "initContainers": [{"image": "b"}],
        "containers": [{"image": "a"}, {"image": "b"}],
        "volumes": [{"image": {"reference": "c", "pullPolicy": "Always"}}],
    }
    assert images_of([{"spec": {"template": {"spec": pod}}}, {"data": {"image": 5}}]) == ["a", "b", "c"]


def test_the_command_lists_what_the_values_need(capsys: pytest.CaptureFixture[str]) -> None:
    user = '{"name": "quay.io/me/lab", "tag": "1"}'
    arguments = ["images", "--kube-version", "v1.37.2", "--set", "image.name=r.example.org/roost"]
    assert run([*arguments, "--set-json", f"singleuser.image={user}"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "quay.io/me/lab:1",
        "r.example.org/roost:0.1.0",
        "registry.k8s.io/kube-scheduler:v1.37.2",
        "registry.k8s.io/pause:3.10.1",
    ]
