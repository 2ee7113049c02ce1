"""The images of Roost and roost-lab: what they hold, and how their programs run."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import require_binary, require_image
from tests.harness.images import Image, read_archive
from tests.releases import PACKAGES
from tools.image import LAB, build_images
from tools.root import ROOT

pytestmark = pytest.mark.e2e

WITHOUT_PYTHON = ROOT / "docs/how-to/without-python.md"
USER = 65532
PAUSE = "usr/local/lib/roost/pause"
# What only the Kubernetes client's asynchronous half needs, which no image has.
ASYNCHRONOUS = {
    *("aiohappyeyeballs", "aiohttp", "aiohttp-retry", "aiosignal"),
    *("frozenlist", "multidict", "propcache", "yarl"),
}
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
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return [
        found
        for found, marker in re.findall(r"^([\w.-]+)==([^\n]*)", text, re.MULTILINE)
        if "win32" not in marker
    ]


@pytest.fixture(scope="module")
def lab() -> Image:
    return require_image(LAB)


@pytest.fixture(scope="module")
def lab_root(
    image: Image, lab: Image, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """As `root`, of the lab's image."""
    folder = tmp_path_factory.mktemp("lab") / "root"
    # Devices as devices: /dev/full read as a file has no end.
    subprocess.run(["cp", "-a", root, folder], check=True)
    for layer in lab.layers[len(image.layers) :]:
        subprocess.run(["tar", "-xzpf", "-", "-C", folder], input=layer, check=True)
    return folder


def test_the_labs_image_adds_a_layer_with_its_packages_alone(
    image: Image, lab: Image, root: Path, lab_root: Path, config: dict[str, Any]
) -> None:
    assert lab.layers[: len(image.layers)] == image.layers
    settings = json.loads(lab.config)["config"]
    program = (
        "import importlib.metadata as m; print(*(one.name for one in"
        " m.distributions(path=['/opt/roost-lab'])))"
    )
    printed = inside(lab_root, settings, "python", "-c", program)
    assert canonical(printed.stdout.split()) == canonical(["roost-lab", *locked("lab")])
    for command in ("record", "why", "report", "records", "top", "view", "simulate"):
        told = inside(lab_root, settings, "roost", command, "--help")
        assert (told.returncode, told.stderr) == (0, ""), command
    assert inside(root, config, "roost", "record").stderr.endswith(
        "pip install ./lab, or its wheel.\n"
    )
    loaded = inside(
        lab_root, settings, "python", "-W", "error", "-c", LOADED.format(packages=("roost_lab",))
    )
    assert loaded.returncode == 0, loaded.stderr


def test_the_labs_image_asks_a_cluster_as_the_page_without_python_has_it(
    control_plane: ControlPlane, namespace: str, lab: Image, lab_root: Path, tmp_path: Path
) -> None:
    """In the folder that the shell stands in, as its user, by `kubectl proxy`."""
    kubectl = require_binary("kubectl")
    work = tmp_path / "work"
    work.mkdir()
    (lab_root / "work").mkdir()
    # As Docker writes it.
    (lab_root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
    page = WITHOUT_PYTHON.read_text(encoding="utf-8")
    [kubeconfig] = re.findall(r"--env KUBECONFIG=(\S+)", page)
    settings = json.loads(lab.config)["config"]
    environment = dict(entry.split("=", 1) for entry in settings["Env"])
    environment["PATH"] += f":{os.environ['PATH']}"
    # HOME: Docker's, of a user whom the image doesn't know.
    environment |= {"KUBECONFIG": kubeconfig, "HOME": "/"}
    stranger = f"{USER + 1}:{USER + 1}"
    script = (
        f"mount --bind {work} {lab_root}/work && exec chroot --userspec={stranger} {lab_root}"
        """ sh -c 'cd /work && exec roost "$@"' sh "$@\""""
    )

    def roost(*arguments: str) -> str:
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        return done.stdout + done.stderr

    proxy = [str(kubectl), f"--kubeconfig={control_plane.kubeconfig}", "proxy", "--port=0"]
    with subprocess.Popen(proxy, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            port = serving.stdout.readline().rpartition(":")[2].strip()
            page = page.replace("localhost:8001", f"localhost:{port}")
            for line in re.findall(r"^kubectl (config .*)$", page, re.MULTILINE):
                subprocess.run([kubectl, *shlex.split(line)], cwd=work, check=True)
            (work / kubeconfig).chmod(0o644)
            release = ("--release", "roost", "--namespace", namespace)
            told = roost("doctor", "--set", "image.name=a/b", *release, "--before-install")
            assert "The cluster takes this install." in told
            lecture = ("120", "Mon 9:00", "--zone", "Europe/Berlin")
            told = roost("book", *lecture, "--namespace", namespace)
            assert f"found no release roost in namespace {namespace}" in told
        finally:
            serving.terminate()


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
    again = build_images(ROOT, again=True)
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
