"""Roost's image: a valid layout, the places that the Dockerfile promises, and a pod of it on a real node."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.binaries import HarnessUnavailableError
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import give_up
from tests.harness.real_nodes import RealNode, require_real_nodes
from tests.harness.registry import RealRegistry
from tests.harness.waiting import wait_until
from tools import build_image
from tools.oci.debian import read_dependencies
from tools.oci.errors import ImageError
from tools.oci.layers import list_paths, write_layer
from tools.oci.layout import Image, read_layout, write_layout
from tools.oci.registry import push

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[3]
USER = 65532
READ_ONLY = (
    "mount --bind {root} {root} && mount -o remount,bind,ro {root} && exec chroot --userspec={user}:{user} {root}"
)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Roost's image as it would be made now, with the layers that this machine's cache has."""
    return make_or_give_up(tmp_path_factory.mktemp("image") / "layout")


def make_or_give_up(folder: Path) -> Image:
    missing = [
        program for program in ("apt-get", "apt-cache", "dpkg-deb", "tar", "go") if shutil.which(program) is None
    ]
    if missing or os.geteuid() != 0:
        wanted = f"{', '.join(missing)}" if missing else "root"
        give_up(HarnessUnavailableError(f"the image is made on Debian, by root, with Go; this lacks {wanted}"))
    return make(folder)


