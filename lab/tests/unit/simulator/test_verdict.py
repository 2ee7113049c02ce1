"""`roost import --history`: what each proposal would have done with a hub's latest launches, within a time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from roost.__main__ import main
from roost_lab.judge import SEEDS, Score, describe, helps, judge, latest
from roost_lab.simulator.setup.checks import AssumptionsError
from roost_lab.simulator.setup.policy import load_policy
from roost_lab.simulator.sweep.survey import trace_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HUB = """
scheduling: {userScheduler: {enabled: false}, userPlaceholder: {enabled: false}}
prePuller: {hook: {enabled: false}, continuous: {enabled: false}}
singleuser: {memory: {guarantee: 1G}, image: {name: a/b, tag: "1"}}
"""


def write_launches(path: Path, moments: Sequence[datetime], courses: int = 1) -> str:
    """Launches at these moments, of so many images in turn."""
    lines = [
        json.dumps(
            {
                "timestamp": moment.isoformat(),
                "schema": "binderhub.jupyter.org/launch",
                "version": 2,
                "provider": "GitHub",
                "spec": f"me/course-{place % courses}/main",
                "status": "success",
            }
        )
        for place, moment in enumerate(moments)
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def history(tmp_path: Path) -> str:
    """Sixty launches of five images, a minute apart."""
    start = datetime(2026, 11, 2, 9, tzinfo=UTC)
    return write_launches(tmp_path / "launches.jsonl", [start + timedelta(minutes=minute) for minute in range(60)], 5)


def test_the_latest_launches_are_taken_and_numbered_from_the_first(history: str) -> None:
    every = latest(trace_of((history,)))
    few = latest(trace_of((history,)), 7)
    assert len(every) == 60
    assert [attempt.number for attempt in few] == list(range(7))
    assert [attempt.moment for attempt in few] == [attempt.moment for attempt in every[-7:]]


@pytest.mark.parametrize(("seconds_a_look", "seeds"), [(0.0, SEEDS), (40.0, 1)])
def test_every_policy_has_the_same_seeds_and_none_begins_that_would_end_too_late(
    history: str, seconds_a_look: float, seeds: int
) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += seconds_a_look
        return now[0]

    policies = [load_policy("roost"), load_policy("kube-default")]
    scores = judge(policies, latest(trace_of((history,))), 60.0, clock)
    assert [score.seeds for score in scores] == [seeds, seeds]
    assert all(score.node_hours > 0 for score in scores)


def test_the_sentence_has_both_figures(history: str) -> None:
    roost, stock = judge(
        [load_policy("roost"), load_policy("kube-default")], latest(trace_of((history,))), 60.0, lambda: 0.0
    )
    said = describe(stock, roost, 60)
    assert said.startswith("Replayed with your 60 latest launches: cold starts ")
    assert f"{stock.cold:,.0f} -> {roost.cold:,.0f}" in said
    assert said.endswith("(median of 3 seeds).")


def test_a_policy_that_fits_no_usual_node_is_refused(history: str, tmp_path: Path) -> None:
    values = tmp_path / "large.yaml"
    values.write_text("placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 4000Gi}}}]")
    with pytest.raises(AssumptionsError):
        judge([load_policy("large", [str(values)])], latest(trace_of((history,))), 60.0, lambda: 0.0)


def test_the_import_says_it_below_each_proposal(
    history: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = tmp_path / "hub.yaml"
    hub.write_text(HUB)
    assert main(["import", str(hub)]) == 0
    plain = capsys.readouterr().out
    assert main(["import", str(hub), "--history", history]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line not in plain.splitlines()]
    assert len(said) == 3
    assert all(line.startswith("#    Replayed with your 60 latest launches: ") for line in said)
    assert main(["import", str(hub), "--history", str(tmp_path / "none.db")]) == 2
    assert "none.db: No such file" in capsys.readouterr().err


def test_learned_numbers_are_proposed_where_they_would_have_helped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of eighty at nine on workdays; and the same number of users at any time of day."""
    # One seed is enough.
    monkeypatch.setattr("roost_lab.judge.REPLAY_SECONDS", 0.0)
    hub = tmp_path / "hub.yaml"
    hub.write_text(HUB)
    monday = datetime(2026, 11, 2, 9, tzinfo=UTC)
    days = [monday + timedelta(days=day) for day in range(11) if day % 7 < 5]
    classes = [day + timedelta(seconds=5 * user) for day in days for user in range(80)]
    always = [monday + timedelta(minutes=15 * user) for user in range(len(classes))]
    for moments, is_proposed in ((classes, True), (always, False)):
        trace = write_launches(tmp_path / "launches.jsonl", moments)
        assert main(["import", str(hub), "--history", trace]) == 0
        out, err = capsys.readouterr()
        assert ("learn:" in out, "Learn from each week" in err) == (is_proposed, is_proposed)


def test_what_helps_is_a_shorter_wait_at_about_the_same_price() -> None:
    today = Score(30.0, 100.0, 10.0, 3)
    assert helps(today, today._replace(wait_seconds=26.0, node_hours=102.0))
    assert not helps(today, today._replace(wait_seconds=28.0))
    assert not helps(today, today._replace(wait_seconds=10.0, node_hours=104.0))
