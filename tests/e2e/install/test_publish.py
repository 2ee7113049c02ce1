"""A release as an operator gets it: built once, published by `tools/publish` to a real registry on
loopback, and installed from that registry alone.

The reference registry holds all; a real kubelet pulls Roost's images from it by digest, and Helm
the chart. kube-scheduler and the pause image are the harness' own, pushed there as a mirror would.
"""

import base64
import dataclasses
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import venv
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from generator.render.kube_scheduler import SCHEDULER_TAGS
from roost_core.placement.labels import scheduler_name
from tests.builders import merged
from tests.e2e.spawned import spawned_pod
from tests.harness.binaries import NEWEST_MINOR, ensure_binary
from tests.harness.distribution import PASSWORD, USER, DistributionRegistry
from tests.harness.fixtures import nodes_of_registry, or_give_up, require_binary, require_image
from tests.harness.images import make_image, write_archive
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.real_nodes import RealNode
from tests.harness.waiting import wait_until
from tests.parity.renderers import run_helm
from tests.recorded_data import object_of
from tests.releases import small_release, write_record
from tools.image import EPOCH_SECONDS
from tools.registry import Registry
from tools.release import build as release
from tools.release.addresses import Addresses
from tools.release.fill import write_source
from tools.release.oci import Archive
from tools.release.packages import package_chart
from tools.release.version import version_of
from tools.root import ROOT

pytestmark = pytest.mark.e2e

RELEASE: Final = "roost"
SECONDS: Final = 240.0
LAB_IMAGE: Final = "quay.io/me/lab:1"
# One pod a program: what is tried is where they come from.
VALUES: Final[dict[str, Any]] = merged(
    object_of("values-to-install"),
    {part: {"replicas": 1} for part in ("webhook", "controllers", "scheduler")},
)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_image()
    folder = tmp_path_factory.mktemp("release") / "dist"
    release.build(folder, "debian")
    return folder


