"""Push a release's images and chart to a registry, and print the values that name them.

tools/publish registry.example.org/me >image.yaml

Builds the release into dist/ if it isn't there (`make release`). stdout: YAML for Roost's values,
images by digest. stderr: what is done, and how to install. Log in first, as for docker push.
A workflow's step (GITHUB_OUTPUT) gets address and digest of each part as outputs, too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools import image
from tools.registry import Registry, RegistryError
from tools.release.addresses import CHART, Target, parse_target, read_addresses
from tools.release.build import DIST, Record, add_build_options, build, contents_file, read_record
from tools.release.checkout import BuildError, checkout_state
from tools.release.oci import Archive, ArchiveError

if TYPE_CHECKING:
    from collections.abc import Sequence

AGAIN: Final = "Build it again: make release, or pass --rebuild."


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
    """Push what the folder holds. Raises RegistryError."""
    for name, part in record.parts.items():
        _say(f"{target.address(name)}:{record.version}")
        with Archive(dist / part.file) as archive:
            registry.push(archive, target.repository(name), record.version)


def check_signer() -> None:
    """Whether what signs is here. Raises BuildError."""
    if shutil.which("cosign") is None:
        raise BuildError("--sign: no cosign here, which signs. Install it, or leave out --sign.")


def sign(record: Record, dist: Path, target: Target) -> None:
    """Sign what was pushed without a key, and attach the images' lists of contents as signed
    statements. Raises RegistryError.
    """
    for name, part in record.parts.items():
        reference = f"{target.address(name)}@{part.digest}"
        _cosign("sign", "--yes", reference)
        if name in image.TARGETS:
            listed = str(dist / contents_file(name, record.version))
            _cosign("attest", "--yes", "--type", "spdxjson", "--predicate", listed, reference)


def _cosign(*arguments: str) -> None:
    _say(f"cosign {' '.join(arguments)}")
    # stdout is for the values.
    done = subprocess.run(["cosign", *arguments], stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise RegistryError(
            f"cosign {arguments[0]}: status {done.returncode}. The release is pushed, and not all"
            " of it is signed: try again."
        )


def values_of(record: Record, target: Target) -> str:
    """The values that name what was pushed, by digest."""

    def entry(name: str) -> str:
        return f'{{name: {target.address(name)}, digest: "{record.parts[name].digest}"}}'

    return (
        f"# Roost {record.version} in {target.host}, written by tools/publish.\n"
        f"image: {entry(image.ROOST)}\n"
        f"recorder: {{image: {entry(image.LAB)}}}\n"
        "# If nodes log in there, name the Secret (in Roost's namespace):\n"
        "# imagePullSecrets: [registry]\n"
    )


def outputs_of(record: Record, target: Target) -> str:
    """What later steps of a workflow read: a line for each part's address, and for its digest."""
    return "".join(
        f"{name}={target.address(name)}\n{name}-digest={part.digest}\n"
        for name, part in record.parts.items()
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


def _named(registry: str | None) -> str:
    """REGISTRY, or the address that is known without it. Raises BuildError."""
    known = registry if registry is not None else read_addresses(os.environ).registry
    if registry is None and not known:
        raise BuildError(
            "found none. Name it, such as registry.example.org/me, or write it into release.toml"
            " (addresses.registry)."
        )
    return known


def _say(line: str) -> None:
    print(f"publish: {line}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """0: published; 1: it can't be, and stderr says why; 2: wrong usage."""
    parser = argparse.ArgumentParser(
        prog="tools/publish", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "registry",
        metavar="REGISTRY",
        nargs="?",
        help="such as registry.example.org/me (default: ROOST_REGISTRY, or release.toml's)",
    )
    parser.add_argument(
        "--rebuild", action="store_true", help="build the release even if dist/ is there"
    )
    parser.add_argument(
        "--plain-http", action="store_true", help="a registry without TLS (localhost: always)"
    )
    parser.add_argument(
        "--sign", action="store_true", help="sign all that is pushed, without a key, by cosign"
    )
    parser.add_argument(
        "--dist", type=Path, default=DIST, help="the release's folder (default: %(default)s)"
    )
    add_build_options(parser)
    given = parser.parse_args(argv)
    dist: Path = given.dist.resolve()
    try:
        target = parse_target(_named(given.registry))
    except (BuildError, ValueError) as error:
        print(f"tools/publish: REGISTRY: {error}", file=sys.stderr)
        return 2
    registry = Registry(target.host, plain_http=given.plain_http)
    try:
        # Before minutes of building.
        if given.sign:
            check_signer()
        registry.check(target.repository(image.ROOST))
        if given.rebuild or not dist.exists():
            _say(f"building the release into {dist}: minutes, the first time")
            build(dist, given.engine, given.platform)
        record = read_record(dist)
        check_current(record, dist)
        check_parts(record, dist)
        publish(record, dist, target, registry)
        if given.sign:
            sign(record, dist, target)
    except (BuildError, RegistryError) as error:
        print(f"tools/publish: {error}", file=sys.stderr)
        return 1
    print(values_of(record, target), end="")
    if outputs := os.environ.get("GITHUB_OUTPUT"):
        with Path(outputs).open("a", encoding="utf-8") as file:
            file.write(outputs_of(record, target))
    chart = f"oci://{target.address(CHART)}"
    plain = " --plain-http" if registry.is_plain else ""
    _say("published. With these values in image.yaml:")
    _say(
        f"helm install roost {chart} --version {record.version}{plain} --namespace NAMESPACE"
        " --values values.yaml --values image.yaml"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
