"""The short form of `python -m benchmarks.never_worse`: a hub that installs Roost is nowhere worse
off than before.
"""

from pathlib import Path

import pytest

from benchmarks import ablation, paper
from benchmarks.hub_scenarios import SCENARIOS
from benchmarks.never_worse import (
    ARMS,
    AUTOSCALERS,
    DEFAULTS,
    HUB,
    IMPORTED,
    Case,
    Run,
    broken_promises,
    found_from,
    hub_values,
    replays,
    show,
)
from benchmarks.never_worse import main as compare
from lab.tests.told import cases
from roost_lab.units import DAY_SECONDS

pytestmark = pytest.mark.slow

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
CASE = Case("a hub", "karpenter", 4)
RUN = Run(
    launches=100,
    given_up=0,
    timeouts=2,
    p50=2.0,
    p95=100.0,
    p99=200.0,
    node_hours=10.0,
    cold=5,
    waited_for_node=9,
)


def broken(*after: Run) -> list[str]:
    seeds = range(len(after))
    runs = {CASE: {HUB: dict.fromkeys(seeds, RUN), DEFAULTS: dict(zip(seeds, after, strict=True))}}
    return [broken_promise.what for broken_promise in broken_promises(runs)]


def test_a_table_tells_each_arm_and_what_is_broken() -> None:
    runs = {
        CASE: {
            HUB: {1: RUN, 2: RUN._replace(p99=210.0)},
            DEFAULTS: {1: RUN, 2: RUN._replace(given_up=1)},
        }
    }
    told = show(runs).splitlines()
    assert [cell.strip() for cell in told[2].split("|")][1:6] == [
        "a hub",
        "karpenter",
        "4",
        HUB,
        "200",
    ]
    assert "205 (200 to 210)" in told[2]
    assert "BROKEN" in told[3]
    assert "BROKEN" not in told[2]


def test_one_launch_more_given_up_or_beyond_patience_breaks_a_promise_and_fewer_dont() -> None:
    assert broken(RUN, RUN) == []
    assert broken(RUN, RUN._replace(given_up=1)) == ["1 launches given up, 0 without Roost"]
    assert broken(RUN, RUN._replace(timeouts=3)) == [
        "5 tries beyond the spawner's patience, 4 without Roost"
    ]
    assert broken(RUN, RUN._replace(timeouts=1, cold=50, p50=3.0)) == []
    more = RUN._replace(node_hours=12.0)
    assert (broken(more, more), broken(more, more, RUN)) == ([], ["2 node-hours more than 10"])


def test_the_least_worsening_found_shrinks_with_seeds_and_grows_with_their_differences() -> None:
    def told(*p95: float) -> str:
        before = dict.fromkeys(range(len(p95)), RUN)
        return found_from(before, {seed: RUN._replace(p95=one) for seed, one in enumerate(p95)})

    assert told(99.0) == ""
    assert told(100.0, 100.0) == "+6.00 s, +11.0 s, +1.50 h; 1.15%"
    assert told(99.0, 101.0) == "+7.61 s, +11.0 s, +1.50 h; 1.15%"
    assert told(*[99.0, 101.0] * 8) == "+6.41 s, +11.0 s, +1.50 h; 0.14%"


@pytest.mark.parametrize(("p99", "is_broken"), [(190.0, False), (210.9, False), (211.1, True)])
def test_a_quantile_may_be_longer_by_noise_only(p99: float, *, is_broken: bool) -> None:
    assert bool(broken(RUN._replace(p99=p99))) is is_broken
    # One seed of three is chance.
    assert broken(RUN._replace(p99=p99), RUN, RUN) == []


def test_hubs_are_of_six_kinds_at_least_and_launches_are_equal_for_a_seed_and_in_order() -> None:
    assert len({name.partition(":")[0] for name in BY_NAME}) >= 6
    for scenario in SCENARIOS:
        launches = scenario.launches(3, 0.5)
        assert launches == scenario.launches(3, 0.5), scenario.name
        assert launches != scenario.launches(4, 0.5), scenario.name
        moments = [launch.moment for launch in launches]
        assert moments == sorted(moments), scenario.name
        assert [launch.number for launch in launches] == sorted(
            launch.number for launch in launches
        ), scenario.name
        assert moments[-1] - moments[0] < DAY_SECONDS, scenario.name


def test_the_hubs_values_name_as_many_placeholders_as_roosts() -> None:
    assert hub_values(BY_NAME["lecture"], 4)["scheduling"]["userPlaceholder"] == {"replicas": 4}
    binder = hub_values(BY_NAME["small binder"], 25)
    assert binder["jupyterhub"]["scheduling"]["userPlaceholder"] == {"replicas": 25}
    assert "scheduling" not in binder


