"""What is known of a trace before it is replayed."""

from pathlib import Path

import pytest

from lab.tests.trace_lines import launch, write
from roost_lab.simulator.sweep.survey import survey, trace_of
from roost_lab.traces.counts import TraceError


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


def test_made_up_launches_are_the_same_for_a_seed_and_told_apart_by_their_days() -> None:
    trace = trace_of((), days=0.02)
    first, again, other = ([one[:4] for one in trace.open(seed)] for seed in (1, 1, 2))
    assert first == again != other
    assert trace.fingerprint != trace_of((), days=0.03).fingerprint
    assert str(trace) == "made-up launches (days 0.02)"


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nothing\.jsonl: found No such file"):
        trace_of((str(tmp_path / "nothing.jsonl"),))
