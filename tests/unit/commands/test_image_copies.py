"""`roost images`, and `--copy-to`: no copy replaces another, and a copier takes each line."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.cli import run
from roost.images.listing import copies, images_of, is_registry, name_of

ONE: Final = "sha256:" + "ab" * 32
TWO: Final = "sha256:" + "cd" * 32
OWN: Final = "registry.example.org"


def test_same_paths_of_different_registries_stay_apart() -> None:
    images = ["quay.io/a/n:1", "ghcr.io/a/n:1", "a/n:1", "python", "localhost:5000/a/n:1"]
    assert copies(images, f"{OWN}/mirror") == [
        ("docker.io/a/n:1", f"{OWN}/mirror/docker.io/a/n:1"),
        ("docker.io/library/python:latest", f"{OWN}/mirror/docker.io/library/python:latest"),
        ("ghcr.io/a/n:1", f"{OWN}/mirror/ghcr.io/a/n:1"),
        ("localhost:5000/a/n:1", f"{OWN}/mirror/localhost_5000/a/n:1"),
        ("quay.io/a/n:1", f"{OWN}/mirror/quay.io/a/n:1"),
    ]


def test_a_source_has_a_digest_or_a_tag_and_the_tag_of_a_digest_is_its_own() -> None:
    images = [f"quay.io/a/n:1@{ONE}", f"quay.io/a/n:1@{TWO}", f"quay.io/a/n@{ONE}"]
    assert copies(images, OWN) == [
        (f"quay.io/a/n@{ONE}", f"{OWN}/quay.io/a/n:sha256-{'ab' * 32}"),
        (f"quay.io/a/n@{TWO}", f"{OWN}/quay.io/a/n:sha256-{'cd' * 32}"),
    ]


def test_what_the_registry_has_is_not_copied_onto_itself() -> None:
    assert copies([f"{OWN}/roost:0.1.0", f"{OWN}/team/lab:1"], f"{OWN}/mirror") == []


_HOSTS: Final = st.sampled_from(["", "quay.io/", "docker.io/", "localhost:5000/", "localhost/"])
_ENDS: Final = st.sampled_from(["", ":1", ":latest", f"@{ONE}", f":1@{ONE}", f":1@{TWO}"])


@given(st.lists(st.builds("{}{}{}".format, _HOSTS, st.sampled_from(["n", "a/n", "library/n"]), _ENDS)))
def test_no_two_sources_share_a_target(images: list[str]) -> None:
    pairs = copies(images, OWN)
    assert len({target for _, target in pairs}) == len(pairs)
    assert {source for source, _ in pairs} == {str(name_of(image)) for image in images}


@pytest.mark.parametrize("text", [OWN, "localhost:5000/a/b-c", "registry:5000", "localhost/a"])
def test_what_a_registry_can_be(text: str) -> None:
    assert is_registry(text)


@pytest.mark.parametrize(
    "text", ["https://r.example.org", "r.example.org/", "", "-x.example.org", "mirror", "mirror/a", "r.example.org/a b"]
)
def test_what_no_registry_is(text: str) -> None:
    assert not is_registry(text)


def test_the_command_prints_source_and_target(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["images", "--kube-version", "v1.37.2", "--set", f"image.name={OWN}/roost"]
    pinned = f"scheduler.image.tag=v1.37.2@{ONE}"
    assert run([*arguments, "--set", pinned, "--copy-to", OWN]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"registry.k8s.io/kube-scheduler@{ONE} {OWN}/registry.k8s.io/kube-scheduler:sha256-{'ab' * 32}",
        f"registry.k8s.io/pause:3.10.1 {OWN}/registry.k8s.io/pause:3.10.1",
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
