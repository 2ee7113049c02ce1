"""Build the Dockerfile's images without a registry: `python -m tools.image`, on Debian, by buildah
and mmdebstrap.

Owns the stand-ins for the Dockerfile's `BASE` and `GO` (Debian's own Python and Go) and the cache:
bases of one month in buildah's storage, images by a digest of what the Dockerfile takes from the
checkout. stdout: the paths of the archives, an OCI layout in one file each, which podman, skopeo
and containerd's `ctr` read.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

from tools.root import ROOT

OUTPUT = ROOT / "build"
# The Dockerfile's targets, each upon the one before it.
ROOST: Final = "roost"
LAB: Final = "roost-lab"
TARGETS: Final = (ROOST, LAB)
PROGRAMS = ("buildah", "mmdebstrap")
APT_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
# The Dockerfile's arguments and the Debian packages of what stands in for each.
BASES = {
    "BASE": ("ca-certificates", "python-is-python3", "python3", "python3-venv"),
    "GO": ("ca-certificates", "golang-go"),
}
KEPT_IMAGES = 12
# Of what is being built: one build at a time, and it ends with an archive.
BUILT_TAG: Final = "build"
# The age of every file and of the image itself, as hatchling's wheels have it: two builds of the
# same inputs are the same to the byte.
EPOCH_SECONDS: Final = 1_580_601_600


class ImageError(RuntimeError):
    """The image can't be built here; the message says why."""


def missing_parts() -> list[str]:
    """What this machine lacks; empty if the image can be built."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return missing if os.geteuid() == 0 else [*missing, "root"]


def build(target: str = ROOST) -> Path:
    """The archive of one of the images, from the cache or built now. Raises ImageError."""
    return build_images(ROOT)[target]


def build_images(root: Path, *, again: bool = False) -> dict[str, Path]:
    """The archives of both images of a checkout, or of a copy of one. Raises ImageError.

    again: built anew on the same bases, beside those in the cache, to be compared with them.
    """
    return build_all(root, TARGETS, BASES, _inputs(root), again=again)


def build_folder(
    folder: Path, targets: Sequence[str], bases: Mapping[str, Sequence[str]]
) -> dict[str, Path]:
    """The archives of another folder's Dockerfile, whose `BASE` and others are these Debian
    packages.

    Raises ImageError.
    """
    return build_all(
        folder,
        targets,
        {"BASE": BASES["BASE"], **bases},
        _contents(folder, sorted(folder.iterdir())),
    )


def build_all(
    context: Path,
    targets: Sequence[str],
    packages: Mapping[str, Sequence[str]],
    inputs: Iterable[str | bytes],
    *,
    again: bool = False,
) -> dict[str, Path]:
    """The archive of each target, from the cache or built now; inputs: what they depend on beside
    their bases.
    """
    if missing := missing_parts():
        raise ImageError(
            "the image is built on Debian, as root, by buildah and mmdebstrap: no"
            f" {', '.join(missing)} here"
        )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost" / "image"
    cache.mkdir(parents=True, exist_ok=True)
    with _lock(cache / ".lock"):
        bases = {argument: _base_name(names) for argument, names in packages.items()}
        digest = _digest(*bases.values(), *inputs)
        suffix = "-again" if again else ""
        archives = {name: cache / f"{name}-{digest}{suffix}.tar" for name in targets}
        if not again and all(archive.exists() for archive in archives.values()):
            for archive in archives.values():
                archive.touch()
            return archives
        storage = _Storage(cache / "storage")
        if not storage.has(bases["BASE"]):
            storage.clear()
        for argument, name in bases.items():
            if not storage.has(name):
                storage.make_base(name, packages[argument])
        storage.build(context, bases, archives)
        _forget_old(cache)
    return archives


class _Storage:
    """buildah's images, in a folder of their own: whatever the machine has is left alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # vfs copies layers: it works in containers, too.
        self._buildah = [
            "buildah",
            "--storage-driver=vfs",
            f"--root={folder}",
            f"--runroot={folder}/run",
        ]

    def has(self, name: str) -> bool:
        command = [*self._buildah, "inspect", "--type=image", name]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def clear(self) -> None:
        """Forget everything, such as last month's bases."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def make_base(self, name: str, packages: Sequence[str]) -> None:
        """Install Debian packages into an image of their own."""
        _say(f"{name}: {', '.join(packages)}")
        with tempfile.TemporaryDirectory() as scratch:
            root = f"{scratch}/root.tar"
            include = f"--include={','.join(packages)}"
            # An empty suite: the machine's sources name suites, mirrors and keys.
            _run(
                [
                    "mmdebstrap",
                    "--quiet",
                    "--variant=minbase",
                    include,
                    "",
                    root,
                    str(_apt_sources()),
                ]
            )
            container = self._run("from", "scratch")
            self._run("add", "--quiet", container, root, "/")
            stamp = f"--timestamp={EPOCH_SECONDS}"
            self._run("commit", "--quiet", "--rm", stamp, container, name)

    def build(self, context: Path, bases: Mapping[str, str], archives: Mapping[str, Path]) -> None:
        """Build targets of the folder's Dockerfile and write them as archives."""
        # An image's history names the one below it: the same name, the same image.
        names = {target: f"localhost/{target}:{BUILT_TAG}" for target in archives}
        # A later image stands on one that is there already.
        arguments = {argument: f"--build-arg={argument}={base}" for argument, base in bases.items()}
        with tempfile.TemporaryDirectory() as scratch:
            volumes = [
                f"--volume={source}:{target}:ro"
                for source, target in pip_files(Path(scratch)).items()
            ]
            for target, name in names.items():
                _say(f"{name}: building the Dockerfile")
                options = [
                    "--isolation=chroot",
                    "--pull=never",
                    "--no-cache",
                    "--force-rm",
                    f"--timestamp={EPOCH_SECONDS}",
                    f"--tag={name}",
                ]
                self._run(
                    "build",
                    *options,
                    f"--target={target}",
                    *arguments.values(),
                    *volumes,
                    str(context),
                )
                arguments[target] = f"--build-arg={target.upper()}={name}"
        for target, archive in archives.items():
            half = archive.with_name(f".{archive.name}")
            half.unlink(missing_ok=True)
            self._run("push", "--quiet", names[target], f"oci-archive:{half}:{target}:latest")
            half.rename(archive)
        self._run("rmi", *reversed(names.values()))

    def _run(self, *arguments: str) -> str:
        return _run([*self._buildah, *arguments])


