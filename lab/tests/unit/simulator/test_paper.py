"""The rules that `python -m benchmarks.paper` compares, and what it says of them."""

from pathlib import Path

import pytest

from benchmarks.figures import interval
from benchmarks.paper import FIRST, Job, Run, main, play, show, write_plots

RUN = Run(cold=100, p95=10, p99=20, node_hours=50, registry_tib=1)


@pytest.mark.parametrize(
    ("number", "expected"), [(5, (3, 1, 5)), (6, (3.5, 1, 6)), (8, (4.5, 1, 8)), (9, (5, 2, 8)), (10, (5.5, 2, 9))]
)
def test_an_interval_holds_the_median_with_95_percent(number: int, expected: tuple[float, float, float]) -> None:
    assert interval(list(range(number, 0, -1))) == expected


def test_a_rule_replaces_roosts() -> None:
    jobs = {name: Job(name, 1, 1, 0.1) for name in ("warm set alone", "first fit", "image-first", "LRScheduler")}
    cold = {name: play(job).cold for name, job in jobs.items()}
    assert cold["image-first"] < cold["first fit"]
    assert len(set(cold.values())) == len(cold)


def test_the_short_form_keeps_replays_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "runs.jsonl"
    arguments = ["--days", "0.02", "--seeds", "2", "--arms", "CH-RLU", "--results", str(results)]
    assert main(arguments) == 0
    table = capsys.readouterr().out
    kept = results.read_text()
    assert len(kept.splitlines()) == 4
    assert main([*arguments, "--plots", str(tmp_path)]) == 0
    assert capsys.readouterr().out == table
    assert results.read_text() == kept
    assert len(list(tmp_path.glob("*.svg"))) == 3


def test_the_table_tells_changes_against_the_first_arm(tmp_path: Path) -> None:
    runs = {FIRST: {1: RUN, 2: RUN}, "CH-RLU": {1: RUN._replace(cold=90), 2: RUN._replace(cold=80)}}
    first, other = ([cell.strip() for cell in line.split("|")] for line in show(runs).splitlines()[-2:])
    assert first[1:3] == [FIRST, "100 (100 to 100)"]
    assert other[1:3] == ["CH-RLU", "85, -15 % (-20 to -10)"]
    write_plots(runs, tmp_path)
    assert "z2jh, packed" in (tmp_path / "paper-p99.svg").read_text()
