"""What a release does: the workflow has one path, addresses are filled in once, the wheel works by
itself.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.binaries import MINORS
from tests.recorded_data import rows
from tools.image import EPOCH_SECONDS, TARGETS
from tools.release import version
from tools.release.addresses import Addresses, read_addresses
from tools.release.build import build_wheels
from tools.release.checkout import BuildError
from tools.release.fill import changes_of, fill, write_source
from tools.release.packages import package_plugin
from tools.root import ROOT

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
KNOWN: Final = Addresses(
    "https://forge.example.org/me/roost", "https://roost.example.org", "registry.example.org/me"
)
IMAGE: Final = "registry.example.org/me/roost"


def workflow(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    text = path.read_text(encoding="utf-8")
    body: dict[str, Any] = yaml.safe_load(re.sub("^on:", '"on":', text, flags=re.MULTILINE))
    return body


def test_actions_are_pinned_by_commit_with_their_version_beside_it() -> None:
    used = [
        line.strip().removeprefix("- ").removeprefix("uses: ")
        for path in WORKFLOWS
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s+(- )?uses: ", line)
    ]
    assert len(used) > 10
    others = [
        line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    ]
    assert others == ["./.github/workflows/ci.yml"]


def test_only_jobs_that_publish_may_write_anything_and_the_last_is_what_cannot_be_taken_back() -> (
    None
):
    for path in WORKFLOWS:
        body = workflow(path)
        assert body["permissions"] == {"contents": "read"}
        writers = {
            name for name, job in body["jobs"].items() if "write" in str(job.get("permissions"))
        }
        assert writers == ({"publish", "pypi", "forge"} if path.name == "release.yml" else set())
        if path.name == "release.yml":
            needed = {name: job.get("needs") for name, job in body["jobs"].items()}
            assert (needed["publish"], needed["pypi"]) == ("build", "publish")
        elif path.name == "ci.yml":
            assert body["jobs"]["kind"]["strategy"]["matrix"]["minor"] == list(MINORS)


def test_what_workflows_run_is_there() -> None:
    lines = [
        step["run"]
        for path in WORKFLOWS
        for job in workflow(path)["jobs"].values()
        for step in job.get("steps", ())
        if "run" in step
    ]
    scripts = {word for line in lines for word in line.split() if word.startswith("tools/")}
    modules = {name for line in lines for name in re.findall(r"-m (tools[\w.]+)", line)}
    targets = {name for line in lines for name in re.findall(r"^make (\w+)", line)}
    assert len(scripts) > 3
    assert [name for name in scripts if not os.access(ROOT / name, os.X_OK)] == []
    assert modules == {"tools.mutate", "tools.release.version"}
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in targets if f"\n{name}: " not in makefile] == []


def test_the_workflow_builds_once_and_publishes_what_it_built() -> None:
    """One path: no step does again what `make release` and `tools/publish` do."""
    body = workflow(ROOT / ".github/workflows/release.yml")
    told = {
        name: [step["run"] for step in job.get("steps", ()) if "run" in step]
        for name, job in body["jobs"].items()
    }
    release_line, publish_line = "make release ENGINE=buildx PLATFORM=", "tools/publish --sign"
    assert [name for name, lines in told.items() if "make release" in str(lines)] == ["build"]
    assert [name for name, lines in told.items() if "tools/publish" in str(lines)] == ["publish"]
    assert told["build"] == [f"{release_line}linux/amd64,linux/arm64"]
    assert told["publish"][-1] == publish_line
    # A job that runs packages of others holds no right to write.
    assert "permissions" not in body["jobs"]["build"]
    # Later steps attest what the step's outputs name.
    steps = body["jobs"]["publish"]["steps"]
    attested = [step["with"] for step in steps if "attest" in step.get("uses", "")]
    assert [given["subject-name"] for given in attested] == [
        f"${{{{ steps.publish.outputs.{name} }}}}" for name in TARGETS
    ]
    for given, name in zip(attested, TARGETS, strict=True):
        assert given["subject-digest"] == f"${{{{ steps.publish.outputs.{name}-digest }}}}"
    # What the workflow sets are addresses.
    assert {name.removeprefix("ROOST_").lower() for name in body["env"]} == {*Addresses._fields}


def test_the_plugins_manifest_names_an_archive_that_holds_it(tmp_path: Path) -> None:
    here = version.version_of()
    checksums = set()
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        package_plugin(ROOT, folder, here, KNOWN.repository, EPOCH_SECONDS)
        archive = folder / "kubectl-roost.tar.gz"
        checksums.add(hashlib.sha256(archive.read_bytes()).hexdigest())
    manifest = yaml.safe_load((folder / "roost.yaml").read_text(encoding="utf-8"))
    assert manifest["spec"]["version"] == f"v{here}"
    assert (manifest["metadata"]["name"], len(manifest["spec"]["shortDescription"]) <= 50) == (
        "roost",
        True,
    )
    (platform,) = manifest["spec"]["platforms"]
    assert ({platform["sha256"]}, platform["bin"]) == (checksums, "kubectl-roost")
    assert platform["uri"] == f"{KNOWN.repository}/releases/download/v{here}/kubectl-roost.tar.gz"
    with tarfile.open(archive) as packed:
        assert packed.getnames() == [file["from"] for file in platform["files"]]
        assert packed.getmember("kubectl-roost").mode & 0o111 == 0o111


@pytest.mark.parametrize(("variable", "value"), rows("repository/addresses-refused"))
def test_what_is_no_address_is_refused(variable: str, value: str) -> None:
    with pytest.raises(BuildError, match=f"{variable}, or addresses.*found .*, expected "):
        read_addresses({variable: value})
    # Registries' names have no capitals.
    assert (
        read_addresses({"ROOST_REGISTRY": "ghcr.example.org/Me"}).registry == "ghcr.example.org/me"
    )


def test_a_tag_is_compared_with_files_and_change_log(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "lab/pyproject.toml", "chart/Chart.yaml", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    here = version.version_of(tmp_path)
    assert list(version.faults(None)) == []
    (tmp_path / "CHANGELOG.md").write_text(f"## Unreleased\n\n## {here}\n\n### Added\n\n- A.\n")
    assert list(version.faults(f"v{here}", tmp_path)) == []
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs/page.md"
    page.write_text(
        f"```sh\ndocker build --tag roost:{here} .\n```\nkubectl v1.37.2, pause:3.10.1\n"
    )
    (found,) = version.faults("v99.0.0", tmp_path)
    assert f"tag v99.0.0: expected v{here}" in found
    page.write_text("helm install roost oci://registry.example.org/charts/roost --version 98.0.1\n")
    assert f"docs/page.md: found version 98.0.1, expected {here}." in version.faults(None, tmp_path)
    page.unlink()
    readme = tmp_path / "README.md"
    readme.write_text("**Not known.** Version 98.0.1 was tested on no cloud.\n")
    assert list(version.faults(None, tmp_path)) == [
        f"README.md: found version 98.0.1, expected {here}."
    ]
    readme.unlink()
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n### Added\n\n- A.\n")
    expected = [" found no section 0.", " Unreleased has entr"]
    assert [
        fault.partition(":")[2][:20] for fault in version.faults(f"v{here}", tmp_path)
    ] == expected


def test_changes_are_read_from_the_change_log(tmp_path: Path) -> None:
    entries = "### Added\n\n- A [page](docs/a.md),\n  long.\n- B.\n\n### Fixed\n\n- C.\n"
    text = f"# L\n\n## 1.0.0 (2026)\n\n{entries}\n## 0.9.0\n\n### Added\n\n- D.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    section = version.changes_in(tmp_path, "1.0.0")
    assert section == entries.strip()
    assert changes_of(section) == [("added", "A page, long."), ("added", "B."), ("fixed", "C.")]
    assert version.changes_in(tmp_path, "2.0.0") is None


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    (tmp_path / "lab").mkdir()
    for name in ("chart", "pyproject.toml", "lab/pyproject.toml", "CHANGELOG.md"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_addresses_are_filled_in(copied: Path) -> None:
    here = version.version_of()
    (copied / "CHANGELOG.md").write_text(f"## {here}\n\n### Added\n\n- It: all.\n")
    fill(copied, KNOWN)
    values = yaml.safe_load((copied / "chart/values.yaml").read_text(encoding="utf-8"))
    assert values["image"]["name"] == IMAGE
    assert values["recorder"]["image"]["name"] == f"{IMAGE}-lab"
    assert (
        values["monitoring"]["prometheusRule"]["runbooks"]
        == "https://roost.example.org/alerts.html"
    )
    notes = (copied / "chart/templates/NOTES.txt").read_text(encoding="utf-8")
    assert "(https://roost.example.org/install-helm.html, The image)" in notes
    assert "docs/" not in notes
    chart = yaml.safe_load((copied / "chart/Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["home"], chart["sources"]) == (KNOWN.documentation, [KNOWN.repository])
    listed = yaml.safe_load(chart["annotations"]["artifacthub.io/changes"])
    assert listed == [{"kind": "added", "description": "It: all."}]
    for file in ("lab/pyproject.toml", "pyproject.toml"):
        project = tomllib.loads((copied / file).read_text(encoding="utf-8"))["project"]
        assert project["urls"] == {"Source": KNOWN.repository, "Documentation": KNOWN.documentation}
    assert project["scripts"]["roost"] == "roost.__main__:main"


def test_without_addresses_nothing_is_filled_in(copied: Path) -> None:
    (copied / "CHANGELOG.md").write_text("")
    assert fill(copied, Addresses()) == []
    for name in ("chart/values.yaml", "chart/Chart.yaml", "pyproject.toml", "lab/pyproject.toml"):
        assert (copied / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.slow
def test_the_wheel_of_a_release_runs_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """Its dependencies are this environment's: no index is asked."""
    write_source(tmp_path / "source", KNOWN)
    build_wheels(tmp_path / "source", tmp_path)
    wheels = sorted(tmp_path.glob("*.whl"))
    assert [wheel.name.partition("-")[0] for wheel in wheels] == ["roost", "roost_lab"]
    home = tmp_path / "venv"
    venv.create(home, clear=True, with_pip=False)
    packages = next((home / "lib").glob("python*")) / "site-packages"
    (packages / "dependencies.pth").write_text(
        next(path for path in sys.path if path.endswith("site-packages")) + "\n"
    )
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(home / "bin" / "python"),
        "install",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*pip, "--ignore-installed", "--quiet", *map(str, wheels)], check=True, cwd=home)
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(program: str, *arguments: str) -> str:
        command = [str(home / "bin" / program), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=home, env=plain
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    # The chart in the wheel names the released image.
    assert (
        f"{IMAGE}:{version.version_of()}"
        in run("roost", "images", "--kube-version", "v1.37.2").splitlines()
    )
    assert run("roost", "why", "--help").startswith("Usage: roost why")
    assert run("python", "-c", "import roost; print(roost.__path__[0])").startswith(str(packages))
