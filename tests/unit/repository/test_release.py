"""What a release does: workflows call scripts that exist, addresses are filled in once, the wheel
works by itself.
"""

import hashlib
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
from tools.release import addresses, version
from tools.release.addresses import AddressError, Addresses, read_addresses
from tools.release.fill import changes_of, fill

ROOT: Final = Path(__file__).resolve().parents[3]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
KNOWN: Final = Addresses(
    "https://forge.example.org/me/roost",
    "https://roost.example.org",
    "registry.example.org/me/roost",
    "oci://registry.example.org/charts",
)
# What a workflow sets.
ENVIRONMENT: Final = {
    **{f"ROOST_{name.upper()}": value for name, value in KNOWN._asdict().items()},
    "ROOST_DIGEST": "sha256:00",
    "ROOST_LAB_DIGEST": "sha256:01",
    "ROOST_SIGN": "true",
    "GITHUB_REF_NAME": f"v{version.version_of()}",
    "REGISTRY_USER": "me",
    "REGISTRY_TOKEN": "not to be printed",
}


def workflow(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    text = path.read_text(encoding="utf-8")
    body: dict[str, Any] = yaml.safe_load(re.sub("^on:", '"on":', text, flags=re.MULTILINE))
    return body


def call(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **ENVIRONMENT, **more, "PYTHONPATH": str(ROOT)}
    environment.pop("GITHUB_OUTPUT", None)
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )


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
        assert writers == (
            {"image", "chart", "pypi", "forge"} if path.name == "release.yml" else set()
        )
        if path.name == "release.yml":
            assert {"image", "chart"} <= set(body["jobs"]["pypi"]["needs"])
        elif path.name == "ci.yml":
            assert body["jobs"]["kind"]["strategy"]["matrix"]["minor"] == list(MINORS)


PINNED: Final = ("roost@sha256:00", "roost-lab@sha256:01")
DRY_RUNS: Final = {
    "login.sh": ("docker login registry.example.org --username me --password-stdin",),
    "image.sh": tuple(
        f"--tag registry.example.org/me/{name}:{version.version_of()}"
        for name in ("roost", "roost-lab")
    ),
    "sbom.sh": tuple(f"syft scan registry:registry.example.org/me/{at}" for at in PINNED),
    "sign.sh": tuple(f"cosign sign --yes registry.example.org/me/{at}" for at in PINNED),
    "chart.sh": (f"/roost-{version.version_of()}.tgz oci://registry.example.org/charts",),
    "wheel.sh": ("hatchling build --target wheel",),
    "forge.sh": (f"gh release create v{version.version_of()} --verify-tag",),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", DRY_RUNS)
def test_a_dry_run_prints_what_would_be_done_and_no_secret(script: str, tmp_path: Path) -> None:
    done = call(f"tools/release/{script}", "--dry-run", ROOST_OUTPUT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert [said for said in DRY_RUNS[script] if said not in done.stdout] == []
    assert "not to be printed" not in done.stdout + done.stderr


def test_the_plugins_manifest_names_an_archive_that_holds_it(tmp_path: Path) -> None:
    checksums = set()
    for folder in ("first", "second"):
        done = call("tools/release/krew.sh", ROOST_OUTPUT=str(tmp_path / folder))
        assert done.returncode == 0, done.stderr
        archive = tmp_path / folder / "krew" / "kubectl-roost.tar.gz"
        checksums.add(hashlib.sha256(archive.read_bytes()).hexdigest())
    manifest = yaml.safe_load((archive.parent / "roost.yaml").read_text(encoding="utf-8"))
    here = version.version_of()
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


def test_an_argument_that_is_none_is_refused() -> None:
    done = call("tools/release/image.sh", "--dry")
    assert (done.returncode, done.stdout) == (2, "")
    assert "found argument --dry, expected --dry-run or --help" in done.stderr


def test_an_address_that_is_not_known_says_where_to_write_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not read_addresses({}).image:
        assert addresses.main(["image"]) == 1
        assert (
            "addresses.image of release.toml is empty. Write it there, or set ROOST_IMAGE."
            in capsys.readouterr().err
        )
    assert addresses.main(["nothing"]) == 2


@pytest.mark.parametrize(("variable", "value"), rows("repository/addresses-refused"))
def test_what_is_no_address_is_refused(variable: str, value: str) -> None:
    with pytest.raises(AddressError, match=f"{variable}, or addresses.*found .*, expected "):
        read_addresses({variable: value})
    # Registries' names have no capitals.
    assert (
        read_addresses({"ROOST_IMAGE": "ghcr.example.org/Me/Roost"}).image
        == "ghcr.example.org/me/roost"
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
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n### Added\n\n- A.\n")
    expected = [" found no section 0.", " Unreleased has entr"]
    assert [
        fault.partition(":")[2][:20] for fault in version.faults(f"v{here}", tmp_path)
    ] == expected


def test_changes_are_read_from_the_change_log() -> None:
    entries = "### Added\n\n- A [page](docs/a.md),\n  long.\n- B.\n\n### Fixed\n\n- C.\n"
    text = f"# L\n\n## 1.0.0 (2026)\n\n{entries}\n## 0.9.0\n\n### Added\n\n- D.\n"
    assert changes_of(text, "1.0.0") == [
        ("added", "A page, long."),
        ("added", "B."),
        ("fixed", "C."),
    ]
    assert changes_of(text, "2.0.0") == []


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
    assert values["image"]["name"] == KNOWN.image
    assert values["recorder"]["image"]["name"] == f"{KNOWN.image}-lab"
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
    built = call("tools/release/wheel.sh", ROOST_OUTPUT=str(tmp_path))
    assert built.returncode == 0, built.stderr
    wheels = sorted((tmp_path / "dist").glob("*.whl"))
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
        f"{KNOWN.image}:{version.version_of()}"
        in run("roost", "images", "--kube-version", "v1.37.2").splitlines()
    )
    assert run("roost", "why", "--help").startswith("Usage: roost why")
    assert run("python", "-c", "import roost; print(roost.__path__[0])").startswith(str(packages))
