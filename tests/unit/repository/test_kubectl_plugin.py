"""`kubectl roost`: what the package installs, and what krew would, is a plugin that runs the command line."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.fixtures import require_binary

ROOT = Path(__file__).parents[3]
KREW = ROOT / "tools" / "krew"


def entry_point(folder: Path, name: str) -> None:
    """Write a script as pip writes those of `[project.scripts]`."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][name]
    module, _, function = target.partition(":")
    script = folder / name
    lines = (f"#!{sys.executable}", "import sys", f"from {module} import {function}", f"sys.exit({function}())", "")
    script.write_text("\n".join(lines))
    script.chmod(0o755)


def by_pip(folder: Path) -> None:
    entry_point(folder, "kubectl-roost")


def by_krew(folder: Path) -> None:
    entry_point(folder, "roost")
    (folder / "kubectl-roost").symlink_to(KREW / "kubectl-roost")


@pytest.mark.parametrize("install", [by_pip, by_krew])
def test_kubectl_finds_the_plugin_and_runs_it(install: Callable[[Path], None], tmp_path: Path) -> None:
    kubectl = require_binary("kubectl")
    install(tmp_path)
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(kubectl), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert str(tmp_path / "kubectl-roost") in run("plugin", "list").stdout
    done = run("roost", "validate", "--set", "image.name=registry.example.org/roost")
    assert (done.returncode, done.stderr) == (0, "no faults\n")
    assert run("roost", "nope").returncode == 2


def test_without_the_package_what_krew_installs_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(KREW / "kubectl-roost")], env={"PATH": f"{tmp_path}:/bin"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "isn't installed" in done.stderr) == (127, True)


def test_the_manifest_names_files_that_are_there() -> None:
    manifest: Any = yaml.safe_load((KREW / "roost.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    assert manifest["metadata"]["name"] == "roost"
    assert platform["bin"] == "kubectl-roost"
    for file in platform["files"]:
        assert any((folder / file["from"]).is_file() for folder in (KREW, ROOT))
    assert len(manifest["spec"]["shortDescription"]) <= 50
