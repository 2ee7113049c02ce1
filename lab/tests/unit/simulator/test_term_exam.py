"""`python -m benchmarks.term --exam`: an exam of 320 people, booked and not booked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import pytest

from benchmarks import term as benchmark
from benchmarks import term_exam as exam
from benchmarks.term_exam import CASES, ExamEnd, ExamJob, Outcome
from benchmarks.terms import EXAM, Launch, draw_term, with_exam, without_exam

KARPENTER = "karpenter"
TERM = with_exam(draw_term(4, 5), 320, 18)


def test_the_exam_is_of_320_people_within_two_minutes_whatever_the_seed_drew() -> None:
    for seed in (1, 4):
        drawn = draw_term(seed, 5)
        assert drawn.exam is not None
        term = with_exam(drawn, 320, 18)
        begin = term.begin_of_day(drawn.exam.day) + 18 * 3600
        moments = [launch.attempt.moment for launch in term.launches if launch.group == EXAM]
        assert len(moments) == 320
        assert begin <= min(moments) <= max(moments) <= begin + 121
        assert [launch.attempt.number for launch in term.launches] == list(
            range(len(term.launches))
        )
        others = [launch.attempt.moment for launch in drawn.launches if launch.group != EXAM]
        assert [e.attempt.moment for e in term.launches if e.group != EXAM] == others
    with pytest.raises(ValueError, match="without an exam"):
        with_exam(without_exam(TERM), 320, 18)


def test_the_exam_is_booked_by_its_local_time() -> None:
    booking = exam.booking_of(TERM)
    assert booking == {
        "name": "exam",
        "people": 320,
        "start": "2026-11-03T18:00",
        "timeZone": "UTC",
    }
    several = exam.booking_of(with_exam(draw_term(1, 5), 320, 18))
    assert several["image"] == "quay.io/uni/image-0:2026"


def test_nodes_are_needed_for_the_exam_and_for_who_is_there() -> None:
    # Of 2 GB, 18 users fit a node.
    assert exam.needed_nodes(TERM, []) == 18
    booked = [launch for launch in TERM.launches if launch.group == EXAM]
    assert exam.needed_nodes(TERM, booked) == 18
    assert TERM.exam is not None
    begin = TERM.begin_of_day(TERM.exam.day) + 18 * 3600
    attempt = booked[0].attempt._replace(moment=begin - 60, session_seconds=3600.0)
    there = [booked[0]._replace(attempt=attempt, group=None)] * 5
    assert exam.needed_nodes(TERM, there) == 19


def test_who_gets_no_server_is_late() -> None:
    found = exam.outcome_of([1, 2, 3, 4], {1: 5.0, 2: 11.0, 3: 31.0, 9: 500.0})
    assert (found.people, found.later_than_10, found.later_than_30) == (4, 3, 2)
    assert (found.without_server, found.p95, found.slowest) == (1, 999.0, 999.0)


def test_a_booked_exam_starts_at_once_and_an_exam_that_nobody_booked_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert TERM.exam is not None
    begin = TERM.begin_of_day(TERM.exam.day) + 17.5 * 3600
    alone = TERM.launches[0].attempt._replace(number=-1, moment=begin)
    coming = [launch for launch in TERM.launches if launch.group == EXAM]
    evening = [Launch(alone, None), *coming]
    monkeypatch.setattr(exam, "exam_term", lambda _job: replace(TERM, launches=evening))
    cases = ("not booked", "booked", "booked, two thirds of the nodes")
    found = {case: exam.play_exam(ExamJob(4, case, KARPENTER)) for case in cases}
    assert found["not booked"].later_than_30 > 200
    assert found["booked"].later_than_10 == 0
    assert found["booked"].without_server == 0
    assert found["booked, two thirds of the nodes"].without_server > 50


class Fake:
    """A spread in this process that makes up what came of each exam."""

    def __call__(self, jobs: Sequence[ExamJob], _work: exam.Work) -> Generator[ExamEnd, None, None]:
        for job in jobs:
            late = 0 if CASES[job.case].is_booked else 100 + job.seed
            yield ExamEnd(job.key, Outcome(320, late, late, 0, 2.4, 5.0, 100.0, 20 + job.seed))


def test_the_table_has_a_row_for_each_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "spread_of", lambda _jobs, _dask: Fake())
    options = ["--exam", "--seeds", "1-3", "--autoscalers", KARPENTER]
    assert benchmark.main(options) == 0
    told, progress = capsys.readouterr()
    assert "| karpenter  | not booked " in told
    assert "103 (seed 3)" in told
    assert "21 to 23" in told
    assert all(f"| {case} " in told for case in CASES)
    assert "seed 3, exam booked, karpenter: of 320 0 later than 30 s" in progress


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--exam --first-week", "--exam has no arms"),
        ("--exam --arms none", "--exam has no arms"),
        ("--exam --weeks 2", "--exam: a term of 2 weeks"),
        ("--exam --variants no-exam", "with these variants has none"),
        ("--exam --results exams.jsonl", "--exam keeps no results"),
        ("--first-week --picture 3", "--first-week has no picture"),
    ],
)
def test_options_that_exclude_each_other_are_named(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        benchmark.main(arguments.split())
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
