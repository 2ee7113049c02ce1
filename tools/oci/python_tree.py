"""Install wheels into /opt/roost of a root folder: a virtual environment made from outside, compiled from within.

Owns what stands in /opt/roost. Guarantee: no source is compiled when a container starts, so its root may be read-only.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.oci.errors import ImageError, run

HOME = "opt/roost"
# The newest glibc ABI that Debian 12 has; wheels for older ones fit too.
NEWEST_GLIBC_MINOR = 36
OLDEST_GLIBC_MINOR = 5
LEGACY_TAGS = {12: "manylinux2010", 17: "manylinux2014", 5: "manylinux1"}


def make_home(root: Path, python: str) -> Path:
    """An empty virtual environment for Debian's `python` (such as python3.11); returns its site-packages."""
    home = root / HOME
    site = home / "lib" / python / "site-packages"
    site.mkdir(parents=True)
    (home / "bin").mkdir()
    for name in ("python", "python3", python):
        (home / "bin" / name).symlink_to(f"/usr/bin/{python}")
    version = python.removeprefix("python")
    (home / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n")
    return site


def install_locked(site: Path, requirements: Path, machine: str) -> None:
    """Install the locked wheels for that machine (as in `uname -m`) and for the Python of `site`'s folder."""
    version = site.parent.name.removeprefix("python")
    if version != f"{sys.version_info.major}.{sys.version_info.minor}":
        # pip reads environment markers with the Python that runs it.
        raise ImageError(
            f"found Python {sys.version.split()[0]}, need the image's own {version}: PYTHON=python{version}"
        )
    options = ["--require-hashes", "--no-deps", "--only-binary=:all:", "--no-compile", "--implementation=cp"]
    options += [f"--python-version={version}", f"--abi=cp{version.replace('.', '')}", "--abi=abi3", "--abi=none"]
    options += [f"--platform={tag}" for tag in platform_tags(machine)]
    _pip_install(site, [*options, f"--requirement={requirements}"])


def install_wheel(site: Path, wheel: Path) -> None:
    """Install one wheel, without its dependencies, and its commands into the environment's `bin`."""
    _pip_install(site, ["--no-deps", "--no-index", "--no-compile", str(wheel)])
    folder = site.parent.parent.parent / "bin"
    for command, module, function in read_commands(wheel):
        path = folder / command
        path.write_text(
            f"#!/{HOME}/bin/python\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
        )
        path.chmod(0o755)


def read_commands(wheel: Path) -> list[tuple[str, str, str]]:
    """A wheel's console scripts: (command, module, function)."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        text = archive.read(names[0]).decode() if names else ""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.read_string(text)
    scripts = dict(parser["console_scripts"]) if parser.has_section("console_scripts") else {}
    return [(command, *target.strip().split(":")) for command, target in sorted(scripts.items())]  # type: ignore[misc]  # "module:function" by the format


def compile_below(root: Path, *folders: str) -> None:
    """Compile every module below absolute folders of the root, with the root's own Python.

    The compiled files don't depend on time stamps, and are never checked against their sources.
    """
    python = _python_of(root)
    options = ["-I", "-m", "compileall", "-q", "-j1", "--invalidation-mode=unchecked-hash"]
    run_inside(root, [f"/usr/bin/{python}", *options, *folders])


def check_libraries(root: Path) -> int:
    """Check that each program and library of the root finds all libraries it asks for; returns their number."""
    loaders = sorted(root.glob("usr/lib*/ld-linux-*.so.*")) or sorted(root.glob("usr/lib/*/ld-linux-*.so.*"))
    if not loaders:
        raise ImageError(f"{root}: no program loader in it")
    loader = f"/{loaders[0].relative_to(root)}"
    found = [path for path in (root / "usr/lib", root / HOME) for path in sorted(path.rglob("*.so*")) if path.is_file()]
    asked = [f"/{path.relative_to(root)}" for path in found if not path.is_symlink() and _is_elf(path)]
    asked = [path for path in asked if "/ld-linux" not in path]
    faults: list[str] = []
    for path in asked:
        try:
            said = run_inside(root, [loader, "--list", path])
        except ImageError as error:
            said = str(error)
        faults += (f"{path}: {line.strip()}" for line in said.splitlines() if "not found" in line or "cannot" in line)
    if faults:
        raise ImageError("libraries are missing in the image:\n" + "\n".join(faults))
    return len(asked)


def run_inside(root: Path, command: list[str]) -> str:
    """Run a program of the root in it, and return its stdout. As root, or as one in a user namespace."""
    prefix = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    environment = {"PATH": f"/{HOME}/bin:/usr/bin", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin") or "chroot"
    return run([*prefix, chroot, root, *command], environment=environment)


def platform_tags(machine: str) -> list[str]:
    """The tags of wheels that fit, best first."""
    tags: list[str] = []
    for minor in range(NEWEST_GLIBC_MINOR, OLDEST_GLIBC_MINOR - 1, -1):
        tags.append(f"manylinux_2_{minor}_{machine}")
        if minor in LEGACY_TAGS:
            tags.append(f"{LEGACY_TAGS[minor]}_{machine}")
    return [*tags, f"linux_{machine}"]


def _pip_install(site: Path, options: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=site.parent, prefix=".installing-") as scratch:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        run([*pip, f"--target={scratch}", *options])
        # pip puts commands there that start this machine's Python.
        shutil.rmtree(Path(scratch) / "bin", ignore_errors=True)
        for path in Path(scratch).iterdir():
            path.rename(site / path.name)
    for stray in site.glob("*.dist-info/direct_url.json"):  # the path of the wheel on this machine
        stray.unlink()
    gone = re.compile(r"(\.\./)*bin/|[^/]+\.dist-info/direct_url\.json,")
    for record in site.glob("*.dist-info/RECORD"):
        lines = [line for line in record.read_text().splitlines() if not gone.match(line)]
        record.write_text("\n".join(lines) + "\n")


def _python_of(root: Path) -> str:
    found = sorted(path.name for path in (root / "usr/bin").glob("python3.[0-9]*") if "-" not in path.name)
    if not found:
        raise ImageError(f"{root}: no Python in it")
    return found[0]


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
