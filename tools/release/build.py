"""Build all that a release consists of into one folder: `make release`.

python -m tools.release.build    into dist/; --engine and --platform choose how images are built

The folder holds wheels, images and chart as OCI archives, the chart as a package, lists of what the
images contain, notes, checksums, and release.json, which says of which commit it is. Nothing is
pushed: that is `tools/publish`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools import image
from tools.release import oci, sbom
from tools.release.addresses import CHART, read_addresses
from tools.release.checkout import BuildError, checkout_state
from tools.release.fill import write_source
from tools.release.packages import package_chart, package_plugin
from tools.release.version import changes_in, version_of
from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DIST: Final = ROOT / "dist"
RECORD: Final = "release.json"
CHECKSUMS: Final = "SHA256SUMS"
# What builds images: the first that is here, unless one is named.
ENGINES: Final = ("docker", "podman", "debian")
# Docker's own builder in a container: it says in the image how it built it. Never chosen unnamed,
# since it has to be made first (docker buildx create --use).
BUILDX: Final = "buildx"
# Nodes are amd64 unless somebody chose otherwise, whatever the computer is that builds.
PLATFORM: Final = "linux/amd64"


@dataclass(frozen=True, slots=True)
class Part:
    """What is pushed: a file of the folder, its digest in registries, the platforms that it is
    for ("" in a chart).
    """

    file: str
    digest: str
    platforms: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """release.json: what the folder is of.

    changes: a digest of what differed from the commit in the checkout, "" for nothing. parts: by
    name: roost and roost-lab are images, chart is the chart.
    """

    version: str
    commit: str
    changes: str
    parts: dict[str, Part]


def read_record(dist: Path) -> Record:
    """release.json of a folder. Raises BuildError."""
    path = dist / RECORD
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        parts = {name: Part(**part) for name, part in body.pop("parts").items()}
        return Record(**body, parts=parts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(
            f"{path}: it isn't there, or isn't of this Roost. Build it again: make release"
        ) from error


def check_replaceable(dist: Path) -> None:
    """Raises BuildError unless the folder is missing, empty, or a release of any version.

    A build removes what the folder holds, and any folder may be named by mistake.
    """
    if not dist.exists():
        return
    try:
        if not any(dist.iterdir()):
            return
        record = json.loads((dist / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict) or not {"version", "commit", "parts"} <= record.keys():
        raise BuildError(
            f"{dist}: it is no release, and a build would remove what it holds. Name a folder that"
            " is empty or doesn't exist yet, or remove this one."
        )


def _replace(dist: Path, half: Path) -> None:
    """Put what was built in the place of the folder, which may have changed meanwhile."""
    check_replaceable(dist)
    try:
        if dist.exists():
            shutil.rmtree(dist)
        half.rename(dist)
    except OSError as error:
        raise BuildError(f"{dist}: it can't be replaced: {error}. Remove it.") from error


def build(dist: Path = DIST, engine: str = "", platforms: str = "") -> Record:
    """Replace the folder by a release of this checkout. Raises BuildError.

    platforms: as in linux/amd64,linux/arm64; "" for PLATFORM alone.
    """
    # Before minutes of building.
    check_replaceable(dist)
    commit, changes = checkout_state()
    version = version_of()
    dist.parent.mkdir(parents=True, exist_ok=True)
    # A folder that is half built is never taken for a whole one.
    with tempfile.TemporaryDirectory(dir=dist.parent, prefix=f".{dist.name}-") as scratch:
        half, source = Path(scratch) / "dist", Path(scratch) / "source"
        half.mkdir()
        addresses = read_addresses(os.environ)
        for line in write_source(source, addresses):
            _say(line)
        wanted = list(filter(None, platforms.split(",")))
        try:
            parts = build_images(source, half, version, engine or find_engine(), wanted)
        except (image.ImageError, oci.ArchiveError) as error:
            raise BuildError(str(error)) from error
        build_wheels(source, half)
        _say("the chart")
        tgz, archive = half / f"roost-{version}.tgz", half / f"roost-chart-{version}.tar"
        package_chart(source / "chart", tgz, archive, image.EPOCH_SECONDS)
        parts[CHART] = _part(archive)
        if addresses.repository:
            package_plugin(source, half, version, addresses.repository, image.EPOCH_SECONDS)
        for name in image.TARGETS:
            held = sbom.packages_of(half / parts[name].file)
            document = sbom.spdx_of(name, version, parts[name].digest, held)
            (half / contents_file(name, version)).write_text(document, encoding="utf-8")
        record = Record(version, commit, changes, parts)
        (half / RECORD).write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
        (half / "NOTES.md").write_text(notes_of(source, record), encoding="utf-8")
        (half / CHECKSUMS).write_text("".join(_checksums(half)), encoding="utf-8")
        _replace(dist, half)
    return record


def contents_file(name: str, version: str) -> str:
    """The name of the list of an image's contents."""
    return f"{name}-{version}.spdx.json"


def find_engine() -> str:
    """What builds images here. Raises BuildError if nothing does."""
    for engine in ENGINES:
        if engine == "debian" and not image.missing_parts():
            return engine
        if engine != "debian" and _answers(engine):
            return engine
    raise BuildError(
        "no docker and no podman that answers here, and not Debian with buildah and mmdebstrap as"
        " root. Install or start one of them: images are built by it."
    )


def _answers(engine: str) -> bool:
    """Docker's command may be here without its daemon."""
    if shutil.which(engine) is None:
        return False
    return subprocess.run([engine, "info"], capture_output=True, check=False).returncode == 0


