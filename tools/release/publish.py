"""Push a release's images and chart to a registry, and print the values that name them.

tools/publish registry.example.org/me >image.yaml

Builds the release into dist/ if it isn't there (`make release`). stdout: YAML for Roost's values,
images by digest. stderr: what is done, and how to install. Log in first, as for docker push.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tools import image
from tools.release.build import (
    DIST,
    BuildError,
    Record,
    add_build_options,
    build,
    checkout_state,
    read_record,
)
from tools.release.oci import Archive, ArchiveError
from tools.release.push import PushError, Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

AGAIN: Final = "Build it again: make release, or pass --rebuild."
_HOST: Final = r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::[0-9]{1,5})?"
_FOLDER: Final = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_ADDRESS: Final = re.compile(rf"({_HOST})((?:/{_FOLDER})*)")
_DOCKER_HUB: Final = ("docker.io", "index.docker.io", "registry-1.docker.io")


class Target(NamedTuple):
    """Where to push: HOST or HOST:PORT, and the folder in it, "" for none."""

    host: str
    folder: str

    def repository(self, name: str) -> str:
        """The repository's path in the registry."""
        return f"{self.folder}/{name}" if self.folder else name


# Beside images' repositories, since one repository can't hold an image and a chart of one tag.
REPOSITORIES: Final = {image.ROOST: "roost", image.LAB: "roost-lab", "chart": "charts/roost"}


def parse_target(address: str) -> Target:
    """REGISTRY as it was typed. Raises ValueError, whose message says what is wrong with it."""
    expected = "expected HOST/FOLDER, such as registry.example.org/me"
    plain = address.rstrip("/")
    scheme, has_scheme, rest = plain.rpartition("://")
    if has_scheme:
        raise ValueError(f"found {address!r}, {expected}. Leave out {scheme}://: {rest}")
    found = _ADDRESS.fullmatch(plain)
    if found is None and plain != plain.lower():
        raise ValueError(f"found {address!r}, {expected}. Names in registries have no capitals.")
    first, _, folders = plain.partition("/")
    if found is None and re.search(r"[:@]", folders):
        raise ValueError(f"found {address!r}, {expected}. The version is the tag: leave it out.")
    if found is None:
        raise ValueError(f"found {address!r}, {expected}.")
    if not re.search(r"[.:]", first) and first != "localhost":
        raise ValueError(f"found {address!r}, {expected}. {first!r} is no host of a registry.")
    if found[1] in _DOCKER_HUB:
        raise ValueError(
            f"found {address!r}. Docker Hub has no folders, and the chart needs one: charts/roost."
            " Use another registry, or push the images there with docker."
        )
    return Target(found[1], found[2].lstrip("/"))


def check_parts(record: Record, dist: Path) -> None:
    """Whether the folder's files are as they were built. Raises BuildError."""
    for part in record.parts.values():
        path = dist / part.file
        try:
            with Archive(path) as archive:
                archive.check()
                digest = archive.root.digest
        except (ArchiveError, OSError) as error:
            raise BuildError(f"{path}: it isn't as it was built ({error}) {AGAIN}") from error
        if digest != part.digest:
            raise BuildError(f"{path}: found {digest}, expected {part.digest}. {AGAIN}")


def publish(record: Record, dist: Path, target: Target, registry: Registry) -> None:
    """Push what the folder holds. Raises PushError."""
    for name, part in record.parts.items():
        repository = target.repository(REPOSITORIES[name])
        _say(f"{target.host}/{repository}:{record.version}")
        with Archive(dist / part.file) as archive:
            registry.push(archive, repository, record.version)


def values_of(record: Record, target: Target) -> str:
    """The values that name what was pushed, by digest."""

    def entry(name: str) -> str:
        repository = f"{target.host}/{target.repository(REPOSITORIES[name])}"
        return f'{{name: {repository}, digest: "{record.parts[name].digest}"}}'

    return (
        f"# Roost {record.version} in {target.host}, written by tools/publish.\n"
        f"image: {entry(image.ROOST)}\n"
        f"recorder: {{image: {entry(image.LAB)}}}\n"
        "# If nodes log in there, name the Secret (in Roost's namespace):\n"
        "# imagePullSecrets: [registry]\n"
    )


def check_current(record: Record, dist: Path) -> None:
    """Whether the folder is of this checkout. Raises BuildError."""
    commit, changes = checkout_state()
    if record.commit != commit:
        raise BuildError(
            f"{dist}: it was built from commit {record.commit[:12]}, and the checkout is at"
            f" {commit[:12]}. {AGAIN}"
        )
    if record.changes != changes:
        raise BuildError(
            f"{dist}: files of the checkout have changed since it was built (commit"
            f" {commit[:12]}). {AGAIN}"
        )


def _say(line: str) -> None:
    print(f"publish: {line}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """0: published; 1: it can't be, and stderr says why; 2: wrong usage."""
    parser = argparse.ArgumentParser(
        prog="tools/publish", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("registry", metavar="REGISTRY", help="such as registry.example.org/me")
    parser.add_argument(
        "--rebuild", action="store_true", help="build the release even if dist/ is there"
    )
    parser.add_argument(
        "--plain-http", action="store_true", help="a registry without TLS (localhost: always)"
    )
    parser.add_argument(
        "--dist", type=Path, default=DIST, help="the release's folder (default: %(default)s)"
    )
    add_build_options(parser)
    given = parser.parse_args(argv)
    dist: Path = given.dist.resolve()
    try:
        target = parse_target(given.registry)
    except ValueError as error:
        print(f"tools/publish: REGISTRY: {error}", file=sys.stderr)
        return 2
    registry = Registry(target.host, plain_http=given.plain_http)
    try:
        # Before minutes of building.
        registry.check(target.repository(REPOSITORIES[image.ROOST]))
        if given.rebuild or not dist.exists():
            _say(f"building the release into {dist}: minutes, the first time")
            platforms = list(filter(None, given.platform.split(",")))
            build(dist, given.engine, platforms)
        record = read_record(dist)
        check_current(record, dist)
        check_parts(record, dist)
        publish(record, dist, target, registry)
    except (BuildError, PushError) as error:
        print(f"tools/publish: {error}", file=sys.stderr)
        return 1
    print(values_of(record, target), end="")
    chart = f"oci://{target.host}/{target.repository(REPOSITORIES['chart'])}"
    plain = " --plain-http" if registry.is_plain else ""
    _say("published. With these values in image.yaml:")
    _say(
        f"helm install roost {chart} --version {record.version}{plain} --namespace NAMESPACE"
        " --values values.yaml --values image.yaml"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
