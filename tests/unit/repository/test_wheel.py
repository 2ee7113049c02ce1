"""The wheel as `pip install` unpacks it: what it puts at top level, and that nothing of the product is left out."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("roost", "roost_core", "generator", "webhook")
# Where the wheel has folders that a checkout has elsewhere.
DATA = {"templates": "roost/data/templates", "chart": "roost/data/chart"}


def names_in_wheel(project: Path, directory: Path) -> frozenset[str]:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def files(folder: str) -> list[str]:
    found = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return [path.relative_to(ROOT / folder).as_posix() for path in found]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    return names_in_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_only_roosts_own_packages_are_installed_at_top_level_whole_with_templates_and_chart(
    names: frozenset[str],
) -> None:
    top = {name.split("/", 1)[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)
    for folder, there in {**DATA, **dict(zip(PACKAGES, PACKAGES, strict=True))}.items():
        assert len(files(folder)) > 1
        assert {f"{there}/{name}" for name in files(folder)} - names == set()
    # Type hints are exported.
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_the_wheel_of_the_lab_holds_the_lab_alone_and_whole(tmp_path: Path) -> None:
    names = names_in_wheel(ROOT / "lab", tmp_path)
    top = {name.split("/", 1)[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"roost_lab"}
    assert {f"roost_lab/{name}" for name in files("lab/roost_lab")} - names == set()
    assert "roost_lab/py.typed" in names
