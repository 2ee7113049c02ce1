"""The rules that `python -m benchmarks.paper` compares, and what it says of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from benchmarks.figures import Interval, interval
from benchmarks.paper import ARMS, FIRST, Job, Run, change, main, on_front, play, policy_of_arm, show, write_plots
from benchmarks.paper_plots import LINE, Point, plot
from benchmarks.paper_rules import ChRlu, RendezvousInSet, Scene, first_fit, image_first, pod_affinity
from roost_core.placement.rendezvous import rank_nodes
from roost_core.placement.warm_sets import Spare
from webhook.facts import PlacedPod, WarmFacts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

IMAGE = "r2d.invalid/course:1"
RUN = Run(cold=100, p95=10, p99=20, node_hours=50, registry_tib=1)


def _scene(loads: Mapping[str, int], held: str = "", pods: Mapping[str, PlacedPod] | None = None) -> Scene:
    """Nodes of ten slots each, the oldest first, named by a letter. held: those with the image."""
    return Scene(IMAGE, {"cpu": 10}, dict.fromkeys(loads, 10), loads, frozenset(held), WarmFacts(pods), Spare())


def test_image_first_takes_any_holder_then_the_fullest() -> None:
    assert image_first(_scene({"a": 8, "b": 2, "c": 5, "d": 6}, held="bc")) == ["c", "b", "a", "d"]


def test_pod_affinity_counts_running_users_of_the_image_alone() -> None:
    pods = {
        "1": PlacedPod("user", "b", (IMAGE,)),
        "2": PlacedPod("user", "b", (IMAGE,)),
        "3": PlacedPod("user", "c", (IMAGE,)),
    }
    others = {str(number): PlacedPod("user", "a", ("other:1",)) for number in range(4, 9)}
    assert pod_affinity(_scene({"a": 5, "b": 2, "c": 1, "d": 6}, held="a", pods=pods | others)) == ["b", "c", "d", "a"]


def test_first_fit_takes_the_oldest() -> None:
    assert first_fit(_scene({"b": 0, "a": 9}, held="a")) == ["b", "a"]


def test_rendezvous_stays_in_the_set() -> None:
    # 17 pods and the new one need two nodes.
    order = RendezvousInSet()(_scene({"a": 9, "b": 8, "c": 0, "d": 0}))
    assert order == rank_nodes(IMAGE, ["a", "b"])


def test_only_a_popular_image_leaves_an_overloaded_node() -> None:
    first, second, *_ = rank_nodes(IMAGE, "abcd")
    loads = dict.fromkeys("abcd", 0) | {first: 9}
    rule = ChRlu(1)
    assert rule(_scene(loads))[0] == first
    for number in range(4):
        rule(_scene(loads)._replace(image=f"other:{number}"))
    launched = [rule(_scene(loads))[0] for _ in range(3 * ChRlu.LOOK_EVERY)]
    assert set(launched[: ChRlu.LOOK_EVERY - 6]) == {first}
    assert launched[ChRlu.LOOK_EVERY :].count(second) > ChRlu.LOOK_EVERY


@pytest.mark.parametrize(
    ("number", "expected"), [(5, (3, 1, 5)), (6, (3.5, 1, 6)), (8, (4.5, 1, 8)), (9, (5, 2, 8)), (10, (5.5, 2, 9))]
)
def test_an_interval_holds_the_median_with_95_percent(number: int, expected: tuple[float, float, float]) -> None:
    assert interval(list(range(number, 0, -1))) == expected


def test_a_change_is_that_of_pairs() -> None:
    before = {1: RUN, 2: RUN._replace(cold=200)}
    after = {2: RUN._replace(cold=100), 1: RUN._replace(cold=90)}
    assert change(before, after, "cold") == pytest.approx((-30, -50, -10))


def test_the_front_has_what_nothing_dominates() -> None:
    points = {"cheap": (1.0, 9.0), "both": (2.0, 5.0), "worse": (2.0, 6.0), "quick": (8.0, 1.0), "equal": (2.0, 5.0)}
    assert on_front(points) == {"cheap", "both", "equal", "quick"}


def test_names_beside_a_plot_are_complete_and_apart() -> None:
    points = [Point(f"rule <{n}>", Interval(n, n - 1, n + 1), Interval(5, 4, 6), n == 3, n == 4) for n in range(14)]
    drawing = ET.fromstring(plot(points, "node-hours", "wait"))  # noqa: S314 - our own
    texts = drawing.findall(".//{*}g/{*}text")
    assert [text.text for text in texts] == [point.name for point in points]
    heights = sorted(float(text.get("y", 0)) for text in texts)
    assert all(below - above >= LINE for above, below in itertools.pairwise(heights))
    assert heights[-1] <= float(drawing.get("viewBox", "").split()[3])


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


def test_all_arms_but_one_have_25_placeholders() -> None:
    numbers = {name: sum(found.replicas for found in policy_of_arm(name).placeholders) for name in ARMS}
    assert numbers == dict.fromkeys(ARMS, 25) | {"kube-scheduler, no placeholders": 0}