def call_publish(
    *arguments: str, home: Path | None = None, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """tools/publish by this Python, with the logins that `home` has."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home or "/nonexistent")}
    for name in ("DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "tools.release.publish", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


def test_the_folder_holds_all_and_its_checksums_agree(dist: Path) -> None:
    record = release.read_record(dist)
    version = record.version
    assert {path.name for path in dist.iterdir()} == {
        f"roost-{version}-py3-none-any.whl",
        f"roost_lab-{version}-py3-none-any.whl",
        f"roost-image-{version}.tar",
        f"roost-lab-image-{version}.tar",
        f"roost-{version}.tgz",
        f"roost-chart-{version}.tar",
        f"roost-{version}.spdx.json",
        f"roost-lab-{version}.spdx.json",
        "NOTES.md",
        "SHA256SUMS",
        "release.json",
    }
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=dist, check=True)
    listed = json.loads((dist / f"roost-lab-{version}.spdx.json").read_text())
    names = {package["name"] for package in listed["packages"]}
    assert {"python3", "roost", "roost-lab", "click", "sqlalchemy"} <= names
    for part in record.parts.values():
        assert part.digest in (dist / "NOTES.md").read_text()


def test_wheels_and_chart_are_the_same_each_time(dist: Path, tmp_path: Path) -> None:
    source, again = tmp_path / "source", tmp_path / "dist"
    again.mkdir()
    write_source(source, Addresses())
    release.build_wheels(source, again)
    version = version_of()
    tgz, archive = again / f"roost-{version}.tgz", again / f"roost-chart-{version}.tar"
    package_chart(source / "chart", tgz, archive, EPOCH_SECONDS)
    built = sorted(again.iterdir())
    assert len(built) == 4
    for path in built:
        assert path.read_bytes() == (dist / path.name).read_bytes(), path.name


def test_both_wheels_install_into_an_empty_environment(dist: Path, tmp_path: Path) -> None:
    """With what the index has of their dependencies, in the locked versions."""
    lock = (ROOT / "requirements/demo.txt").read_text()
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(re.findall(r"^[\w.-]+==[^ ]+", lock, re.MULTILINE)))
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    how = ["--no-compile", "--disable-pip-version-check", f"--constraint={constraints}"]
    wheels = sorted(map(str, dist.glob("*.whl")))
    installed = subprocess.run([*pip, *how, *wheels], capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def roost(*arguments: str) -> str:
        command = [str(home / "bin/roost"), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=home, env=plain
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    assert roost("version").strip() == release.read_record(dist).version
    # A command of each package.
    commands = roost("--help")
    assert "render" in commands
    assert "rehearse" in commands
    rendered = roost("render", "--release", "roost", "-n", "hub", "--kube-version", "v1.37.2")
    assert "kind: MutatingWebhookConfiguration" in rendered
    assert roost("simulate", "--help").startswith("Usage: roost simulate")


def test_a_release_is_installed_from_its_registry_alone(dist: Path, tmp_path: Path) -> None:
    record = release.read_record(dist)
    helm = require_binary("helm")
    with or_give_up(), DistributionRegistry() as registry:
        push_others(registry, tmp_path)
        published = call_publish(f"{registry.host}/me", "--dist", str(dist))
        assert published.returncode == 0, published.stderr
        image_values = tmp_path / "image.yaml"
        image_values.write_text(published.stdout)
        values = tmp_path / "values.yaml"
        values.write_text(yaml.safe_dump(VALUES))
        chart = f"oci://{registry.host}/me/charts/roost"
        # As it is told to people.
        assert f"helm install roost {chart} --version {record.version}" in published.stderr
        labels = {"purpose": "user", "hub.jupyter.org/node-purpose": "user"}
        with nodes_of_registry(registry, {"node-a": labels}) as (node,):
            namespace = node.cluster.create_namespace()
            run_helm(
                helm,
                *("install", RELEASE, chart, f"--version={record.version}", "--plain-http"),
                *(f"--values={values}", f"--values={image_values}"),
                *(f"--namespace={namespace}", "--wait", "--timeout=8m"),
                kubeconfig=node.cluster.kubeconfig,
            )
            check_images(node, namespace, f"{registry.host}/me/roost", record)
            check_doctor(node, namespace, values, image_values)
            check_user(node, namespace)
            check_lab(node, namespace, f"{registry.host}/me/roost-lab", record)


def push_others(registry: DistributionRegistry, folder: Path) -> None:
    """What isn't Roost's: kube-scheduler, the pause image, and a user's images."""
    tag = SCHEDULER_TAGS[NEWEST_MINOR]
    in_pod: dict[str, Any] = {
        "files": {"/in-pod": ensure_binary("in-pod")},
        "entrypoint": ["/in-pod"],
    }
    pause = yaml.safe_load((ROOT / "chart/values.yaml").read_text())["placeholder"]["image"]["tag"]
    scheduler = ensure_binary("kube-scheduler")
    others: dict[str, dict[str, Any]] = {
        f"kube-scheduler:{tag}": {"files": {"/usr/local/bin/kube-scheduler": scheduler}},
        f"pause:{pause}": in_pod,
        "me/lab:1": in_pod,
        "me/data:1": {"size_bytes": 1000},
    }
    for name, how in others.items():
        repository, _, tag = name.rpartition(":")
        path = folder / "other.tar"
        write_archive(make_image(**how), name, path)
        with Archive(path) as archive:
            Registry(registry.host, environment={}).push(archive, repository, tag)


def check_images(node: RealNode, namespace: str, name: str, record: release.Record) -> None:
    """Every container of Roost's own runs the image of the release, pulled by its digest."""
    reference = f"{name}@{record.parts['roost'].digest}"
    pods = node.cluster.api.list(f"/api/v1/namespaces/{namespace}/pods")
    own = [
        (container["image"], status["imageID"])
        for pod in pods
        for container, status in zip(
            pod["spec"]["containers"], pod["status"]["containerStatuses"], strict=True
        )
        if "/me/" in container["image"]
    ]
    assert len(own) >= 2, pods
    assert set(own) == {(reference, reference)}
    assert reference in node.images()


def check_doctor(node: RealNode, namespace: str, *values: Path) -> None:
    files = [argument for path in values for argument in ("-f", str(path))]
    where = ["--release", RELEASE, "-n", namespace, "--kubeconfig", str(node.cluster.kubeconfig)]

    def ask() -> tuple[int, str]:
        command = [sys.executable, "-m", "roost", "doctor", *files, *where]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def is_clean() -> bool:
        code, said = ask()
        *checks, last = said.splitlines()
        return (code, last) == (0, "Users aren't affected.") and all(
            line.startswith("ok ") for line in checks
        )

    wait_until(is_clean, SECONDS, "doctor to find nothing wrong", explain=lambda: str(ask()))


def check_user(node: RealNode, namespace: str) -> None:
    """A first user, placed by Roost."""
    traits = {"namespace": namespace, "node_selector": {"purpose": "user"}, "uid": 1000}
    body = spawned_pod("ada", node.cluster.kubeconfig, image=LAB_IMAGE, **traits)
    stored = node.cluster.create_pod(body, namespace)
    assert stored["spec"]["schedulerName"] == scheduler_name(RELEASE, namespace, "user")
    node.cluster.wait_for_pod_phase(stored["metadata"]["name"], namespace, "Running", SECONDS)


def check_lab(node: RealNode, namespace: str, name: str, record: release.Record) -> None:
    """The recorder's image runs by its digest, too."""
    reference = f"{name}@{record.parts['roost-lab'].digest}"
    container = {"name": "c", "image": reference, "args": ["record", "--help"]}
    spec = {"containers": [container], "restartPolicy": "Never"}
    node.cluster.create_pod({"metadata": {"name": "lab"}, "spec": spec}, namespace)
    node.cluster.wait_for_pod_phase("lab", namespace, "Succeeded", SECONDS)


# What goes wrong. A small release stands in: its archives are of nothing.


@pytest.fixture
def small(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    small_release(folder)
    return folder


def keep_login(home: Path, host: str, settings: dict[str, Any]) -> Path:
    (home / ".docker").mkdir(parents=True, exist_ok=True)
    (home / ".docker/config.json").write_text(json.dumps(settings))
    return home


def refused(done: subprocess.CompletedProcess[str], *said: str) -> None:
    """Exit code 1, nothing on stdout, a line that names it, no traceback and no password."""
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert [text for text in said if text not in last] == []
    assert "Traceback" not in done.stderr
    assert PASSWORD not in done.stderr


def test_a_registry_that_asks_who_pushes(small: Path, tmp_path: Path) -> None:
    with or_give_up(), DistributionRegistry(asks=True) as registry:
        given = (f"{registry.host}/me", "--dist", str(small))
        nobody = call_publish(*given)
        refused(nobody, f"{registry.host}/me/roost:", f"docker login {registry.host}")

        def auth(password: str) -> dict[str, Any]:
            encoded = base64.b64encode(f"{USER}:{password}".encode()).decode()
            return {"auths": {registry.host: {"auth": encoded}}}

        home = keep_login(tmp_path / "home", registry.host, auth("guessed"))
        refused(call_publish(*given, home=home), f"refuses {USER}", "config.json", "Log in")
        keep_login(home, registry.host, auth(PASSWORD))
        published = call_publish(*given, home=home)
        assert published.returncode == 0, published.stderr
        record = release.read_record(small)
        assert yaml.safe_load(published.stdout) == {
            "image": {"name": f"{registry.host}/me/roost", "digest": record.parts["roost"].digest},
            "recorder": {
                "image": {
                    "name": f"{registry.host}/me/roost-lab",
                    "digest": record.parts["roost-lab"].digest,
                }
            },
        }
        # Again: all is there already.
        assert call_publish(*given, home=home).stdout == published.stdout

        helper = tmp_path / "docker-credential-mine"
        login = json.dumps({"Username": USER, "Secret": PASSWORD})
        helper.write_text(f"#!/bin/sh\n[ \"$(cat)\" = {registry.host} ] && echo '{login}'\n")
        helper.chmod(0o755)
        keep_login(home, registry.host, {"credHelpers": {registry.host: "mine"}})
        refused(call_publish(*given, home=home), "docker-credential-mine", "Install it")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
            assert call_publish(*given, home=home).stdout == published.stdout


def test_what_is_no_registry_is_named_before_anything_is_built(small: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    with ReservedPort() as port:
        nowhere = call_publish(f"{LOOPBACK}:{port.number}/me", "--dist", str(absent))
    refused(nowhere, f"{LOOPBACK}:{port.number}: no registry answers", "Check host and port")

    class Page(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((LOOPBACK, 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host = f"{LOOPBACK}:{server.server_address[1]}"
        other = call_publish(f"{host}/me", "--dist", str(absent))
        server.shutdown()
    refused(other, f"{host}: it answers, but not as a registry", "Check host and port")
    assert not absent.exists()


def test_a_folder_of_another_commit_or_of_changed_files_is_not_published(small: Path) -> None:
    record = release.read_record(small)
    with or_give_up(), DistributionRegistry() as registry:
        given = (f"{registry.host}/me", "--dist", str(small))
        write_record(small, dataclasses.replace(record, commit="0" * 40))
        refused(call_publish(*given), str(small), "commit 000000000000", "make release")
        write_record(small, dataclasses.replace(record, changes="others"))
        refused(call_publish(*given), "have changed since it was built", "make release")
        write_record(small, record)
        # A byte of an image that isn't as it was built.
        path = small / record.parts["roost-lab"].file
        path.write_bytes(path.read_bytes().replace(b'"os": "linux"', b'"os": "linus"'))
        refused(call_publish(*given), path.name, "make release")
        path.unlink()
        refused(call_publish(*given), path.name, "make release")
        (small / release.RECORD).write_text("{")
        refused(call_publish(*given), release.RECORD, "make release")