def make(folder: Path) -> Image:
    made = subprocess.run(
        [sys.executable, "-m", "tools.build_image", "--output", folder, "--name", "roost:test"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    image = read_layout(folder)
    assert made.stdout.split() == [image.digest]
    return image


@pytest.fixture(scope="module")
def root(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's layers, unpacked over each other as root."""
    folder = tmp_path_factory.mktemp("root")
    for layer in image.manifest["layers"]:
        subprocess.run(["tar", "-xzpf", image.blob(layer["digest"]), "-C", folder], check=True)
    folder.chmod(0o755)
    return folder


def inside(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the root, which is read-only, as the image's user and with its environment."""
    script = f'{READ_ONLY.format(root=root, user=USER)} "$@"'
    environment = dict(entry.split("=", 1) for entry in build_image.RUNTIME["Env"])
    arguments = ["unshare", "--mount", "sh", "-c", script, "sh", *command]
    return subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PATH": f"{environment['PATH']}:{os.environ['PATH']}"},
    )


@pytest.mark.e2e
def test_every_blob_is_what_its_descriptor_says(image: Image) -> None:
    manifest = image.manifest
    for blob in (manifest["config"], *manifest["layers"]):
        content = image.blob(blob["digest"]).read_bytes()
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == blob["digest"]
        assert len(content) == blob["size"]
    config = json.loads(image.blob(manifest["config"]["digest"]).read_bytes())
    unpacked = [gzip.decompress(image.blob(layer["digest"]).read_bytes()) for layer in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in unpacked]
    assert len(config["history"]) == len(unpacked)


@pytest.mark.e2e
def test_the_same_tree_makes_the_same_image(image: Image, tmp_path: Path) -> None:
    assert make(tmp_path / "layout").digest == image.digest


@pytest.mark.e2e
def test_the_archive_holds_the_layout_and_what_docker_load_reads(image: Image) -> None:
    with tarfile.open(image.folder.with_name(f"{image.folder.name}.tar")) as archive:
        names = set(archive.getnames())
        manifest_file = archive.extractfile("manifest.json")
        assert manifest_file is not None
        (entry,) = json.load(manifest_file)
    assert entry["RepoTags"] == ["roost:test"]
    assert {entry["Config"], *entry["Layers"], "index.json", "oci-layout"} <= names
    on_disk = {path.relative_to(image.folder).as_posix() for path in image.folder.rglob("*") if path.is_file()}
    assert names == on_disk


@pytest.mark.e2e
def test_all_is_roots_and_nothing_is_left_to_compile(image: Image) -> None:
    sources: set[str] = set()
    compiled: set[str] = set()
    for layer in image.manifest["layers"]:
        with tarfile.open(image.blob(layer["digest"])) as tar:
            for member in tar:
                assert (member.uid, member.gid) == (0, 0), member.name
                assert member.isdir() or member.issym() or not member.mode & 0o022, member.name
                if member.name.endswith(".py") and "/python3" in member.name:
                    sources.add(member.name)
                elif member.name.endswith(".pyc"):
                    folder, _, name = member.name.rpartition("/__pycache__/")
                    compiled.add(f"{folder}/{name.split('.')[0]}.py")
    assert len(sources) > 1000
    assert not sources - compiled


@pytest.mark.e2e
def test_roost_runs_as_a_user_without_rights_in_a_root_that_is_read_only(root: Path) -> None:
    told = inside(root, "roost", "--version")
    assert told.returncode == 0, told.stderr
    assert re.search(r"\d+\.\d+", told.stdout)
    rendered = inside(root, "roost", "render", "--release", "hub", "--namespace", "ns")
    assert rendered.returncode == 0, rendered.stderr
    assert "kind: Deployment" in rendered.stdout
    program = "import os, sys; print(os.getuid(), os.getgid(), os.access('/', os.W_OK), sys.prefix)"
    assert inside(root, "python", "-c", program).stdout.split() == [str(USER), str(USER), "False", "/opt/roost"]


@pytest.mark.e2e
def test_every_module_of_roost_and_every_library_it_needs_loads(root: Path) -> None:
    program = """
import importlib, importlib.metadata, pkgutil, zoneinfo
for name in ("cryptography.hazmat.bindings._rust", "httptools", "orjson", "uvloop", "yaml", "sqlite3", "ssl"):
    importlib.import_module(name)
# A dependency that isn't locked fails here, in whichever module.
for name in ("roost", "roost_core", "generator", "webhook"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        # The simulator is no program of the image: its packages aren't in it.
        if not module.name.endswith("__main__") and not any(
            part in module.name for part in (".migrations", "roost.simulator", "commands.simulate")
        ):
            importlib.import_module(module.name)
zoneinfo.ZoneInfo("Europe/Berlin")
print(importlib.metadata.version("roost"))
"""
    told = inside(root, "python", "-W", "error", "-c", program)
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip()


@pytest.mark.e2e
def test_the_pause_installs_itself_waits_and_goes_at_sigterm(root: Path, tmp_path: Path) -> None:
    pause, copy = root / build_image.PAUSE, tmp_path / "pause"
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


@pytest.mark.e2e
def test_a_pod_of_the_pushed_image_runs_on_a_real_node(image: Image) -> None:
    try:
        require_real_nodes()
        with RealRegistry() as registry, ControlPlane() as cluster:
            pushed = push(image, f"http://{registry.push_host}/hub/roost:test")
            assert pushed == f"{registry.push_host}/hub/roost@{image.digest}"
            # Again: every layer is there already.
            assert push(image, f"http://{registry.push_host}/hub/roost:again") == pushed
            with RealNode(cluster, "node-a", registry):
                cluster.create_pod(strict_pod(f"{registry.host}/hub/roost:test", ["roost", "--version"]), "default")
                cluster.wait_for_pod_phase("roost", "default", "Succeeded", 120)
                reference = f"{registry.host}/hub/roost:test"
                cluster.create_pod(strict_pod(reference, [f"/{build_image.PAUSE}"], name="pause"), "default")
                cluster.wait_for_pod_phase("pause", "default", "Running", 120)
                cluster.api.delete("/api/v1/namespaces/default/pods/pause")
                wait_until(
                    lambda: cluster.api.find("/api/v1/namespaces/default/pods/pause") is None, 60, "the pause to go"
                )
    except HarnessUnavailableError as error:
        give_up(error)


def strict_pod(image: str, command: list[str], name: str = "roost") -> dict[str, Any]:
    """A pod as the strictest cluster wants it; the user comes from the image."""
    rights = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    container = {"name": "main", "image": image, "command": command, "securityContext": rights}
    spec = {"nodeName": "node-a", "restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"name": name}, "spec": spec}


def test_the_dockerfile_makes_the_same_places_user_and_settings() -> None:
    last_stage = (REPOSITORY / "Dockerfile").read_text().rpartition("\nFROM ")[2].replace("\\\n", " ")
    runtime = build_image.RUNTIME
    assert re.findall(r"^USER (\S+)", last_stage, re.MULTILINE) == [runtime["User"]]
    assert [json.loads(found) for found in re.findall(r"^ENTRYPOINT (.+)", last_stage, re.MULTILINE)] == [
        runtime["Entrypoint"]
    ]
    labels = dict(re.findall(r'(org\.opencontainers\.\S+)="([^"]+)"', last_stage))
    assert labels == runtime["Labels"]
    (settings,) = re.findall(r"^ENV (.+)", last_stage, re.MULTILINE)
    path, *others = settings.split()
    assert others == runtime["Env"][1:]
    assert runtime["Env"][0].startswith(path.removesuffix("$PATH"))
    assert f"COPY --from=pause /pause /{build_image.PAUSE}\n" in last_stage
    assert "COPY --from=build /opt/roost /opt/roost\n" in last_stage


def test_a_layer_is_the_same_bytes_whenever_and_by_whomever_it_is_written(tmp_path: Path) -> None:
    def write(name: str, moment: float) -> str:
        root = tmp_path / name
        (root / "folder").mkdir(parents=True)
        (root / "folder" / "file").write_text("content")
        (root / "folder" / "link").symlink_to("/absolute")
        for path in (root / "folder" / "file", root / "folder"):
            os.utime(path, (moment, moment))
        return write_layer(root, list_paths(root), tmp_path / f"{name}.tar.gz", "test").digest

    assert write("once", 1_000_000_000) == write("again", 1_700_000_000)


def test_of_alternative_dependencies_the_first_is_taken_and_virtual_ones_are_left() -> None:
    printed = (
        "python3.11\n  Depends: python3.11-minimal\n |Depends: media-types\n  Depends: mime-support\n"
        "tzdata\n |Depends: debconf\n  Depends: <debconf-2.0>\n    cdebconf\nlibx\n  PreDepends: libc6:amd64\n"
    )
    assert read_dependencies(printed) == {
        "python3.11": ["python3.11-minimal", "media-types"],
        "tzdata": ["debconf"],
        "libx": ["libc6"],
    }


@pytest.fixture
def refusing_port() -> Iterator[int]:
    """A port on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_a_push_that_cannot_work_says_why(tmp_path: Path, refusing_port: int) -> None:
    image = write_layout(tmp_path / "layout", [], {}, "empty:1")
    with pytest.raises(ImageError, match="expected http://HOST:PORT/NAME:TAG"):
        push(image, "registry.test/roost")
    with pytest.raises(ImageError, match="Is a registry there"):
        push(image, f"http://127.0.0.1:{refusing_port}/roost:1")
