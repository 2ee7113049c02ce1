"""The images of Roost and roost-lab: what they hold, and how their programs run."""

import io
import json
import os
import re
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.fixtures import require_image
from tests.harness.images import Image, read_archive
from tools.image import LAB, build_images

pytestmark = pytest.mark.e2e

REPOSITORY = Path(__file__).resolve().parents[3]
USER = 65532
PAUSE = "usr/local/lib/roost/pause"
# What only the Kubernetes client's asynchronous half needs, which no image has.
ASYNCHRONOUS = {
    *("aiohappyeyeballs", "aiohttp", "aiohttp-retry", "aiosignal"),
    *("frozenlist", "multidict", "propcache", "yarl"),
}
PACKAGES = ("roost", "roost_core", "generator", "webhook")
# A dependency that isn't locked fails here, in whichever module.
LOADED = """
import importlib, importlib.metadata, pkgutil, zoneinfo
compiled = "cryptography.hazmat.bindings._rust httptools orjson uvloop yaml sqlite3 ssl"
for name in compiled.split():
    importlib.import_module(name)
for name in {packages}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        # Migrations are the database's.
        if not module.name.endswith("__main__") and ".migrations" not in module.name:
            importlib.import_module(module.name)
zoneinfo.ZoneInfo("Europe/Berlin")
print(importlib.metadata.version("roost"))
"""
READ_ONLY = (
    "mount --bind {root} {root} && mount -o remount,bind,ro {root} && exec chroot"
    " --userspec={user}:{user} {root}"
)


@pytest.fixture(scope="module")
def image() -> Image:
    return require_image()


@pytest.fixture(scope="module")
def config(image: Image) -> dict[str, Any]:
    """What the image says of how it runs."""
    settings: dict[str, Any] = json.loads(image.config)["config"]
    return settings


