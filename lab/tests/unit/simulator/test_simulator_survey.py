"""What is known of a trace before it is replayed."""

import json
from pathlib import Path

import pytest

from roost_lab.simulator.sweep.survey import survey, trace_of
from roost_lab.traces.counts import TraceError


def line(minute: int, name: str, **more: object) -> str:
    record = {
        "timestamp": f"2019-05-{22 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:00+00:00",
        "schema": "binderhub.jupyter.org/launch",
        "version": 2,
        "provider": "GitHub",
        "spec": f"owner/{name}/master",
        "status": "success",
    }
    return json.dumps(record | more) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "launches.jsonl"
    file.write_text(
        "".join(
            [
                *(line(10, "popular") for _ in range(6)),
                line(11, "rare"),
                "no json\n",
                line(1500, "popular"),
                line(1501, "new"),
            ]
        )
    )
    return file


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
    copy.write_text(copy.read_text() + line(1502, "new"))
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
