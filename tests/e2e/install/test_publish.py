"""`tools/publish` and a real registry on loopback: what it takes, and what it refuses."""

import base64
import dataclasses
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.distribution import PASSWORD, USER, DistributionRegistry
from tests.harness.fixtures import or_give_up
from tests.harness.images import make_image, write_archive
from tests.harness.ports import LOOPBACK, ReservedPort
from tools.release import build as release
from tools.release.oci import Archive
from tools.release.publish import REPOSITORIES
from tools.release.version import version_of

pytestmark = pytest.mark.e2e

ROOT: Final = Path(__file__).resolve().parents[3]


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


# What goes wrong. A small release stands in: its archives are of nothing.


@pytest.fixture
def small(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    folder.mkdir()
    parts = {}
    for name in REPOSITORIES:
        path = folder / f"{name}.tar"
        write_archive(make_image(size_bytes=1000), name, path)
        with Archive(path) as archive:
            parts[name] = release.Part(path.name, archive.root.digest)
    record = release.Record(version_of(), *release.checkout_state(), parts)
    write_record(folder, record)
    return folder


def write_record(folder: Path, record: release.Record) -> None:
    (folder / release.RECORD).write_text(json.dumps(dataclasses.asdict(record)))


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