def notes_of(source: Path, record: Record) -> str:
    """The change log's section of this version, and what was built. Raises BuildError."""
    section = changes_in(source, record.version)
    if section is None:
        raise BuildError(f"CHANGELOG.md: found no section {record.version}. Write it.")
    rows = [
        f"| {name} | {part.platforms or 'any'} | `{part.digest}` |"
        for name, part in record.parts.items()
    ]
    table = "\n".join(["| what | platforms | digest |", "|---|---|---|", *rows])
    built = f"Built from commit {record.commit}{', with changes' if record.changes else ''}."
    return f"# Roost {record.version}\n\n{section}\n\n## Digests\n\n{built}\n\n{table}\n"


def build_images(
    source: Path, dist: Path, version: str, engine: str, platforms: Sequence[str]
) -> dict[str, Part]:
    """Build both images of a copy of the checkout, as archives in the folder. Raises BuildError.

    platforms: () for PLATFORM alone.
    """
    wanted = tuple(platforms) or (PLATFORM,)
    if engine == "debian":
        if wanted != (PLATFORM,):
            raise BuildError(
                f"--platform {','.join(platforms)}: Debian's buildah builds for this machine alone."
                " Use docker or podman with QEMU."
            )
        built = image.build_images(source)
    parts = {}
    for name in image.TARGETS:
        path = dist / f"{name}-image-{version}.tar"
        if engine == "debian":
            shutil.copyfile(built[name], path)
        else:
            _say(f"{name} for {', '.join(wanted)}, by {engine}")
            build_one = _build_by_buildx if engine == BUILDX else _build_by_engine
            build_one(engine, source, name, wanted, path)
        parts[name] = _part(path)
    return parts


def _build_by_buildx(
    _engine: str, source: Path, target: str, platforms: Sequence[str], path: Path
) -> None:
    # Files and image have the age that hatchling's wheels have.
    output = f"type=oci,dest={path},rewrite-timestamp=true"
    build = ["docker", "buildx", "build", "--platform", ",".join(platforms), "--target", target]
    build += ["--provenance=mode=max", "--sbom=false", "--output", output]
    _run([*build, "--build-arg", f"SOURCE_DATE_EPOCH={image.EPOCH_SECONDS}", str(source)])


def _build_by_engine(
    engine: str, source: Path, target: str, platforms: Sequence[str], path: Path
) -> None:
    """Neither docker nor podman keeps an image of several platforms: one after the other."""
    archives = {}
    for platform in platforms:
        archives[platform] = path.with_name(f".{target}-{platform.replace('/', '-')}.tar")
        _build_platform(engine, source, target, platform, archives[platform])
    if len(archives) == 1:
        archives[platforms[0]].rename(path)
        return
    oci.join(archives, path)
    for archive in archives.values():
        archive.unlink()


def _build_platform(engine: str, source: Path, target: str, platform: str, path: Path) -> None:
    architecture = platform.rpartition("/")[2]
    tag = f"localhost/{target}:release-{architecture}"
    saved = path.with_suffix(".saved")
    build = [engine, "build", "--platform", platform, "--target", target, "--tag", tag]
    if engine == "podman":
        # Its cache mixes up platforms (4.3).
        build.append("--no-cache")
    # roost-lab stands on roost. Docker has kept that stage from the build before. Podman finds the
    # image, if it is told its name and asks no registry for it.
    if engine == "podman" and target != image.ROOST:
        below = f"localhost/{image.ROOST}:release-{architecture}"
        build += ["--pull=never", "--build-arg", f"ROOST={below}"]
    _run([*build, str(source)])
    _run([engine, "save", "--output", str(saved), tag])
    oci.from_saved(saved, path)
    saved.unlink()
    built = oci.platforms(path)
    if built != [platform]:
        raise BuildError(
            f"--platform {platform}: {engine} built {target} for {', '.join(built)}. Build one"
            " platform at a time, or by another engine."
        )


def build_wheels(source: Path, dist: Path) -> None:
    """Build both wheels of a copy of the checkout. Raises BuildError."""
    _say("the wheels")
    for folder in (source, source / "lab"):
        # hatchling asks git what to leave out: the copy is no checkout, and has tracked files only.
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
        _run([*command, "--directory", str(dist)], folder)


def _part(path: Path) -> Part:
    with oci.Archive(path) as archive:
        digest = archive.root.digest
    is_image = not path.name.startswith("roost-chart-")
    return Part(path.name, digest, ",".join(oci.platforms(path)) if is_image else "")


def _checksums(dist: Path) -> Iterator[str]:
    """As `sha256sum --check SHA256SUMS` reads them."""
    for path in sorted(dist.iterdir()):
        with path.open("rb") as file:
            yield f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n"


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise BuildError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-30:])
        raise BuildError(f"{' '.join(command)}: status {done.returncode}\n{last}")


def _say(line: str) -> None:
    print(f"release: {line}", file=sys.stderr, flush=True)


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """What `make release` and `tools/publish` both take."""
    parser.add_argument(
        "--engine",
        choices=(*ENGINES, BUILDX),
        default="",
        help="what builds the images (default: which is here)",
    )
    parser.add_argument(
        "--platform",
        default="",
        help=f"of the images, as linux/amd64,linux/arm64 (default: {PLATFORM})",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """0: built, and stdout lists the files; 1: it can't be, and stderr says why."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release.build", description=(__doc__ or "").split("\n")[0]
    )
    add_build_options(parser)
    parser.add_argument("--output", type=Path, default=DIST, help="(default: %(default)s)")
    given = parser.parse_args(argv)
    try:
        build(given.output.resolve(), given.engine, given.platform)
    except BuildError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in sorted(given.output.iterdir()):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
