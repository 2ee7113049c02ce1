"""Make Roost's image without a container engine: `python -m tools.build_image`, as `docker build` makes it.

Owns the image's three layers (Debian's Python, the locked dependencies, Roost) and their caches. Needs a Debian machine
with the Python version of its release, Go for one small program, and root or user namespaces.
stdout: the image's digest, and with --push its reference.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.oci import debian, python_tree
from tools.oci.errors import ImageError, run
from tools.oci.layers import MOMENT, Layer, list_paths, read_layer, unpack_layer, with_parents, write_layer
from tools.oci.layout import Image, image_config, write_archive, write_layout
from tools.oci.registry import push

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

REPOSITORY = Path(__file__).resolve().parent.parent
OUTPUT = REPOSITORY / "build" / "image"
PAUSE = "usr/local/lib/roost/pause"
RUNTIME: dict[str, Any] = {
    # A number, not a name: `runAsNonRoot` can check numbers only.
    "User": f"{debian.USER_ID}:{debian.USER_ID}",
    "Env": [
        f"PATH=/{python_tree.HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONUNBUFFERED=1",
    ],
    "Entrypoint": ["roost"],
    "WorkingDir": "/",
    "Labels": {
        "org.opencontainers.image.title": "roost",
        "org.opencontainers.image.licenses": "BSD-3-Clause",
        "org.opencontainers.image.description": "Where the pods of JupyterHubs and BinderHubs land",
    },
}


def build(output: Path, name: str, sources: Path) -> Image:
    """Make the image into `output` as an OCI layout, and into `output`.tar as one file."""
    cache = cache_root()
    cache.mkdir(parents=True, exist_ok=True)
    machine = platform.machine()
    with tempfile.TemporaryDirectory(prefix="roost-image-", dir=cache) as scratch:
        root = Path(scratch) / "root"
        root.mkdir(mode=0o755)
        archive = debian.Archive(cache / "apt", sources)
        with step("Debian's lists of packages"):
            archive.update()
            python = archive.python()
            packages = archive.closure((*debian.ROOTS, python))
        base_key = _key(*(package.sha256 for package in packages), *_own_sources(), machine)

        def make_base() -> Sequence[str]:
            debian.unpack(archive.fetch(packages), root)
            python_tree.compile_below(root, f"/usr/lib/{python}")
            return list_paths(root)

        def make_dependencies() -> Sequence[str]:
            site = python_tree.make_home(root, python)
            python_tree.install_locked(site, REPOSITORY / "requirements/run.txt", machine)
            python_tree.compile_below(root, f"/{python_tree.HOME}/lib")
            python_tree.check_libraries(root)
            return with_parents(list_paths(root, python_tree.HOME))

        lock = (REPOSITORY / "requirements/run.txt").read_text()
        pinned = ", ".join(f"{package.file_name.removesuffix('.deb')}" for package in packages)
        base = cached_layer(root, cache / f"base-{base_key}.tar.gz", f"Debian: {pinned}", make_base)
        dependencies = cached_layer(
            root, cache / f"dependencies-{_key(base_key, lock)}.tar.gz", "requirements/run.txt", make_dependencies
        )
        with step("Roost"):
            roost = make_roost_layer(root, python, Path(scratch), machine)
        layers = [base, dependencies, roost]
        with step("layout and archive"):
            image = write_layout(output, layers, image_config(layers, machine, RUNTIME), name)
            write_archive(image, output.with_name(f"{output.name}.tar"))
    _forget_old(cache)
    for layer in layers:
        say(f"  {layer.size / 1e6:6.1f} MB, unpacked {layer.unpacked / 1e6:6.1f} MB: {layer.made_by[:60]}")
    return image


def make_roost_layer(root: Path, python: str, scratch: Path, machine: str) -> Layer:
    """Roost's wheel, built by its own backend, and the program for the puller."""
    before = set(list_paths(root, python_tree.HOME))
    wheels = scratch / "wheel"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(MOMENT)}
    hatchling: list[str | Path] = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        wheels,
    ]
    run(hatchling, folder=REPOSITORY, environment=environment)
    (wheel,) = wheels.glob("*.whl")
    site = root / python_tree.HOME / "lib" / python / "site-packages"
    theirs = set(site.iterdir())
    python_tree.install_wheel(site, wheel)
    ours = sorted(path for path in site.iterdir() if path not in theirs and path.is_dir())
    python_tree.compile_below(root, *(f"/{path.relative_to(root)}" for path in ours))
    build_pause(root / PAUSE, machine)
    new = set(list_paths(root, python_tree.HOME)) - before
    return write_layer(root, with_parents({*new, PAUSE}), scratch / "roost.tar.gz", "Roost")


def build_pause(target: Path, machine: str) -> None:
    """Compile the static program that the puller runs in other images."""
    target.parent.mkdir(parents=True, exist_ok=True)
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOARCH": architecture}
    command: list[str | Path] = [
        "go",
        "build",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags=-s -w -buildid=",
        "-o",
        target,
        ".",
    ]
    run(command, folder=Path(__file__).parent / "oci" / "pause", environment=environment)
    target.chmod(0o755)


def cached_layer(root: Path, target: Path, made_by: str, make: Callable[[], Sequence[str]]) -> Layer:
    """A layer out of the cache, or made into it; either way its files are in the root afterwards."""
    label = target.name.partition("-")[0]
    if target.exists():
        with step(f"{label}: from the cache"):
            layer = read_layer(target, made_by)
            unpack_layer(layer, root)
            target.touch()
        return layer
    with step(label):
        paths = make()
        half = target.with_name(f".{target.name}.{os.getpid()}")
        write_layer(root, paths, half, made_by)
        half.rename(target)
    return read_layer(target, made_by)


def cache_root() -> Path:
    """The per-user folder for what outlives a clone."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost" / "image"


def say(line: str) -> None:
    """Tell whoever waits; stdout is for the product."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Say how long something took."""
    started = time.monotonic()
    yield
    say(f"image: {title}, {time.monotonic() - started:.1f} s")


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _own_sources() -> list[str]:
    # A change in how layers are made makes them anew.
    return [path.read_text() for path in sorted((Path(__file__).parent / "oci").glob("*.py"))]


def _forget_old(cache: Path, keep: int = 4) -> None:
    layers = sorted(cache.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in layers[keep:]:
        path.unlink(missing_ok=True)


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_image", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="folder of the OCI layout; FOLDER.tar is the archive"
    )
    parser.add_argument("--name", default="roost:latest", help="the image's name in the archive (default: %(default)s)")
    parser.add_argument("--apt-sources", type=Path, help="Debian's APT sources (default: this machine's)")
    parser.add_argument(
        "--push", metavar="http://HOST:PORT/NAME:TAG", action="append", default=[], help="push it there"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """0: done; 1: it can't be made or pushed, and stderr says why."""
    arguments = make_parser().parse_args(argv)
    os.umask(0o022)
    if shutil.which("apt-get") is None:
        say("image: found no apt-get. Build it on a Debian machine, or with `docker build`.")
        return 1
    try:
        image = build(arguments.output.resolve(), arguments.name, arguments.apt_sources or debian.find_sources())
        print(image.digest)
        for target in arguments.push:
            print(push(image, target))
    except ImageError as error:
        say(f"image: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
