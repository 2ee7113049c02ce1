"""Name newer Kubernetes patches, images and Python dependencies than those that this checkout pins.

python -m tools.newer_versions                             all of them; a line each python -m
tools.newer_versions --newest IMAGE PREFIX       the newest tag of an image that begins so, such as
v1.37.

Needs the internet. Changes nothing. Exit codes: 0 nothing is newer, 1 something is, 2 a source gave
no answer.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from roost_core.objects.image_references import image_repository
from tools.registry import Registry, RegistryError, follow, send
from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tools.registry import Send

RELEASES: Final = "https://dl.k8s.io/release"
_SCHEDULERS: Final = "generator/render/kube_scheduler.py"
_DOCKER_HUB: Final = "registry-1.docker.io"
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)*)")


class SourceError(Exception):
    """A source gave no answer; the message names it."""


class Newer(NamedTuple):
    """A newer version of one thing; `where`: the files that pin it."""

    what: str
    pinned: str
    newest: str
    where: str

    def __str__(self) -> str:
        """A line for people."""
        return f"{self.what}: {self.pinned} -> {self.newest}  ({self.where})"


class World(NamedTuple):
    """What answers questions; tests give recorded answers."""

    send: Send
    run: Callable[[Sequence[str]], str]


def tags_of(image: str, send: Send = send) -> list[str]:
    """All tags of an image named without one, as anybody may see them. Raises RegistryError."""
    host, _, name = image_repository(image).partition("/")
    host = _DOCKER_HUB if host == "docker.io" else host
    return Registry(host, environment={}, actions="pull", send=send).tags(name)


def numbers(version: str) -> tuple[int, ...]:
    """(1, 37, 2) of v1.37.2; () of what is no version."""
    found = _VERSION.match(version)
    return tuple(map(int, found[1].split("."))) if found else ()


def newest_like(pinned: str, tags: Sequence[str]) -> str:
    """The newest of the tags that have the same shape: as many numbers, and the same words around
    them.

    python's 3.13.9-slim-trixie is compared with 3.14.0-slim-trixie, not with 3.15.0rc1-slim or
    3.14-slim-trixie.
    """
    shape = re.sub(r"\d+", "0", pinned)
    alike = [tag for tag in tags if re.sub(r"\d+", "0", tag) == shape]
    return max([*alike, pinned], key=numbers)


def kubernetes(world: World, root: Path = ROOT) -> Iterator[Newer]:
    """Patches of each supported minor, and a new minor. Raises SourceError."""
    folder = root / "tests" / "controlplane" / "kubernetes"
    pins = {}
    for path in sorted(folder.glob("*.mod")):
        found = re.search(
            r"k8s\.io/kubernetes (v(\d+\.\d+)\.\d+)", path.read_text(encoding="utf-8")
        )
        if found:
            pins[found[2]] = (found[1], str(path.relative_to(root)))
    table = (root / _SCHEDULERS).read_text(encoding="utf-8")
    tags = dict(re.findall(r'"(1\.\d+)": "(v[\d.]+)"', table))
    for minor, (pinned, where) in pins.items():
        newest = _release(world, f"stable-{minor}.txt")
        for version, file in ((pinned, where), (tags[minor], _SCHEDULERS)):
            if numbers(newest) > numbers(version):
                yield Newer(f"Kubernetes {minor}", version, newest, file)
    newest_minor = max(pins, key=numbers)
    stable = _release(world, "stable.txt")
    if numbers(stable)[:2] > numbers(newest_minor):
        yield Newer("Kubernetes", newest_minor, stable, "docs/architecture.md, A Kubernetes minor")


def images(world: World, root: Path = ROOT) -> Iterator[Newer]:
    """Images of the Dockerfile and of placeholders. Raises SourceError."""
    dockerfile = (root / "Dockerfile").read_text(encoding="utf-8")
    pins = dict.fromkeys(
        re.findall(r"^ARG \w+=([^\s@:]+:[^\s@]+)", dockerfile, re.MULTILINE), "Dockerfile"
    )
    placeholder = _values(root)["placeholder"]["image"]
    pins[f"{placeholder['name']}:{placeholder['tag']}"] = "chart/values.yaml, placeholder.image"
    for image, where in pins.items():
        name, _, tag = image.rpartition(":")
        try:
            newest = newest_like(tag, tags_of(name, world.send))
        except RegistryError as error:
            raise SourceError(str(error)) from error
        if newest != tag:
            yield Newer(name, tag, newest, where)


def dependencies(world: World, root: Path = ROOT) -> Iterator[Newer]:
    """Packages of requirements/dev.txt, as pip compares them in this environment.

    Raises SourceError.
    """
    text = (root / "requirements" / "dev.txt").read_text(encoding="utf-8")
    locked = {
        name.lower().replace("_", "-")
        for name in re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==", text, re.MULTILINE)
    }
    command = [
        sys.executable,
        "-m",
        "pip",
        "list",
        "--outdated",
        "--format=json",
        "--disable-pip-version-check",
    ]
    try:
        listed = json.loads(world.run(command))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SourceError(f"pip list --outdated: {error}") from error
    for package in listed:
        if package["name"].lower().replace("_", "-") in locked:
            yield Newer(package["name"], package["version"], package["latest_version"], "make lock")


SOURCES: Final = {"Kubernetes": kubernetes, "images": images, "dependencies": dependencies}


def main(argv: Sequence[str] | None = None, world: World | None = None) -> int:
    """0 nothing is newer, 1 something is, 2 a source gave no answer (stderr says which)."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.newer_versions", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--newest", nargs=2, metavar=("IMAGE", "PREFIX"), help="print the newest tag that begins so"
    )
    newest: list[str] | None = parser.parse_args(argv).newest
    asked = world or World(send, _run)
    try:
        if newest:
            return _print_newest(asked, *newest)
    except RegistryError as error:
        print(f"newer versions: {error}", file=sys.stderr)
        return 2
    code = 0
    for title, source in SOURCES.items():
        try:
            for line in source(asked):
                print(line)
                code = code or 1
        except SourceError as error:
            print(f"newer versions: {title} couldn't be compared: {error}", file=sys.stderr)
            code = 2
    return code


def _print_newest(world: World, image: str, prefix: str) -> int:
    tags = [
        tag for tag in tags_of(image, world.send) if re.fullmatch(re.escape(prefix) + r"\d+", tag)
    ]
    if not tags:
        raise RegistryError(f"{image}: no tag begins with {prefix} and ends in a number.")
    print(max(tags, key=numbers))
    return 0


def _release(world: World, name: str) -> str:
    """A file of Kubernetes' own that holds a version."""
    try:
        answer = follow(lambda address: world.send("GET", address, {}, None), f"{RELEASES}/{name}")
    except OSError as error:
        raise SourceError(f"{RELEASES}/{name}: {getattr(error, 'reason', error)}") from error
    text = answer.body.decode(errors="replace").strip()
    if answer.status != 200 or not re.fullmatch(r"v\d+\.\d+\.\d+", text):
        raise SourceError(f"{RELEASES}/{name}: status {answer.status}, no version.")
    return text


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout


def _values(root: Path) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(
        (root / "chart" / "values.yaml").read_text(encoding="utf-8")
    )
    return values


if __name__ == "__main__":
    sys.exit(main())
