"""Sweeps: many replays on processes, and none lost."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from lab.tests.simulated import TRACE, counted_work, dying_work, failing_work, job, policy, work
from lab.tests.trace_lines import launch, write
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.sweep.run import (
    Job,
    LocalProcesses,
    ReplayEnd,
    SweepError,
    Work,
    make_jobs,
    replay_job,
    run_job,
    run_sweep,
)
from roost_lab.simulator.sweep.survey import survey, trace_of
from roost_lab.traces.counts import TraceError
from tools.root import ROOT

pytestmark = pytest.mark.slow


def in_this_process(jobs: Sequence[Job], work: Work) -> Generator[ReplayEnd, None, None]:
    for one in jobs:
        yield ReplayEnd(one.key, work(one))


def test_each_policy_runs_under_each_seed_and_world_and_seeds_come_one_after_the_other() -> None:
    worlds = [({}, Assumptions()), ({"sessions": "long"}, Assumptions(sessions="long"))]
    jobs = make_jobs([policy("a"), policy("b")], [1, 2], worlds, TRACE)
    assert [(one.policy.name, one.seed, one.assumptions.sessions) for one in jobs] == [
        (name, seed, sessions) for seed in (1, 2) for sessions in ("mid", "long") for name in "ab"
    ]
    assert len({one.key for one in jobs}) == 8


def test_the_key_is_of_what_decides_and_of_nothing_else() -> None:
    assert job("a", digest="x").key == job("b", digest="x").key
    different = [
        job(digest="x"),
        job(digest="y"),
        job(digest="x", seed=2),
        job(digest="x", pulls="slow"),
    ]
    assert (len({one.key for one in different}), job(digest="x").key) == (4, job(digest="x").key)


def test_processes_give_what_this_process_gives_in_the_order_of_jobs() -> None:
    jobs = [job(name, seed) for seed in (1, 2) for name in ("z2jh", "roost")]
    events: list[ReplayEnd] = []
    found = run_sweep(jobs, LocalProcesses(2), work=work, report=events.append)
    assert found == run_sweep(jobs, in_this_process, work=work)
    assert [(one.policy, one.seed) for one in found] == [
        (one.policy.name, one.seed) for one in jobs
    ]
    assert len(events) == 4
    assert not multiprocessing.active_children()


def test_equal_values_under_two_names_are_replayed_once_and_told_under_both(tmp_path: Path) -> None:
    jobs = [job("a", digest=str(tmp_path)), job("b", digest=str(tmp_path))]
    events: list[ReplayEnd] = []
    found = run_sweep(jobs, in_this_process, work=counted_work, report=events.append)
    assert [one.policy for one in found] == ["a", "b"]
    assert (len(list(tmp_path.iterdir())), len(events)) == (1, 1)


def test_a_process_that_is_ended_ends_the_sweep(tmp_path: Path) -> None:
    jobs = [job(seed=seed, digest=str(tmp_path)) for seed in range(1, 6)]
    with pytest.raises(SweepError, match="memory ran out: fewer --jobs need less"):
        run_sweep(jobs, LocalProcesses(2), work=dying_work)
    assert not multiprocessing.active_children()
    assert (tmp_path / "2-died").exists()


def test_a_bug_names_the_replay_and_the_place() -> None:
    with pytest.raises(
        SweepError, match=r"policy z2jh, seed 1: KeyError: 1 at simulated\.py:\d+; this is a bug"
    ):
        run_sweep([job()], LocalProcesses(1), work=failing_work)


def test_a_worker_with_other_code_refuses() -> None:
    other = Job(policy("a"), 1, Assumptions(), TRACE, {}, code="another")
    said = (
        "Roost's code here differs from the code that the sweep began with: install the same"
        " version everywhere"
    )
    with pytest.raises(SweepError, match=f"policy a, seed 1: {said}"):
        run_job(other, replay_job)


def test_a_trace_that_changes_between_replays_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "launches.jsonl"
    file.write_text("one\n")
    trace = trace_of((str(file),))
    file.write_text("two\n")
    with pytest.raises(TraceError, match="content that changed since the sweep began"):
        trace.open(1)


def test_ctrl_c_ends_the_sweep_and_all_its_processes(tmp_path: Path) -> None:
    marks = tmp_path / "done"
    marks.mkdir()
    script = f"""
import signal
from roost_lab.simulator.sweep.run import LocalProcesses, run_sweep
from lab.tests import simulated

if __name__ == "__main__":
    # As at a terminal: tests that run in a shell's background inherit that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jobs = [simulated.job(seed=seed, digest={str(marks)!r}) for seed in range(1, 6)]
    run_sweep(jobs, LocalProcesses(2), work=simulated.slow_work)
"""
    file, talk = tmp_path / "sweep.py", tmp_path / "stderr"
    file.write_text(script)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'lab'}"}
    with (
        talk.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, str(file)],
            cwd=ROOT,
            env=environment,
            stderr=stderr,
            start_new_session=True,
        ) as process,
    ):
        until = time.monotonic() + 60
        while len(list(marks.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        # As a terminal does: to the whole group.
        os.killpg(process.pid, signal.SIGINT)
        try:
            assert process.wait(30) != 0
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert sorted(path.name[:6] for path in marks.iterdir()) == ["z2jh-1", "z2jh-2"]
    # The workers leave Ctrl-C to their parent.
    assert "SpawnProcess" not in talk.read_text()
    until = time.monotonic() + 30
    with pytest.raises(ProcessLookupError):  # noqa: PT012 - none of its processes stays
        while time.monotonic() < until:
            os.killpg(process.pid, 0)
            time.sleep(0.05)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    popular = [launch(10, "owner/popular/master")] * 6
    rest = [launch(1500, "owner/popular/master"), launch(1501, "owner/new/master")]
    return write(tmp_path, *popular, launch(11, "owner/rare/master"), "no json", *rest)


def test_one_pass_counts_what_is_used_and_what_is_not(path: Path) -> None:
    found = survey(trace_of((str(path),)))
    assert (found.attempts, found.images, found.repositories) == (9, 3, 3)
    assert (found.counts.lines, found.counts.used, found.counts.skipped_lines) == (10, 9, 1)
    assert [tally.line for tally in found.counts.skipped.values()] == [8]


def test_the_fingerprint_is_of_what_the_files_hold(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    one, other = trace_of((str(path),)), trace_of((str(copy),))
    assert one.fingerprint == other.fingerprint
    copy.write_text(copy.read_text() + copy.read_text())
    assert trace_of((str(copy),)).fingerprint != one.fingerprint
    assert trace_of((str(path), str(copy))).fingerprint != one.fingerprint


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nothing\.jsonl: found No such file"):
        trace_of((str(tmp_path / "nothing.jsonl"),))
