"""The plain install: what it runs without roost-lab and what the lab needs, and what it says of the lab's commands."""

import contextlib
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Finds no module of the named packages and no entry point, as where they aren't installed; then runs `roost`.
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
    """Top-level modules of the packages that `pip install roost` doesn't bring, and roost-lab does."""
    project = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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
                waiting += [re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need]
    return found


def test_the_plain_install_brings_few_packages_and_each_has_its_reason() -> None:
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8"), re.MULTILINE)
    ours = set(locked) - needs_of("kubernetes") | {"kubernetes", "pyyaml", "urllib3"}
    assert len(ours) <= 25
    reasons = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    assert [name for name in sorted(ours) if not re.search(rf"\b{re.escape(name)}\b", reasons, re.IGNORECASE)] == []


def roost(*arguments: str, missing: set[str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, ",".join(missing or only_in_the_lab()), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_packages_of_the_lab_are_told_from_the_plain_install() -> None:
    assert {"sqlalchemy", "alembic", "psycopg", "rich", "distributed"} <= only_in_the_lab()
    assert not {"flask", "jinja2", "jsonpatch", "kubernetes", "orjson"} & only_in_the_lab()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["render"], "kind: MutatingWebhookConfiguration"),
        (["validate"], "no faults"),
        (["webhook", "--help"], "--bind-address"),
        (["controllers", "--help"], "--bind-address"),
        (["cleanup", "--help"], "--dry-run"),
        (["--help"], "validate"),
    ],
)
def test_the_plain_install_suffices(arguments: list[str], said: str) -> None:
    done = roost(*arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["record", "why", "report", "records", "top", "view", "simulate", "rehearse"])
def test_a_command_of_the_lab_says_what_to_install(command: str) -> None:
    done = roost(command)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith(f"roost {command} belongs to roost-lab: pip install roost-lab\n")


def test_an_option_that_needs_one_more_package_says_which() -> None:
    done = roost("simulate", "--dask", "tcp://127.0.0.1:1", "--days", "0.01", missing={"distributed"})
    assert done.returncode != 0
    assert "distributed" in done.stderr
