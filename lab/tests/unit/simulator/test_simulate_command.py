"""`roost simulate` from the command line to what it prints, with the real engine on few
launches.
"""

import io
import json
import re
import shutil
from pathlib import Path

import pytest

from lab.tests.told import cases
from lab.tests.trace_lines import launch, recorded, write
from roost.__main__ import main
from roost_lab.recorder.store.database import Store
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.shipped_policies import policy_files
from roost_lab.simulator.setup.worlds import MYBINDER, WORLDS
from roost_lab.simulator.sweep.request import make_worlds

pytestmark = pytest.mark.slow


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    lines = (launch(number // 4, f"owner/repo-{number % 7}/master") for number in range(120))
    return write(tmp_path, *lines, name="launches.jsonl")


def simulate(*arguments: str) -> int:
    return main(["simulate", "--jobs", "1", *arguments])


def test_a_replay_of_each_policy_is_recorded(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = tmp_path / "same.yaml"
    shutil.copyfile(policy_files()["z2jh"], same)
    asked = ("--trace", str(trace), "--policy", "z2jh", "--values", str(same), "--seeds", "1")
    assert simulate(*asked) == 0
    plain = capsys.readouterr().out
    folder = tmp_path / "replays"
    assert simulate(*asked, "--record", str(folder)) == 0
    done = capsys.readouterr()
    assert done.out == plain
    # After the bar, which counts the records too, one line.
    assert (
        done.err.splitlines()[-1]
        == f"To see it: roost view --database {folder}/z2jh.db --beside {folder}/same.db"
    )
    assert done.err.count("z2jh") == 1
    for name in ("z2jh", "same"):
        store = Store.open_for_reading(str(folder / f"{name}.db"))
        with store.reading() as connection:
            users = connection.exec_driver_sql(
                "SELECT count(*) FROM pod WHERE pod_class = 'user'"
            ).scalar_one()
        assert users >= 120
        store.close()
    assert sorted(path.name for path in folder.iterdir()) == ["same.db", "z2jh.db"]
    assert simulate(*asked, "--record", str(folder)) == 2
    assert "z2jh.db exists" in capsys.readouterr().err


def test_each_format_is_written(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (
        "--trace",
        str(trace),
        "--policy",
        "z2jh",
        "--seeds",
        "1",
        "--vary",
        "sessions=mid,long",
    )
    written = {}
    for form, begin in (("html", "<!DOCTYPE html>"), ("json", "{"), ("text", "launches")):
        assert simulate(*asked, "--format", form) == 0
        written[form] = capsys.readouterr().out
        assert written[form].startswith(begin)
    document = json.loads(written["json"])
    assert [world["setting"] for world in document["worlds"]] == [{}, {"sessions": "long"}]
    assert document["worlds"][0]["policies"]["z2jh"]["attempts"]["median"] == 120


def test_shipped_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--list-policies") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(policy_files())
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize(("arguments", "said"), cases("simulator", "usage"))
def test_wrong_input_is_one_clear_line_and_no_traceback(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*arguments) in {1, 2}
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_an_image_that_no_disk_holds_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path, recorded(), recorded(image_bytes=9 * 10**12, image="quay.io/huge:1"))
    asked = ("--trace", str(trace), "--policy", "z2jh", "--seeds", "1")
    assert simulate(*asked) == 2
    said = (
        "expected at least 9,000,000,000,000, which the trace says of image quay.io/huge:1; or 0:"
        " endless."
    )
    assert said in capsys.readouterr().err
    assert simulate(*asked, "--set", "node_disk_bytes=0") == 0


def test_pods_that_no_node_holds_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path, recorded(), recorded(memory_bytes=10**12, image="quay.io/large:1"))
    assert simulate("--trace", str(trace), "--policy", "z2jh", "--seeds", "1") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "1 attempts request more than a node has, and are given up; the first is of"
        " quay.io/large:1." in text
    )


def test_every_line_that_was_skipped_is_told_in_the_report(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = [f'{{"schema": "other-{number}", "version": 1}}\n' for number in range(12)]
    trace.write_text(trace.read_text() + "".join(kinds))
    assert simulate("--trace", str(trace), "--policy", "z2jh", "--seeds", "1") == 0
    told = capsys.readouterr()
    assert "more kinds of lines, in the report" in told.err
    lines = [line for line in told.out.splitlines() if "skipped 1:" in line]
    assert len(lines) == len(kinds)


def test_standard_input_is_a_trace_too(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(trace.read_bytes())))
    assert simulate("--trace", "-", "--policy", "z2jh", "--seeds", "1") == 0
    assert capsys.readouterr().out.startswith("standard-input: 120 attempts, 1 seed\n")


def test_worlds_differ_from_the_first_in_one_assumption_each() -> None:
    vary = ("sessions=short,mid,long", "pushes_per_day=0,0.02", "pulls=fast,slow")
    assert [world.setting for world in make_worlds(("pulls=fast",), vary)] == [
        {"pulls": "fast"},
        {"pulls": "fast", "sessions": "short"},
        {"pulls": "fast", "sessions": "long"},
        {"pulls": "fast", "pushes_per_day": 0.02},
        {"pulls": "slow"},
    ]


def test_spaces_around_a_varied_assumption_do_not_count() -> None:
    worlds = make_worlds((), (" sessions =short,mid",))
    assert [world.setting for world in worlds] == [{}, {"sessions": "short"}]


def test_a_world_has_a_name_and_its_assumptions_can_be_changed() -> None:
    (felt,) = make_worlds(("answer_seconds=5",), (), MYBINDER)
    assert felt.setting == {**WORLDS[MYBINDER], "answer_seconds": 5.0}
    (usual,) = make_worlds()
    assert usual.setting == {}


def test_an_assumption_with_two_values_is_refused() -> None:
    said = "--set: max_nodes: found 5 and 6, expected one value. --vary compares several."
    with pytest.raises(AssumptionsError, match=re.escape(said)):
        make_worlds(("max_nodes=5", "max_nodes=6"))
