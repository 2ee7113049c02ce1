"""`roost images`, and how registries are asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from roost.cli import run
from roost.commands import images as command
from roost.images.listing import images_of, name_of
from roost.images.registry import Answer, Registries, RegistryError

if TYPE_CHECKING:
    from collections.abc import Mapping

DIGEST: Final = "sha256:" + "ab" * 32


class Registry:
    """A registry that wants a token for everybody, as most do."""

    def __init__(self, status: int = 200, realm: str = "https://auth.example.org/token") -> None:
        self.status = status
        self.realm = realm
        self.asked: list[str] = []

    def fetch(self, method: str, url: str, headers: Mapping[str, str]) -> Answer:
        self.asked.append(f"{method} {url}")
        if url.startswith(f"{self.realm}?"):
            return Answer(200, {}, b'{"token": "t"}')
        if headers.get("Authorization") != "Bearer t":
            challenge = f'Bearer realm="{self.realm}",service="r",scope="repository:a/b:pull"'
            return Answer(401, {"www-authenticate": challenge}, b"")
        if "/tags/list" in url:
            following = {"link": '</v2/a/b/tags/list?last=2&n=1000>; rel="next"'} if "last" not in url else {}
            return Answer(200, following, json.dumps({"tags": ["3"] if "last" in url else ["1", "2"]}).encode())
        return Answer(self.status, {"docker-content-digest": DIGEST}, b"")


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


def test_a_token_is_fetched_once_for_an_image() -> None:
    registry = Registry()
    registries = Registries(registry.fetch)
    assert registries.digest("r.example.org/a/b:1") == DIGEST
    assert registries.digest("r.example.org/a/b:2") == DIGEST
    assert sum("auth.example.org" in line for line in registry.asked) == 1
    assert registry.asked[-1] == "HEAD https://r.example.org/v2/a/b/manifests/2"


@pytest.mark.parametrize("realm", ["https://auth.example.org/token", "http://localhost:5000/token"])
def test_a_token_is_fetched_where_the_registry_says(realm: str) -> None:
    assert Registries(Registry(realm=realm).fetch).digest("r.example.org/a/b:1") == DIGEST


@pytest.mark.parametrize(
    "realm", ["file:///etc/passwd", "http://169.254.169.254/token", "http://localhost.example.org/"]
)
def test_no_token_is_fetched_from_a_file_or_without_encryption(realm: str) -> None:
    registry = Registry(realm=realm)
    with pytest.raises(RegistryError, match="it asks who you are"):
        Registries(registry.fetch).digest("r.example.org/a/b:1")
    assert registry.asked == ["HEAD https://r.example.org/v2/a/b/manifests/1"]


def test_all_pages_of_tags_are_read() -> None:
    assert Registries(Registry().fetch).tags("r.example.org/a/b") == ["1", "2", "3"]


def test_a_digest_that_is_named_is_not_asked_for() -> None:
    registry = Registry()
    assert Registries(registry.fetch).digest(f"a/b@{DIGEST}") == DIGEST
    assert registry.asked == []


def test_a_registrys_no_names_the_image() -> None:
    with pytest.raises(RegistryError, match=r"^r\.example\.org/a/b:1: r\.example\.org: it has no such image"):
        Registries(Registry(404).fetch).digest("r.example.org/a/b:1")


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


def test_an_image_without_a_digest_is_named_and_the_others_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Half(Registries):
        def digest(self, image: str) -> str:
            if "pause" in image:
                raise RegistryError(f"{image}: no")
            return DIGEST

    monkeypatch.setattr(command, "Registries", Half)
    assert run(["images", "--digests", "--set", "image.name=r.example.org/roost"]) == 1
    captured = capsys.readouterr()
    assert f"r.example.org/roost:0.1.0@{DIGEST}" in captured.out
    assert "roost images: registry.k8s.io/pause:3.10.1: no" in captured.err
