"""`roost rehearse --past`: whether Roost helps a hub, by its past alone."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from gzip import compress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.faults import UsageError
from generator.importing.culling import Culling
from generator.values.merge import SetOptions
from lab.tests.told import cases
from roost.cli import run
from roost_lab.commands.rehearse import culling_of
from roost_lab.simulator.sweep.verdict import culling_line, find_waves, judge
from roost_lab.traces.attempt import Attempt

# A Monday.
BEGIN = 1_791_158_400
HOUR, DAY = 3600, 86_400
SMALL = {"node_memory_bytes": 8_000_000_000, "node_cpu_millicores": 4000}
GPU = '{"name": "gpu", "replicas": 1, "resources": {"requests": {"nvidia.com/gpu": 1}}}'
# What only has a limit requests as much.
LIMITS = '{"limits": {"cpu": "50m", "memory": "1Gi"}}'
NO_ROOM = SetOptions(
    json_values=(
        f'placeholders=[{{"name": "default", "replicas": 0, "resources": {LIMITS}}}, {GPU}]',
        'singleuser.image={"name": "hub", "tag": "1"}',
        "events.enabled=true",
        (
            'events.booked=[{"name": "x", "people": 5, "start": "2026-12-01T09:00", "timeZone":'
            ' "UTC", "set": "gpu"}]'
        ),
    )
)


def past(days: int, lectures: Iterable[int]) -> list[Attempt]:
    """Somebody each hour; thirty at the given hours since the beginning.

    All stay for an hour and a half.
    """
    moments = [BEGIN + hour * HOUR + 60 for hour in range(24 * days)]
    moments += [BEGIN + hour * HOUR + 5 * person for hour in lectures for person in range(30)]
    return [
        Attempt(n, float(at), "", "hub:1", 10**9, 5400.0) for n, at in enumerate(sorted(moments))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("days", "lectures", "verdict", "what"), cases("simulator", "pasts"))
def test_the_past_decides(days: int, lectures: list[int], verdict: str, what: str) -> None:
    told = judge((past(days, lectures), ()), (), NO_ROOM, SMALL, 1)
    assert told.startswith(verdict)
    assert f"switch on: {what}" in told
    assert "; not played: placeholders of gpu\n" in told
    assert "-0 %" not in told
    assert ("thin: what comes once a week" in told) is (days < 14)
    saved = float(told.partition("saved at p95: ")[2].partition(" s")[0])
    assert (saved > 60) is (what != "nothing")


HUB_LOG = "[I 2026-10-05 09:00:1{}.000 JupyterHub base:1090] User ada took 3.100 seconds to start\n"
LAUNCH = {
    "schema": "roost.hub.jupyter.org/launch",
    "version": 3,
    "image": "hub:1",
    "seconds": 60,
    "class": "user",
}
LEVELS = [[BEGIN - DAY + 60 * minute, str(minute // 60 % 2)] for minute in range(24 * 60)]
SERIES = {"metric": {"__name__": "jupyterhub_running_servers"}, "values": LEVELS}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "".join(
                json.dumps({**LAUNCH, "timestamp": f"2026-10-05T{h:02}:00:00Z"}) + "\n"
                for h in range(20)
            ),
            "20 launches",
        ),
        (
            json.dumps({"data": {"resultType": "matrix", "result": [SERIES]}}),
            "12 launches in 1.0 days",
        ),
        ("".join(HUB_LOG.format(second) for second in range(7)), "7 launches in 0.0 days"),
        ("<html>\n", "no user's pod, expected Prometheus' JSON, launches"),
    ],
)
def test_what_a_past_holds_is_recognised_and_too_little_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
    with pytest.raises(UsageError, match=f"found {said}"):
        run(["rehearse", "--past", "-"])
    (tmp_path / "past").write_text(text)
    with pytest.raises(UsageError, match=f"found {said}"):
        run(["rehearse", "--past", str(tmp_path / "past")])
    (tmp_path / "past").write_bytes(compress(text.encode()))
    with pytest.raises(UsageError, match=f"found {said}"):
        run(["rehearse", "--past", str(tmp_path / "past")])
    with pytest.raises(UsageError, match="--past: found PEOPLE as well"):
        run(["rehearse", "120", "2026-10-05 9:00", "--past", str(tmp_path / "past")])


@pytest.mark.parametrize("pack", [bytes, compress])
def test_a_fault_names_the_file_that_was_given(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "past"
    about = {"kind": "Pod", "namespace": "Not-A-Namespace", "name": "jupyter-ada", "uid": "1"}
    event = {
        "involvedObject": about,
        "reason": "Scheduled",
        "lastTimestamp": "2026-10-05T09:00:00Z",
    }
    meta = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"creationTimestamp": "2026-10-05T09:00:00Z"},
    }
    for text in (json.dumps({**meta, **event}), json.dumps({**LAUNCH, "timestamp": "never"})):
        path.write_bytes(pack(text.encode()))
        with pytest.raises(UsageError, match=f"{path}(:1)?: found no launch in 1 line:"):
            run(["rehearse", "--past", str(path)])
    with pytest.raises(UsageError, match=f"{path}2: No such file"):
        run(["rehearse", "--past", f"{path}2"])


@pytest.mark.parametrize("command", ["simulate", "rehearse"])
def test_a_command_that_needs_no_record_loads_no_database(command: str) -> None:
    code = f"import sys, roost_lab.commands.{command}; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_past_is_as_long_as_somebody_looked_and_other_values_are_refused() -> None:
    launches = past(20, [])
    minute = int(launches[-1].moment // 60)
    with pytest.raises(UsageError, match=r"found 217 launches in 0\.9 days"):
        judge((launches, range(minute - 13000, minute, 10)), (), NO_ROOM, SMALL, 1)
    with pytest.raises(UsageError, match=r"^controllers\.enabled is false in the values"):
        judge((launches, ()), (), NO_ROOM._replace(values=("controllers.enabled=false",)), SMALL, 1)


def test_one_wave_in_days_is_one() -> None:
    together = [Attempt(n, BEGIN + n, "", "hub:1") for n in range(52)]
    assert find_waves(together, DAY) == [together]


def _node_hours_by_culling(told: str) -> int:
    _, _, after = told.partition("would change node-hours without Roost by ")
    return int(after.partition(" %")[0])


USUAL = Culling(enabled=True, timeout=3600, every=600, max_age=0)


@pytest.mark.slow
def test_an_earlier_end_of_idle_servers_is_played() -> None:
    launched = past(7, [9 + 24 * day for day in range(7)])
    told = judge((launched, ()), (), NO_ROOM, SMALL, 1, culling=USUAL)
    assert "cull.timeout: 1800 and cull.every: 60, in place of 3600 and 600" in told
    assert _node_hours_by_culling(told) < -5
    assert "; less where people stop servers that ran for more than 3600 s\n" in told
    # All stay for an hour and a half: with a limit of two hours nobody was culled.
    long = judge((launched, ()), (), NO_ROOM, SMALL, 1, culling=USUAL._replace(timeout=7200))
    assert _node_hours_by_culling(long) == 0


@pytest.mark.parametrize(
    ("culling", "stays", "said"),
    [
        (USUAL._replace(timeout=900, every=60), 5400.0, "cull.timeout 900 and cull.every 60 stay"),
        (USUAL._replace(enabled=False), 5400.0, "cull.enabled is false"),
        (USUAL, None, "doesn't say how long"),
    ],
)
def test_what_can_not_be_played_of_idle_servers_is_said(
    culling: Culling, stays: float | None, said: str
) -> None:
    played = [Attempt(0, float(BEGIN), "", "hub:1", None, stays)]
    player: Any = SimpleNamespace(period=SimpleNamespace(played=played))
    days: Any = None
    assert said in culling_line(player, {}, {}, culling, days)


def test_the_hubs_culling_is_read_of_its_values(tmp_path: Path) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text("jupyterhub: {cull: {timeout: 7200, maxAge: 86400}}")
    assert culling_of([str(file)]) == Culling(True, 7200, 600, 86400)
    assert culling_of([]) is None
    file.write_text("singleuser: {}\ncull: {timeout: soon}")
    assert culling_of([str(file)]) is None


def test_options_of_a_booked_day_are_refused_with_a_past() -> None:
    # Before the past is read: there is no such file.
    for option, value in (
        ("--launches", "0"),
        ("--absent", "0"),
        ("--zone", "UTC"),
        ("--placeholders", "default"),
        ("--image", "a:1"),
        ("--profile", "gpu"),
    ):
        with pytest.raises(UsageError, match=f"^--past: leave out {option}: only a booked day"):
            run(["rehearse", "--past", "/no/such/file", option, value])


def test_hub_values_without_a_past_are_refused() -> None:
    with pytest.raises(UsageError, match="--hub-values: found no --past"):
        run(["rehearse", "9", "9:00", "--hub-values", "hub.yaml"])
