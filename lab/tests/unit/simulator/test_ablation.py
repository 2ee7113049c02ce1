"""What `python -m benchmarks.ablation` says of a part."""

import pytest

from benchmarks.ablation import EARNS, Change, change, earns, main
from benchmarks.never_worse import Run

RUN = Run(launches=9, given_up=0, timeouts=0, p50=1, p95=10, p99=20, node_hours=50, cold=100, waited_for_node=0)


def test_a_change_is_the_median_of_the_seeds_own_differences() -> None:
    before = {1: RUN, 2: RUN._replace(cold=200), 3: RUN}
    after = {1: RUN._replace(cold=110), 2: RUN._replace(cold=300), 3: RUN._replace(cold=90)}
    found = change(before, after, "cold")
    assert found is not None
    assert tuple(found) == pytest.approx((0.1, -0.1, 0.5))


def test_nothing_is_compared_with_no_cold_start_at_all() -> None:
    assert change({1: RUN._replace(cold=0)}, {1: RUN}, "cold") is None


@pytest.mark.parametrize("figure", ["cold", "p95", "node_hours"])
def test_a_part_earns_its_place_by_one_figure(figure: str) -> None:
    nothing: dict[str, Change | None] = dict.fromkeys(("cold", "p95", "p99", "node_hours"), Change(0, -0.1, 0.1))
    assert not earns(nothing)
    assert earns(nothing | {figure: Change(EARNS, 0, 1)})
    assert not earns(nothing | {figure: Change(EARNS - 0.01, 0, 1), "p99": Change(1, 1, 1), "cold": None})


def test_the_short_form_compares_each_part_with_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    scope = ["--scenarios", "lecture", "--parts", "no mover", "no placeholders", "--seeds", "1", "--jobs", "1"]
    assert main([*scope, "--days", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (without,) = (line for line in lines if "no placeholders" in line)
    cold, _, _, node_hours = (float(cell.split()[0]) for cell in without.split("|")[4:8])
    assert cold > 5
    assert node_hours < -5
