"""What is installed: the wheel, the plain install without the lab, the plugin of kubectl."""

import contextlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from tests.harness.fixtures import require_binary
from tests.recorded_data import rows
from tests.releases import PACKAGES
from tools.root import ROOT

# Where the wheel has folders that a checkout has elsewhere.
DATA = {"templates": "roost/data/templates", "chart": "roost/data/chart"}


def names_in_wheel(project: Path, directory: Path) -> frozenset[str]:
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(directory),
    ]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def files(folder: str) -> list[str]:
    found = [
        path
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
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


# Finds no module of the named packages and no entry point, as where they aren't installed; then
# runs `roost`.
PROGRAM = """
import sys
from importlib import metadata
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
if "roost_lab" in sys.argv[1].split(","):
    metadata.entry_points = lambda **_: ()
from roost.__main__ import main
sys.exit(main(sys.argv[2:]))
"""


def only_in_the_lab() -> set[str]:
    """Top-level modules of the packages that `pip install roost` doesn't bring, and roost-lab
    does.
    """
    project = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    listed = {
        re.split(r"[\[>=]", text)[0]
        for texts in (project["dependencies"], *project["optional-dependencies"].values())
        for text in texts
    } - {"roost"}
    return {"roost_lab"} | {
        module
        for module, packages in metadata.packages_distributions().items()
        if listed & {package.lower() for package in packages}
    }


def needs_of(package: str) -> set[str]:
    found: set[str] = set()
    waiting = [package]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name not in found:
            with contextlib.suppress(metadata.PackageNotFoundError):
                needs = metadata.requires(name) or []
                found.add(name)
                waiting += [
                    re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need
                ]
    return found


def test_the_plain_install_brings_few_packages_and_each_has_its_reason() -> None:
    locked = re.findall(
        r"^([\w.-]+)==",
        (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    ours = set(locked) - needs_of("kubernetes") | {"kubernetes", "pyyaml", "urllib3"}
    assert len(ours) <= 25
    reasons = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    assert [
        name
        for name in sorted(ours)
        if not re.search(rf"\b{re.escape(name)}\b", reasons, re.IGNORECASE)
    ] == []


def roost(*arguments: str, missing: set[str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, ",".join(missing or only_in_the_lab()), *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_packages_of_the_lab_are_told_from_the_plain_install() -> None:
    assert {"sqlalchemy", "alembic", "psycopg", "rich", "distributed"} <= only_in_the_lab()
    assert not {"flask", "jinja2", "jsonpatch", "kubernetes", "orjson"} & only_in_the_lab()


@pytest.mark.parametrize(("arguments", "said"), rows("repository/plain-install"))
def test_the_plain_install_suffices(arguments: list[str], said: str) -> None:
    done = roost(*arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", ["record", "why", "report", "records", "top", "view", "simulate", "rehearse", "book"]
)
def test_a_command_of_the_lab_says_what_to_install(command: str) -> None:
    done = roost(command)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"roost {command} belongs to the distribution roost-lab, which isn't" in done.stderr
    # Never a name that a stranger could publish.
    assert done.stderr.endswith("pip install ./lab, or its wheel.\n")


def test_an_option_that_needs_one_more_package_says_which() -> None:
    done = roost(
        "simulate", "--dask", "tcp://127.0.0.1:1", "--days", "0.01", missing={"distributed"}
    )
    assert done.returncode != 0
    assert "distributed" in done.stderr


KREW = ROOT / "tools" / "krew"


def entry_point(folder: Path, name: str) -> None:
    """Write a script as pip writes those of `[project.scripts]`."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][name]
    module, _, function = target.partition(":")
    script = folder / name
    lines = (
        f"#!{sys.executable}",
        "import sys",
        f"from {module} import {function}",
        f"sys.exit({function}())",
        "",
    )
    script.write_text("\n".join(lines))
    script.chmod(0o755)


def by_pip(folder: Path) -> None:
    entry_point(folder, "kubectl-roost")


def by_krew(folder: Path) -> None:
    entry_point(folder, "roost")
    (folder / "kubectl-roost").symlink_to(KREW / "kubectl-roost")


@pytest.mark.parametrize("install", [by_pip, by_krew])
def test_kubectl_finds_the_plugin_and_runs_it(
    install: Callable[[Path], None], tmp_path: Path
) -> None:
    kubectl = require_binary("kubectl")
    install(tmp_path)
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(kubectl), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert str(tmp_path / "kubectl-roost") in run("plugin", "list").stdout
    done = run("roost", "validate", "--set", "image.name=registry.example.org/roost")
    assert (done.returncode, done.stderr) == (0, "no faults in --set\n")
    assert run("roost", "nope").returncode == 2


def test_without_the_package_what_krew_installs_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(KREW / "kubectl-roost")],
        env={"PATH": f"{tmp_path}:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "isn't installed" in done.stderr) == (127, True)