@pytest.mark.parametrize("autoscaler", AUTOSCALERS)
@pytest.mark.parametrize(("name", "placeholders", "days"), cases("simulator", "never_worse"))
def test_roost_is_nowhere_worse_than_the_hub_without_it(
    name: str, placeholders: tuple[int, ...], days: float, autoscaler: str
) -> None:
    found = replays(
        [BY_NAME[name]], autoscalers=[autoscaler], placeholders=placeholders, seeds=(1,), days=days
    )
    assert set(found) == {Case(name, autoscaler, number) for number in placeholders}
    assert all(tuple(arms) == ARMS and arms[HUB][1].launches > 3 for arms in found.values())
    assert broken_promises(found) == [], show(found)


def test_a_hub_of_ones_own_is_compared_and_a_broken_promise_is_the_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launches, values = tmp_path / "launches.jsonl", tmp_path / "hub.yaml"
    line = (
        '{{"timestamp": "2019-05-22T{:02}:{:02}:00+00:00", "schema":'
        ' "binderhub.jupyter.org/launch", "version": 2, '
    )
    line += '"provider": "GitHub", "spec": "a/b/{}", "status": "success"}}'
    launches.write_text(
        "\n".join(line.format(index // 60, index % 60, index % 3) for index in range(90)) + "\n"
    )
    values.write_text("singleuser: {memory: {guarantee: 1G}}\n")
    # With 90 launches a seed's p95 hangs on one of them.
    own = ["--launches", str(launches), "--hub-values", str(values), "--seeds", "3", "--jobs", "1"]
    own += [
        "--placeholders",
        "4",
        "--set",
        "user_memory_bytes=1Gi",
        "--set",
        "node_memory_bytes=6Gi",
    ]
    assert compare(own) == 0
    told = capsys.readouterr().out
    assert "launches.jsonl" in told
    assert IMPORTED in told
    assert "Every promise is kept." in told
    # Without the placeholders that the hub has, users wait longer.
    fewer = tmp_path / "fewer.yaml"
    fewer.write_text("placeholders: []\n")
    assert compare([*own, "--values", str(fewer)]) == 1
    assert "4 placeholders, roost, imported: p95 of the wait" in capsys.readouterr().out


REPLAY = paper.Run(cold=100, p95=10, p99=20, node_hours=50, registry_tib=1)


def test_a_rule_replaces_roosts() -> None:
    jobs = {
        name: paper.Job(name, 1, 1, 0.1)
        for name in ("warm set alone", "first fit", "image-first", "LRScheduler")
    }
    cold = {name: paper.play(job).cold for name, job in jobs.items()}
    assert cold["image-first"] < cold["first fit"]
    assert len(set(cold.values())) == len(cold)


def test_the_short_form_keeps_replays_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "runs.jsonl"
    arguments = ["--days", "0.02", "--seeds", "2", "--arms", "CH-RLU", "--results", str(results)]
    assert paper.main(arguments) == 0
    table = capsys.readouterr().out
    kept = results.read_text()
    assert (len(kept.splitlines()), paper.main([*arguments, "--plots", str(tmp_path)])) == (4, 0)
    assert (capsys.readouterr().out, results.read_text()) == (table, kept)
    assert len(list(tmp_path.glob("*.svg"))) == 3


def test_the_table_tells_changes_against_the_first_arm(tmp_path: Path) -> None:
    runs = {
        paper.FIRST: {1: REPLAY, 2: REPLAY},
        "CH-RLU": {1: REPLAY._replace(cold=90), 2: REPLAY._replace(cold=80)},
    }
    first, other = (
        [cell.strip() for cell in line.split("|")] for line in paper.show(runs).splitlines()[-2:]
    )
    assert first[1:3] == [paper.FIRST, "100 (100 to 100)"]
    assert other[1:3] == ["CH-RLU", "85, -15 % (-20 to -10)"]
    paper.write_plots(runs, tmp_path)
    assert "z2jh, packed" in (tmp_path / "paper-p99.svg").read_text()


def test_a_part_earns_its_place_by_one_figure() -> None:
    earned, lost = (ablation.Change(ablation.EARNS + less, 0, 1) for less in (0, -0.01))
    nothing: dict[str, ablation.Change | None] = dict.fromkeys(("cold", "p95", "p99", "node_hours"))
    assert not ablation.earns(nothing)
    for figure in ("cold", "p95", "node_hours"):
        assert ablation.earns(nothing | {figure: earned})
        assert not ablation.earns(nothing | {figure: lost, "p99": ablation.Change(1, 1, 1)})


def test_the_ablation_compares_each_part_with_the_defaults(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scope = [
        "--scenarios",
        "lecture",
        "--parts",
        "no mover",
        "no placeholders",
        "--seeds",
        "1",
        "--jobs",
        "1",
    ]
    assert ablation.main([*scope, "--days", "1"]) == 0
    (without,) = (
        line for line in capsys.readouterr().out.splitlines() if "no placeholders" in line
    )
    cold, _, _, node_hours = (float(cell.split()[0]) for cell in without.split("|")[4:8])
    assert cold > 5
    assert node_hours < -5