@pytest.fixture(scope="module")
def root(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's layers, unpacked over each other as root."""
    folder = tmp_path_factory.mktemp("root")
    for layer in image.layers:
        subprocess.run(["tar", "-xzpf", "-", "-C", folder], input=layer, check=True)
    folder.chmod(0o755)
    return folder


def inside(root: Path, config: dict[str, Any], *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the root, which is read-only, as the image's user and with its
    environment.
    """
    script = f'{READ_ONLY.format(root=root, user=USER)} "$@"'
    environment = dict(entry.split("=", 1) for entry in config["Env"])
    arguments = ["unshare", "--mount", "sh", "-c", script, "sh", *command]
    environment["PATH"] += f":{os.environ['PATH']}"
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)


def test_its_user_is_a_number_and_its_settings_are_the_dockerfiles(config: dict[str, Any]) -> None:
    assert config["User"] == f"{USER}:{USER}"
    assert config["Entrypoint"] == ["roost"]
    path, *others = config["Env"]
    assert path.startswith("PATH=/opt/roost/bin:")
    # Nothing of the machine that built it.
    assert others == ["PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"]
    assert config["Labels"]["org.opencontainers.image.title"] == "roost"


def test_all_is_roots_and_nothing_is_left_to_compile(image: Image) -> None:
    sources: set[str] = set()
    compiled: set[str] = set()
    for layer in image.layers[1:]:  # the first is the base
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            for member in tar:
                assert (member.uid, member.gid) == (0, 0), member.name
                assert member.isdir() or member.issym() or not member.mode & 0o022, member.name
                # Nor does the build leave traces elsewhere.
                assert "/kubernetes/aio" not in member.name
                if not member.isdir():
                    assert member.name == PAUSE or member.name.startswith("opt/roost/"), member.name
                if member.name.endswith(".py") and "/python3" in member.name:
                    sources.add(member.name)
                elif member.name.endswith(".pyc"):
                    folder, _, name = member.name.rpartition("/__pycache__/")
                    compiled.add(f"{folder}/{name.split('.')[0]}.py")
    assert len(sources) > 1000
    assert not sources - compiled


def test_it_holds_the_locked_packages_and_roost_only(root: Path, config: dict[str, Any]) -> None:
    program = "import importlib.metadata as m; print(*(one.name for one in m.distributions()))"
    printed = inside(root, config, "python", "-c", program)
    assert printed.returncode == 0, printed.stderr
    assert canonical(printed.stdout.split()) == canonical(["roost", *locked("run")]) - ASYNCHRONOUS


def locked(name: str) -> list[str]:
    """The packages of a lock, but for those of Windows."""
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text()
    return [
        found
        for found, marker in re.findall(r"^([\w.-]+)==([^\n]*)", text, re.MULTILINE)
        if "win32" not in marker
    ]


def test_the_labs_image_adds_a_layer_with_its_packages_alone(
    image: Image, root: Path, config: dict[str, Any], tmp_path: Path
) -> None:
    lab = require_image(LAB)
    assert lab.layers[: len(image.layers)] == image.layers
    settings = json.loads(lab.config)["config"]
    # Devices as devices: /dev/full read as a file has no end.
    subprocess.run(["cp", "-a", root, tmp_path / "root"], check=True)
    for layer in lab.layers[len(image.layers) :]:
        subprocess.run(["tar", "-xzpf", "-", "-C", tmp_path / "root"], input=layer, check=True)
    program = (
        "import importlib.metadata as m; print(*(one.name for one in"
        " m.distributions(path=['/opt/roost-lab'])))"
    )
    printed = inside(tmp_path / "root", settings, "python", "-c", program)
    assert canonical(printed.stdout.split()) == canonical(["roost-lab", *locked("lab")])
    for command in ("record", "why", "report", "records", "top", "view", "simulate"):
        told = inside(tmp_path / "root", settings, "roost", command, "--help")
        assert (told.returncode, told.stderr) == (0, ""), command
    assert inside(root, config, "roost", "record").stderr.endswith(
        "pip install ./lab, or its wheel.\n"
    )
    loaded = inside(
        tmp_path / "root",
        settings,
        "python",
        "-W",
        "error",
        "-c",
        LOADED.format(packages=("roost_lab",)),
    )
    assert loaded.returncode == 0, loaded.stderr


def canonical(names: list[str]) -> set[str]:
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def test_roost_runs_as_a_user_without_rights_in_a_root_that_is_read_only(
    root: Path, config: dict[str, Any]
) -> None:
    version = inside(root, config, "roost", "--version")
    assert version.returncode == 0, version.stderr
    assert re.search(r"\d+\.\d+", version.stdout)
    rendered = inside(root, config, "roost", "render", "--release", "hub", "--namespace", "ns")
    assert rendered.returncode == 0, rendered.stderr
    assert "kind: Deployment" in rendered.stdout
    program = "import os, sys; print(os.getuid(), os.getgid(), os.access('/', os.W_OK), sys.prefix)"
    assert inside(root, config, "python", "-c", program).stdout.split() == [
        str(USER),
        str(USER),
        "False",
        "/opt/roost",
    ]


def test_every_module_of_roost_and_every_library_it_needs_loads(
    root: Path, config: dict[str, Any]
) -> None:
    loaded = inside(root, config, "python", "-W", "error", "-c", LOADED.format(packages=PACKAGES))
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.strip()


@pytest.mark.minors
def test_two_builds_of_the_same_files_are_the_same_images() -> None:
    """It takes minutes: everything is built, nothing is taken from a cache."""
    require_image()
    again = build_images(REPOSITORY, again=True)
    for target, archive in again.items():
        assert read_archive(archive).digest == require_image(target).digest, target


def test_the_pause_installs_itself_waits_and_goes_at_sigterm(root: Path, tmp_path: Path) -> None:
    pause, copy = root / PAUSE, tmp_path / "pause"
    assert subprocess.run([pause, "exit"], check=False).returncode == 0
    assert subprocess.run([pause, "install", copy], check=False).returncode == 0
    assert copy.read_bytes() == pause.read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o755
    # Static: it starts where there is nothing else.
    with subprocess.Popen(["chroot", tmp_path, "/pause"]) as waiting:
        time.sleep(0.3)
        assert waiting.poll() is None
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(10) == 0
    refused = subprocess.run([pause, "instal", copy], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "usage: pause" in refused.stderr
