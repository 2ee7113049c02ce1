"""tools/newer_versions.py on recorded answers, and how it asks registries."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.recorded_data import printed
from tools.newer_versions import World, dependencies, images, kubernetes, main, newest_like, tags_of
from tools.registry import Answer, RegistryError
from tools.root import ROOT

TAGS: Final = {
    "library/python": (
        [f"{tag}-slim-trixie" for tag in ("3.13.9", "3.13.11", "3.14.0rc1", "3.14")] + ["latest"]
    ),
    "library/golang": ["1.26-trixie", "1.27-alpine"],
    "pause": ["3.10", "3.10.1", "sha256-abc.sig"],
    "kindest/node": ["v1.37.0", "v1.37.2", "v1.37.10", "v1.37.11-rc.0", "v1.36.12", "latest"],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "tests/controlplane/kubernetes/go.mod": "require k8s.io/kubernetes v1.37.2\n",
        "tests/controlplane/kubernetes/minor-1.36.mod": "require k8s.io/kubernetes v1.36.3\n",
        "generator/render/kube_scheduler.py": '"1.36": "v1.36.3", "1.37": "v1.37.1"',
        "chart/values.yaml": (
            'placeholder: {image: {name: registry.k8s.io/pause, tag: "3.10.1"}}\n'
        ),
        "Dockerfile": "ARG BASE=python:3.13.9-slim-trixie\nARG GO=golang:1.26-trixie\n",
        "requirements/dev.txt": "flask==3.1.0 \\\n    --hash=sha256:00\npsycopg[binary]==3.2.0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def answer(_method: str, url: str, _headers: Mapping[str, str], _data: object) -> Answer:
    minors = {
        "37": "v1.37.2\n",
        "36": "v1.36.5",
        "35": "v1.35.9",
        "34": "v1.34.9",
        "33": "v1.33.13",
    }
    releases = {
        "stable.txt": "v1.38.0",
        **{f"stable-1.{minor}.txt": patch for minor, patch in minors.items()},
    }
    if url.startswith("https://dl.k8s.io/release/"):
        return Answer(200, {}, releases[url.rpartition("/")[2]].encode())
    name = url.partition("/v2/")[2].partition("/tags/")[0]
    return Answer(200, {}, json.dumps({"tags": TAGS[name]}).encode())


def run(_command: Sequence[str]) -> str:
    versions = (("Flask", "3.1.0", "3.2.0"), ("pip", "23", "26"))
    return json.dumps(
        [{"name": name, "version": old, "latest_version": new} for name, old, new in versions]
    )


def silent(_method: str, _url: str, _headers: Mapping[str, str], _data: object) -> Answer:
    raise OSError("no route to host")


WORLD: Final = World(answer, run)


def test_patches_a_new_minor_images_of_the_same_shape_and_locked_packages_are_named(
    root: Path,
) -> None:
    found = [
        str(line) for source in (kubernetes, images, dependencies) for line in source(WORLD, root)
    ]
    assert found == printed("newer-versions").splitlines()
    assert newest_like("3.10.1", ["3.9.12", "3.11", "3.10.0"]) == "3.10.1"


def test_this_checkout_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], WORLD) in (0, 1)
    assert capsys.readouterr().err == ""


def test_a_source_that_does_not_answer_is_named_and_the_others_are_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(_command: Sequence[str]) -> str:
        raise subprocess.CalledProcessError(1, "pip")

    assert main([], World(silent, fails)) == 2
    said = capsys.readouterr().err
    assert (
        "Kubernetes couldn't be compared: https://dl.k8s.io/release/stable-1.37.txt: no route to"
        " host" in said
    )
    assert "images couldn't be compared: " in said
    assert "dependencies couldn't be compared: pip list --outdated" in said
    assert "Traceback" not in said


def test_the_newest_tag_of_a_minor_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--newest", "docker.io/kindest/node", "v1.37."], WORLD) == 0
    assert capsys.readouterr().out == "v1.37.10\n"
    assert main(["--newest", "docker.io/kindest/node", "v1.99."], WORLD) == 2
    assert "no tag begins with v1.99." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("manager", "file", "least"),
    [(0, "generator/render/kube_scheduler.py", 5), (1, "tools/scan.sh", 1)],
)
def test_renovate_finds_the_schedulers_tags_and_the_scanner(
    manager: int, file: str, least: int
) -> None:
    settings = json.loads((ROOT / "renovate.json").read_text(encoding="utf-8"))
    (pattern,) = settings["customManagers"][manager]["matchStrings"]
    assert (
        len(re.findall(pattern.replace("(?<", "(?P<"), (ROOT / file).read_text(encoding="utf-8")))
        >= least
    )


def test_the_scanner_finds_every_lock_file() -> None:
    printed = subprocess.run(
        [ROOT / "tools/scan.sh", "--dry-run"], capture_output=True, text=True, check=True
    ).stdout
    locked = {
        f"--lockfile=requirements.txt:requirements/{file.name}"
        for file in (ROOT / "requirements").glob("*.txt")
    }
    assert locked <= set(printed.split())


class Registry:
    """A registry that wants a token for everybody, as most do."""

    def __init__(self, status: int = 200, realm: str = "https://auth.example.org/token") -> None:
        self.status = status
        self.realm = realm
        self.asked: list[str] = []

    def send(self, method: str, url: str, headers: Mapping[str, str], _data: object) -> Answer:
        self.asked.append(f"{method} {url}")
        if url.startswith(f"{self.realm}?"):
            return Answer(200, {}, b'{"token": "t"}')
        if headers.get("Authorization") != "Bearer t":
            challenge = f'Bearer realm="{self.realm}",service="r",scope="repository:a/b:pull"'
            return Answer(401, {"www-authenticate": challenge}, b"")
        if self.status != 200:
            return Answer(self.status, {}, b"")
        following = (
            {"link": '</v2/a/b/tags/list?last=2&n=1000>; rel="next"'} if "last" not in url else {}
        )
        return Answer(
            200, following, json.dumps({"tags": ["3"] if "last" in url else ["1", "2"]}).encode()
        )


@pytest.mark.parametrize("realm", ["https://auth.example.org/token", "http://localhost:5000/token"])
def test_all_pages_of_tags_are_read_with_one_token_from_where_the_registry_says(realm: str) -> None:
    registry = Registry(realm=realm)
    assert tags_of("r.example.org/a/b", registry.send) == ["1", "2", "3"]
    assert sum(f"{realm}?" in line for line in registry.asked) == 1
    assert registry.asked[-1] == "GET https://r.example.org/v2/a/b/tags/list?last=2&n=1000"


@pytest.mark.parametrize(
    "realm", ["file:///etc/passwd", "http://169.254.169.254/token", "http://localhost.example.org/"]
)
def test_no_token_is_fetched_from_a_file_or_without_encryption(realm: str) -> None:
    registry = Registry(realm=realm)
    with pytest.raises(RegistryError, match="which isn't https"):
        tags_of("r.example.org/a/b", registry.send)
    assert registry.asked == ["GET https://r.example.org/v2/a/b/tags/list?n=1000"]


def test_a_registrys_no_names_the_image() -> None:
    with pytest.raises(
        RegistryError, match=r"^r\.example\.org/a/b: the registry has no such repository"
    ):
        tags_of("r.example.org/a/b", Registry(404).send)


def test_a_registry_may_send_on_to_where_its_images_are() -> None:
    """registry.k8s.io does. A token isn't sent on, and no file of this machine is read."""
    asked: list[tuple[str, str]] = []

    def send(_method: str, url: str, headers: Mapping[str, str], _data: object) -> Answer:
        asked.append((url, headers.get("Authorization", "")))
        if url.startswith("https://near.example.org/"):
            return Answer(200, {}, b'{"tags": ["1"]}')
        return Answer(307, {"location": f"{target}/v2/a/tags/list?n=1000"}, b"")

    target = "https://near.example.org"
    assert tags_of("r.example.org/a", send) == ["1"]
    assert asked[-1] == ("https://near.example.org/v2/a/tags/list?n=1000", "")
    target = "file:///etc"
    with pytest.raises(RegistryError, match=r"sends on to file:///etc/v2"):
        tags_of("r.example.org/a", send)
    assert not [url for url, _ in asked if url.startswith("file:")]
