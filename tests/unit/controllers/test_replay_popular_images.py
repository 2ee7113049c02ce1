"""The replay of popular images: the trace's first hours, with and without the plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.recorded_data import LAUNCHES
from tools.replay_popular_images import GB, Policy, Replay, World, main, read_launches

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

# Six nodes' worth of launches by noon; the plan's own limits are those of the values.
SIX_HOURS = 0.25


def write_trace(path: Path, *specs: str) -> Path:
    """A trace with one launch a minute."""
    lines = [
        {
            "timestamp": f"2019-05-22T{index // 60:02}:{index % 60:02}:00+00:00",
            "schema": "binderhub.jupyter.org/launch",
            "version": 2,
            "provider": "GitHub",
            "spec": spec,
            "status": "success",
        }
        for index, spec in enumerate(specs)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_with_the_plan_more_launches_find_their_image_and_an_oracle_finds_more_still() -> None:
    world = World(seats=20)
    launches = read_launches(LAUNCHES, world, SIX_HOURS)
    none = Replay(launches, world, Policy(name="none")).run()
    plan = Replay(launches, world, Policy(name="plan", per_node=20)).run()
    oracle = Replay(launches, world, Policy(name="oracle", per_node=20, is_oracle=True)).run()
    assert none.launches == plan.launches == oracle.launches > 1000
    assert none.refused > 0
    assert none.found_percent < plan.found_percent < oracle.found_percent
    assert (none.pulls, none.pulled_bytes) == (0, 0)
    # Within what the values allow: three at once, 2 GiB a minute.
    assert 0 < plan.most_pulling <= 3
    assert plan.pulled_bytes <= 2 * 2**30 * 60 * 24 * SIX_HOURS
    assert 0 < plan.used_pulls <= plan.pulls


def test_the_same_replay_gives_the_same_figures() -> None:
    world = World(seats=20, disk_bytes=200 * GB)
    launches = read_launches(LAUNCHES, world, SIX_HOURS / 3)
    policy = Policy(name="plan", per_node=5)
    assert Replay(launches, world, policy).run() == Replay(launches, world, policy).run()


def test_a_repository_over_its_quota_is_refused(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", *["a/b/master"] * 9)
    world = World(repository_quota=2, median_minutes=600, p90_minutes=700, idle_minutes=500)
    result = Replay(read_launches(trace, world), world, Policy(name="none")).run()
    assert (result.launches, result.refused, result.cold) == (2, 7, 1)


def test_a_full_disk_forgets_what_was_used_longest_ago(tmp_path: Path) -> None:
    # Every image takes 0.57 GB and 3.8 times that on disk; two fit, three don't.
    specs = ["a/a/1", "b/b/1", "c/c/1", "a/a/1"]
    trace = write_trace(tmp_path / "trace.jsonl", *specs)
    world = World(image_sigma=0.0, idle_minutes=0.1, median_minutes=0.2, p90_minutes=0.3, disk_bytes=6 * GB)
    assert Replay(read_launches(trace, world), world, Policy(name="none")).run().cold == 4
    endless = World(image_sigma=0.0, idle_minutes=0.1, median_minutes=0.2, p90_minutes=0.3)
    assert Replay(read_launches(trace, endless), endless, Policy(name="none")).run().cold == 3


def test_pushes_make_new_images(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", *["a/b/master"] * 1440)
    images = {launch.image for launch in read_launches(trace, World(pushes_a_day=1.0))}
    assert len(images) == 2
    assert len({image.rpartition(":")[0] for image in images}) == 1


def test_a_file_that_is_no_trace_is_told_of_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"schema": "other", "timestamp": "2019-05-22T00:00:00+00:00"}\n')
    assert main([str(odd)]) == 1
    assert "expected BinderHub's launches" in capsys.readouterr().err
    assert main([str(tmp_path / "absent")]) == 1
