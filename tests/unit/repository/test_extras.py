"""The plain install: what it runs without the packages of the extras, and what the other commands say instead."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Finds no module of the named packages, as where they aren't installed; then runs `roost`.
PROGRAM = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from roost.__main__ import main
sys.exit(main(sys.argv[2:]))
"""


def only_in_extras() -> set[str]:
    """Top-level modules of the packages that `pip install roost` doesn't bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    listed = {
        re.split(r"[\[>=]", text)[0]
        for name in ("record", "simulate", "dask", "hub", "parquet")
        for text in extras[name]
    }
    return {
        module
        for module, packages in metadata.packages_distributions().items()
        if listed & {package.lower() for package in packages}
    }


def roost(*arguments: str, missing: set[str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, ",".join(missing or only_in_extras()), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_extras_are_told_from_the_plain_install() -> None:
    assert {"sqlalchemy", "alembic", "psycopg", "rich", "distributed"} <= only_in_extras()
    assert not {"flask", "jinja2", "jsonpatch", "kubernetes", "orjson"} & only_in_extras()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["render"], "kind: MutatingWebhookConfiguration"),
        (["validate"], "no faults"),
        (["webhook", "--help"], "--bind-address"),
        (["controllers", "--help"], "--bind-address"),
        (["--help"], "simulate"),
    ],
)
def test_the_plain_install_suffices(arguments: list[str], said: str) -> None:
    done = roost(*arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize("module", ["webhook.main", "roost.controllers.main", "roost.commands.cleanup"])
def test_its_programs_load(module: str) -> None:
    program = PROGRAM.replace("from roost.__main__ import main\nsys.exit(main(sys.argv[2:]))", f"import {module}")
    command = [sys.executable, "-c", program, ",".join(only_in_extras())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["record", "--settings", "s", "--database", "d"], "record"),
        (["why", "hub/a", "--database", "d"], "record"),
        (["report", "--database", "d"], "record"),
        (["records", "export", "--database", "d"], "record"),
        (["top", "--settings", "s"], "record"),
        (["view", "--database", "d"], "record"),
        (["simulate", "--list-policies"], "simulate"),
    ],
)
def test_a_command_without_its_extra_says_what_to_install(arguments: list[str], extra: str) -> None:
    done = roost(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"roost {arguments[0]} needs the package ")
    assert line.endswith(f": install Roost with its extra [{extra}]")


def test_a_replay_that_is_recorded_needs_the_extra_of_the_recorder() -> None:
    done = roost("simulate", "--record", "folder", missing={"sqlalchemy"})
    assert done.returncode == 2
    assert done.stderr == "roost simulate needs the package sqlalchemy: install Roost with its extra [record]\n"


def test_parquet_needs_an_extra_of_its_own_and_says_so_before_it_reads_anything() -> None:
    done = roost("report", "--format", "parquet", "--output", "folder", "--database", "none.db", missing={"duckdb"})
    assert done.returncode == 2
    assert done.stderr == "roost report needs the package duckdb: install Roost with its extra [parquet]\n"


def test_a_view_for_a_hub_needs_an_extra_of_its_own() -> None:
    done = roost("view", "--jupyterhub", "--database", "d", missing={"jupyterhub"})
    assert done.returncode == 2
    assert done.stderr == "roost view needs the package jupyterhub: install Roost with its extra [hub]\n"
