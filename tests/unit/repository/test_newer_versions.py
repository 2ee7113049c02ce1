"""`tools/newer_versions.py`, on recorded answers."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tools.newer_versions import World, dependencies, images, kubernetes, main, newest_like
from tools.registry import Answer

ROOT: Final = Path(__file__).resolve().parents[3]
TAGS: Final = {
    "library/python": [
        "3.13.9-slim-trixie",
        "3.13.11-slim-trixie",
        "3.14.0rc1-slim-trixie",
        "3.14-slim-trixie",
        "latest",
    ],
    "library/golang": ["1.26-trixie", "1.27-alpine"],
    "pause": ["3.10", "3.10.1", "sha256-abc.sig"],
    "kindest/node": ["v1.37.0", "v1.37.2", "v1.37.10", "v1.37.11-rc.0", "v1.36.12", "latest"],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tests/controlplane/kubernetes"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("require k8s.io/kubernetes v1.37.2\n")
    (folder / "minor-1.36.mod").write_text("require k8s.io/kubernetes v1.36.3\n")
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart/values.yaml").write_text(
        'scheduler: {image: {tags: {"1.36": v1.36.3, "1.37": v1.37.1}}}\n'
        'placeholder: {image: {name: registry.k8s.io/pause, tag: "3.10.1"}}\n'
    )
    (tmp_path / "Dockerfile").write_text("ARG BASE=python:3.13.9-slim-trixie\nARG GO=golang:1.26-trixie\n")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/dev.txt").write_text("flask==3.1.0 \\\n    --hash=sha256:00\npsycopg[binary]==3.2.0\n")
    return tmp_path


def answer(_method: str, url: str, _headers: Mapping[str, str]) -> Answer:
    releases = {
        "stable.txt": "v1.38.0",
        "stable-1.37.txt": "v1.37.2\n",
        "stable-1.36.txt": "v1.36.5",
        "stable-1.35.txt": "v1.35.9",
        "stable-1.34.txt": "v1.34.9",
        "stable-1.33.txt": "v1.33.13",
    }
    if url.startswith("https://dl.k8s.io/release/"):
        return Answer(200, {}, releases[url.rpartition("/")[2]].encode())
    name = url.partition("/v2/")[2].partition("/tags/")[0]
    return Answer(200, {}, json.dumps({"tags": TAGS[name]}).encode())


def run(_command: Sequence[str]) -> str:
    return json.dumps(
        [
            {"name": "Flask", "version": "3.1.0", "latest_version": "3.2.0"},
            {"name": "pip", "version": "23", "latest_version": "26"},
        ]
    )


def silent(_method: str, _url: str, _headers: Mapping[str, str]) -> Answer:
    raise OSError("no route to host")


WORLD: Final = World(answer, run)


def test_patches_and_a_new_minor_are_named(root: Path) -> None:
    assert [str(line) for line in kubernetes(WORLD, root)] == [
        "Kubernetes 1.37: v1.37.1 -> v1.37.2  (chart/values.yaml, scheduler.image.tags)",
        "Kubernetes 1.36: v1.36.3 -> v1.36.5  (tests/controlplane/kubernetes/minor-1.36.mod)",
        "Kubernetes 1.36: v1.36.3 -> v1.36.5  (chart/values.yaml, scheduler.image.tags)",
        "Kubernetes: 1.37 -> v1.38.0  (docs/architecture.md, A Kubernetes minor)",
    ]


def test_images_are_compared_with_tags_of_the_same_shape(root: Path) -> None:
    assert [str(line) for line in images(WORLD, root)] == [
        "python: 3.13.9-slim-trixie -> 3.13.11-slim-trixie  (Dockerfile)"
    ]
    assert newest_like("3.10.1", ["3.9.12", "3.11", "3.10.0"]) == "3.10.1"


def test_only_locked_packages_count(root: Path) -> None:
    assert [str(line) for line in dependencies(WORLD, root)] == ["Flask: 3.1.0 -> 3.2.0  (make lock)"]


def test_this_checkout_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], WORLD) in (0, 1)
    assert capsys.readouterr().err == ""


def test_a_source_that_does_not_answer_is_named_and_the_others_are_asked(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(_command: Sequence[str]) -> str:
        raise subprocess.CalledProcessError(1, "pip")

    assert main([], World(silent, fails)) == 2
    said = capsys.readouterr().err
    assert "Kubernetes couldn't be compared: https://dl.k8s.io/release/stable-1.37.txt: no route to host" in said
    assert "images couldn't be compared: " in said
    assert "dependencies couldn't be compared: pip list --outdated" in said
    assert "Traceback" not in said


def test_the_newest_tag_of_a_minor_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--newest", "docker.io/kindest/node", "v1.37."], WORLD) == 0
    assert capsys.readouterr().out == "v1.37.10\n"
    assert main(["--newest", "docker.io/kindest/node", "v1.99."], WORLD) == 2
    assert "no tag begins with v1.99." in capsys.readouterr().err


def test_renovate_finds_the_schedulers_tags() -> None:

    settings = json.loads((ROOT / "renovate.json").read_text(encoding="utf-8"))
    (pattern,) = settings["customManagers"][0]["matchStrings"]
    text = (ROOT / "chart/values.yaml").read_text(encoding="utf-8")
    found = re.findall(pattern.replace("(?<", "(?P<"), text)
    assert len(found) >= 3


def test_renovate_finds_the_scanner_and_the_scanner_every_lock_file() -> None:
    settings = json.loads((ROOT / "renovate.json").read_text(encoding="utf-8"))
    (pattern,) = settings["customManagers"][1]["matchStrings"]
    assert len(re.findall(pattern.replace("(?<", "(?P<"), (ROOT / "tools/scan.sh").read_text(encoding="utf-8"))) == 1
    printed = subprocess.run([ROOT / "tools/scan.sh", "--dry-run"], capture_output=True, text=True, check=True).stdout
    locked = {f"--lockfile=requirements.txt:requirements/{file.name}" for file in (ROOT / "requirements").glob("*.txt")}
    assert locked <= set(printed.split())