def _apt_sources() -> Path:
    for path in APT_SOURCES:
        if path.exists() and path.read_text().strip():
            return path
    raise ImageError(f"found none of {', '.join(map(str, APT_SOURCES))}: is this Debian?")


def _base_name(packages: Sequence[str]) -> str:
    # A month: packages with known holes don't stay for ever.
    digest = _digest(_apt_sources().read_bytes(), *packages)
    return f"localhost/debian-{digest}:{datetime.now(UTC):%Y-%m}"


def _inputs(root: Path) -> Iterator[str | bytes]:
    """Names and contents of the files that the Dockerfile gets, and of this one, which says how
    it's built.
    """
    yield from (
        path.read_bytes() for path in (root / "Dockerfile", root / ".dockerignore", Path(__file__))
    )
    lines = (root / ".dockerignore").read_text().splitlines()
    tops = (root / line.removeprefix("!") for line in lines if line.startswith("!"))
    yield from _contents(root, tops)


def _contents(folder: Path, tops: Iterable[Path]) -> Iterator[str | bytes]:
    """Each file's name in the folder, and what it holds."""
    for top in tops:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(folder))
                yield path.read_bytes()


def pip_files(scratch: Path) -> dict[Path, Path]:
    """Files of this machine -> where the build's pip needs them: pip's settings, and each path that
    they name.
    """
    settings = configparser.RawConfigParser()
    settings.add_section("global")
    files = {scratch / "pip.conf": Path("/etc/pip.conf")}
    listed = _run([sys.executable, "-m", "pip", "config", "list"]).splitlines()
    for section in ("global.", "install.", ":env:."):  # as pip reads them: the later decides
        for line in (line for line in listed if line.startswith(section)):
            option, _, quoted = line.removeprefix(section).partition("=")
            value = str(ast.literal_eval(quoted))
            settings.set("global", option, value)
            paths = (Path(part.removeprefix("file://")) for part in value.split())
            files |= {path: path for path in paths if path.is_absolute() and path.exists()}
    with (scratch / "pip.conf").open("w") as file:
        settings.write(file)
    return files


def _run(command: list[str]) -> str:
    """Run a command to its end: what it prints."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        lines = (ended.stdout + ended.stderr).splitlines()
        raise ImageError(
            "\n".join([f"{' '.join(command)}: status {ended.returncode}", *lines[-40:]])
        )
    return ended.stdout.strip()


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One build at a time."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(content)}:".encode() + content)
    return digest.hexdigest()[:16]


def _forget_old(cache: Path) -> None:
    archives = sorted(cache.glob("*.tar"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in archives[KEPT_IMAGES:]:
        path.unlink()


def _say(line: str) -> None:
    sys.stderr.write(f"image: {line}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """0: built; 1: it can't be, and stderr says why."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.image", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="the archives' folder (default: %(default)s)"
    )
    output: Path = parser.parse_args(argv).output
    try:
        archives = {target: build(target) for target in TARGETS}
    except ImageError as error:
        _say(str(error))
        return 1
    output.mkdir(parents=True, exist_ok=True)
    for target, archive in archives.items():
        print(shutil.copyfile(archive, output / f"{target}.tar"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
