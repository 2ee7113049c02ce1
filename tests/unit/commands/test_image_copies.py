"""`roost images --copy-to`: no copy replaces another, and a copier takes each line."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.cli import run
from roost.images.copies import copies, is_registry
from roost.images.listing import name_of

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


def test_a_source_has_a_digest_or_a_tag_and_the_target_keeps_the_tag() -> None:
    images = [f"quay.io/a/n:1@{ONE}", f"quay.io/a/m@{ONE}"]
    assert copies(images, OWN) == [
        (f"quay.io/a/m@{ONE}", f"{OWN}/quay.io/a/m:{ONE.replace(':', '-')}"),
        (f"quay.io/a/n@{ONE}", f"{OWN}/quay.io/a/n:1"),
    ]


def test_two_digests_of_one_tag_have_targets_of_their_own() -> None:
    targets = [target for _, target in copies([f"quay.io/a/n:1@{ONE}", f"quay.io/a/n:1@{TWO}"], OWN)]
    assert targets == [f"{OWN}/quay.io/a/n:sha256-{'ab' * 32}", f"{OWN}/quay.io/a/n:sha256-{'cd' * 32}"]


def test_what_the_registry_has_is_not_copied_onto_itself() -> None:
    assert copies([f"{OWN}/roost:0.1.0", f"{OWN}/team/lab:1"], f"{OWN}/mirror") == []


_HOSTS: Final = st.sampled_from(["", "quay.io/", "docker.io/", "localhost:5000/", "localhost/"])
_ENDS: Final = st.sampled_from(["", ":1", ":latest", f"@{ONE}", f":1@{ONE}", f":1@{TWO}"])


@given(st.lists(st.builds("{}{}{}".format, _HOSTS, st.sampled_from(["n", "a/n", "library/n"]), _ENDS)))
def test_no_two_sources_share_a_target(images: list[str]) -> None:
    pairs = copies(images, OWN)
    assert len({target for _, target in pairs}) == len(pairs)
    assert {source for source, _ in pairs} == {str(name_of(image)) for image in images}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (OWN, True),
        ("localhost:5000/a/b-c", True),
        ("https://r.example.org", False),
        ("r.example.org/", False),
        ("", False),
        ("-x.example.org", False),
        ("mirror", False),
        ("mirror/a", False),
        ("registry:5000", True),
        ("localhost/a", True),
        ("r.example.org/a b", False),
    ],
)
def test_what_a_registry_can_be(text: str, fits: bool) -> None:
    assert is_registry(text) is fits


def test_the_command_prints_source_and_target(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["images", "--kube-version", "v1.37.2", "--set", f"image.name={OWN}/roost"]
    pinned = f"scheduler.image.tag=v1.37.2@{ONE}"
    assert run([*arguments, "--set", pinned, "--copy-to", OWN]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"registry.k8s.io/kube-scheduler@{ONE} {OWN}/registry.k8s.io/kube-scheduler:v1.37.2",
        f"registry.k8s.io/pause:3.10.1 {OWN}/registry.k8s.io/pause:3.10.1",
    ]
