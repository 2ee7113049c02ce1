"""Tools of whoever works on Roost: sizes, the rooms of a change, the demo, what the image's build
takes.
"""

import re
import sqlite3
import tomllib
from pathlib import Path

import pytest

from tests.recorded_data import rows
from tools import demo
from tools.quick import tests_of as rooms_of
from tools.root import ROOT
from tools.sizes import Size, sizes


@pytest.mark.parametrize(("changed", "room"), rows("repository/rooms"))
def test_a_changed_file_has_its_rooms_tests(changed: str, room: str) -> None:
    assert rooms_of([Path(changed)]) == [Path(room)]


def test_a_room_is_run_once_and_what_has_no_tests_runs_none() -> None:
    files = (
        "webhook/review.py webhook/watching/keeper.py tests/unit/webhook/test_warm.py LICENSE"
        " lab/benchmarks/large.py"
    )
    assert rooms_of(map(Path, files.split())) == [Path("tests/unit/webhook")]


def test_a_room_is_its_folder_and_below_and_is_counted_in_characters() -> None:
    texts = {
        "webhook/main.py": "class A:\n    pass\n",
        "webhook/rules/gate.py": "x = 1\n",
        "webhook/rules/deep/more.py": "y = 2\nz = 3\n",
        "webhook/rules/notes.md": "not Python",
        "tests/unit/test_a.py": "not installed",
    }
    assert sizes(texts) == {"webhook": Size(18, 2, 1, 1), "webhook/rules": Size(18, 3, 0, 2)}


@pytest.mark.slow
def test_the_demo_places_three_pods_records_them_and_leaves_two_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "PAGES", tmp_path)
    assert demo.main() == 0, capsys.readouterr()
    for page in ("report.html", "replay.html"):
        assert "</html>" in (tmp_path / page).read_text(encoding="utf-8")
    with sqlite3.connect(tmp_path / "demo.db") as record:
        bindings = (
            "SELECT pod_class, node_name FROM decision JOIN pod ON uid = pod_uid WHERE kind ="
            " 'bind'"
        )
        nodes = dict(record.execute(f"{bindings} AND pod_class <> ''").fetchall())
    assert nodes.keys() == set(demo.CLASSES)
    assert (nodes["user"], nodes["placeholder"]) == (demo.USER_NODE, demo.PLACEHOLDER_NODE)
    assert "It landed on" in capsys.readouterr().out


def test_the_build_context_holds_what_the_wheel_and_the_dockerfile_name() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    context = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in context)
    projects = {
        folder: tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
        for folder in ("", "lab/")
    }
    targets = {
        folder: project["tool"]["hatch"]["build"]["targets"] for folder, project in projects.items()
    }
    wheels = {
        f"{folder}{name}"
        for folder, built in targets.items()
        for name in built["wheel"]["only-include"]
    }
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )
    named = {name for names in copied for name in names.split()} - {".", "lab"}
    assert wheels | named <= context
