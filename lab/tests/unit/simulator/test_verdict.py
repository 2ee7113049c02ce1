"""`roost rehearse --past`: whether Roost helps a hub, by its past alone."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from generator.faults import UsageError
from generator.values.merge import Settings
from roost.cli import run
from roost_lab.simulator.sweep.verdict import judge
from roost_lab.traces.attempt import Attempt

# A Monday.
BEGIN = 1_791_158_400
HOUR, DAY = 3600, 86_400
SMALL = {"node_memory_bytes": 8_000_000_000, "node_cpu_millicores": 4000}
NO_ROOM = Settings(
    json_values=('placeholders=[{"name": "default", "replicas": 0}]', 'singleuser.image={"name": "hub", "tag": "1"}')
)


def past(days: int, lectures: Iterable[int]) -> list[Attempt]:
    """Somebody each hour; thirty at the given hours since the beginning. All stay for an hour and a half."""
    moments = [BEGIN + hour * HOUR + 60 for hour in range(24 * days)]
    moments += [BEGIN + hour * HOUR + 5 * person for hour in lectures for person in range(30)]
    return [Attempt(n, float(at), "", "hub:1", 10**9, 5400.0) for n, at in enumerate(sorted(moments))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days", "lectures", "verdict", "what"),
    [
        (5, [24 * day + 9 for day in range(5)], "helps: of people, ", "placeholders[].learn of default"),
        (
            5,
            [24 + 3, 48 + 20, 72 + 6, 96 + 15],
            "booking alone helps: of people who come",
            "events.enabled, and book: 3 times 31",
        ),
        (5, [], "don't install: of people, ", "nothing"),
        # What was before the last two weeks is learned at the beginning.
        (17, [24 * day + 9 for day in range(17)], "helps: of people, ", "placeholders[].learn of default"),
    ],
)
def test_the_past_decides(days: int, lectures: list[int], verdict: str, what: str) -> None:
    told = judge(past(days, lectures), (), NO_ROOM, SMALL, 1)
    assert told.startswith(verdict)
    assert f"switch on: {what}" in told
    assert ("thin: what comes once a week" in told) is (days < 14)
    saved = float(told.partition("saved at p95: ")[2].partition(" s")[0])
    assert (saved > 60) is (what != "nothing")


def _past_of(file: Path, *more: str) -> int:
    return run(["rehearse", "--past", str(file), *more])


def test_launches_and_a_prometheus_answer_are_read_and_too_few_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = {"schema": "roost.hub.jupyter.org/launch", "version": 3, "image": "hub:1", "seconds": 60, "class": "user"}
    stamps = (datetime.fromtimestamp(BEGIN + hour * HOUR, UTC).isoformat() for hour in range(30))
    (tmp_path / "launches").write_text("".join(json.dumps({**launch, "timestamp": at}) + "\n" for at in stamps))
    with pytest.raises(UsageError, match=r"--past: found 30 launches in 1\.2 days, expected 50 after the first 2 days"):
        _past_of(tmp_path / "launches")
    levels = [[BEGIN - DAY + 60 * minute, str(minute // 60 % 2)] for minute in range(24 * 60)]
    series = {"metric": {"__name__": "jupyterhub_running_servers"}, "values": levels}
    (tmp_path / "answer").write_text(json.dumps({"data": {"resultType": "matrix", "result": [series]}}))
    with pytest.raises(UsageError, match=r"--past: found 12 launches in 0\.9 days"):
        _past_of(tmp_path / "answer")
    assert "12 servers in 1.0 days" in capsys.readouterr().err


def test_what_holds_no_launch_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").write_text("<html>\n")
    with pytest.raises(UsageError, match="notes: found no user's pod"):
        _past_of(tmp_path / "notes")
    assert _past_of(tmp_path / "nowhere") == 1
    assert "nowhere: No such file" in capsys.readouterr().err
